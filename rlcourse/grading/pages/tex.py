r"""TeX in student Markdown: commands that draw formulas stay, all others become words.

What typesets a page takes more than formulas: ``\href`` makes links, ``\require`` loads code,
``\def`` defines commands, ``\unicode``, ``\rule`` and ``\kern`` draw anywhere on the page.
"""

LONGEST_FORMULA = 4000
DEEPEST = 30  # braces

COMMANDS = frozenset(
    """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu
    nu xi omicron pi varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega digamma
    Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega
    aleph beth ell hbar imath jmath Re Im wp partial nabla infty emptyset varnothing forall exists
    nexists neg lnot top bot angle prime backprime degree square blacksquare Box triangle checkmark
    sum prod coprod int iint iiint oint bigcup bigcap bigoplus bigotimes bigodot bigvee bigwedge
    biguplus bigsqcup
    pm mp times div cdot ast star circ bullet oplus ominus otimes oslash odot cup cap uplus sqcup
    sqcap vee wedge lor land setminus smallsetminus wr amalg dagger ddagger
    le leq leqslant ge geq geqslant lt gt ll gg lll ggg ne neq equiv sim simeq approx cong propto
    prec succ preceq succeq subset supset subseteq supseteq subsetneq supsetneq sqsubseteq
    sqsupseteq in ni notin not mid nmid parallel perp models vdash dashv Vdash vDash asymp doteq
    triangleq bowtie because therefore lesssim gtrsim approxeq coloneqq eqqcolon
    to gets leftarrow rightarrow leftrightarrow Leftarrow Rightarrow Leftrightarrow longleftarrow
    longrightarrow longleftrightarrow Longleftarrow Longrightarrow Longleftrightarrow implies
    impliedby iff mapsto longmapsto uparrow downarrow updownarrow Uparrow Downarrow Updownarrow
    nearrow searrow swarrow nwarrow hookleftarrow hookrightarrow rightharpoonup rightharpoondown
    leftharpoonup leftharpoondown rightleftharpoons leadsto rightsquigarrow twoheadrightarrow
    xrightarrow xleftarrow nrightarrow nleftarrow
    ldots cdots vdots ddots dots dotsc dotsb dotsm dotsi
    quad qquad thinspace enspace medspace thickspace negthinspace space
    frac dfrac tfrac cfrac binom dbinom tbinom sqrt over choose overset underset stackrel substack
    hat widehat bar vec dot ddot tilde widetilde overline underline overbrace underbrace
    overrightarrow overleftarrow acute grave check breve mathring boxed cancel bcancel not
    mathrm mathbf mathbb mathcal mathfrak mathsf mathtt mathit mathscr boldsymbol pmb bm rm bf it
    text textrm textbf textit texttt textsf textnormal mbox operatorname displaystyle textstyle
    scriptstyle limits nolimits mathop mathbin mathrel mathord mathopen mathclose
    left right middle big Big bigg Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr bigm Bigm
    lvert rvert lVert rVert vert Vert lbrace rbrace lbrack rbrack langle rangle lfloor rfloor lceil
    rceil lgroup rgroup backslash colon
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf
    limsup ln log max min Pr sec sin sinh sup tan tanh argmax argmin injlim projlim bmod pmod mod
    color textcolor tag notag nonumber phantom hline cr
    """.split()  # noqa: SIM905
)
ENVIRONMENTS = frozenset(
    """
    equation align aligned alignat gather gathered split multline cases array matrix pmatrix
    bmatrix Bmatrix vmatrix Vmatrix smallmatrix eqnarray subarray
    """.split()  # noqa: SIM905
)
_AFTER_BACKSLASH = frozenset(",;:!>|{}\\%#&_$ ")
_REPLACED = {"<": r"\lt ", ">": r"\gt ", "%": r"\%", "#": r"\#", "&": " & ", "\n": " ", "\t": " "}


def sanitized_tex(source: str) -> str | None:
    """The formula with the commands listed here, on one line; None if it is not well formed.

    Characters that mean something in HTML are gone, but for ampersands that stand alone.
    """
    if len(source) > LONGEST_FORMULA:
        return None
    words, at, depth = [], 0, 0
    while at < len(source):
        c = source[at]
        if c == "\\":
            word, at = _command(source, at + 1)
        else:
            depth += (c == "{") - (c == "}")
            word, at = _REPLACED.get(c, c), at + 1
            if word == "$" or not word.isprintable():
                return None
        if word is None or not 0 <= depth <= DEEPEST:
            return None
        words.append(word)
    tex = "".join(words).strip()
    return tex if tex and not depth else None


def _command(source: str, at: int) -> tuple[str | None, int]:
    """The replacement for the command after the backslash, and where the command ends."""
    end = at
    while end < len(source) and source[end].isascii() and source[end].isalpha():
        end += 1
    name = source[at:end]
    if name in ("begin", "end"):
        return _environment(source, name, end)
    if name:
        return (f"\\{name}" if name in COMMANDS else rf"\mathtt{{{name}}}"), end
    following = source[at : at + 1].replace("\n", " ")
    if following not in _AFTER_BACKSLASH:
        return None, at
    return ("\\& " if following == "&" else f"\\{following}"), at + 1


def _environment(source: str, word: str, at: int) -> tuple[str | None, int]:
    end = source.find("}", at, at + 20)
    name = source[at + 1 : end]
    if source[at : at + 1] != "{" or end < 0 or name.removesuffix("*") not in ENVIRONMENTS:
        return None, at
    return f"\\{word}{{{name}}}", end + 1
