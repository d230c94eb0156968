"""Right answers with one slip in them: what a student may have written, generated.

Every slip is a change in one place of the source of a right answer, or of a function of the course
that it calls. It comes with words that complete "The same numbers come out if …".
"""

import ast
import copy
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from rlcourse.checks.mutants import EndlessLoop, changes, source_tree
from rlcourse.checks.slip_words import NOUNS, Terms, in_words, name_of

COURSE = "rlcourse."  # whose functions an answer is made of
DEEP = 2  # functions inside functions
ROUNDS = 5_000  # of all loops of one call
TICK, COUNTING = "_tick_", "_counting_"
FOLDING = ("sum", "mean", "std", "var", "amax", "amin", "any", "all", "prod", "logsumexp")

UNPLACED = (ast.JoinedStr, ast.FormattedValue, ast.Expr)  # whose strings are not values themselves
SELDOM = ("is detached", "is added to a divisor")  # said of much, so after what is likelier
EPSILONS = (1e-2, 1e-3, 1e-4, 1e-6)  # such as are written to keep a division finite
NEIGHBORS = {
    "mean": ("amin", "amax"), "softmax": ("sigmoid",), "amax": ("mean", "sum"),
    "amin": ("mean", "sum"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Slip:
    """A right answer with something else in one place."""

    text: "Text"
    start: int  # bytes
    end: int
    node: ast.AST  # what stands there now
    words: str
    rank: int = 0  # the lower, the likelier

    @cached_property
    def new(self) -> str:
        """The other text; written when it is asked for, since most slips never are."""
        written = ast.unparse(ast.fix_missing_locations(self.node))
        bare = isinstance(self.node, ast.Slice) or not isinstance(self.node, ast.expr)
        return written if bare else f"({written})"

    @cached_property
    def function(self) -> Callable | None:
        """The changed function; None if Python rejects its source."""
        return self.text.compiled(self.start, self.end, self.new)


@dataclass(frozen=True, eq=False)
class Inside:
    """A right answer that calls a function with a slip in it."""

    text: "Text"
    helper: str
    slip: "Slip | Inside"

    @property
    def words(self) -> str:
        inside = f", inside `{self.helper}`"
        return self.slip.words if inside in self.slip.words else self.slip.words + inside

    @property
    def rank(self) -> int:
        return self.slip.rank

    @cached_property
    def function(self) -> Callable | None:
        changed = self.slip.function
        return changed and self.text.compiled(0, 0, "", {self.helper: changed})


class Text:
    """The source of a function, in which places can be replaced."""

    def __init__(self, fn: Callable, written: str):
        self.fn = fn
        self.bytes = written.encode()
        tree = ast.parse(written).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self.tree = tree
        self.terms = Terms(self.tree)
        self._lines = [0]
        for line in self.bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    @classmethod
    def guarded(cls, fn: Callable) -> "Text | None":
        """As Python itself would write it, its loops counted; None where there is no source."""
        tree = source_tree(fn)
        if tree is None:
            return None
        return cls(fn, ast.unparse(ast.fix_missing_locations(_Guarded().visit(tree))))

    def span(self, node: Any) -> tuple[int, int]:
        """Where a node stands."""
        begin = self._lines[node.lineno - 1] + node.col_offset
        return begin, self._lines[node.end_lineno - 1] + node.end_col_offset

    def compiled(self, start: int, end: int, new: str, helpers=None) -> Callable | None:
        """The function with other text in that place, and with other functions to call."""
        text = self.bytes[:start] + new.encode() + self.bytes[end:]
        ticks = _Ticks()
        namespace = {**inspect.unwrap(self.fn).__globals__, **(helpers or {})}
        namespace |= {TICK: ticks.tick, COUNTING: ticks.counting}
        try:
            with warnings.catch_warnings(action="ignore"):
                exec(compile(text, f"<{self.fn.__name__}, with a slip>", "exec"), namespace)
        except (SyntaxError, ValueError, TypeError, NameError):
            return None
        return ticks.fresh(namespace[self.tree.name])

    def slips(self) -> Iterator[Slip]:
        """Everything that may be different in one place."""
        nodes = list(ast.walk(self.tree))
        parents = {c: node for node in nodes for c in ast.iter_child_nodes(node)}
        for node in nodes:
            for new, words in _habits(node, self.terms):
                yield self._slip(node, new, words, int(any(say in words for say in SELDOM)))
        for place, new in changes(self.tree):
            old = nodes[place]
            if _is_guard(old) or isinstance(parents.get(old), UNPLACED):
                continue
            words = in_words(old, new, parents.get(old), self.terms)
            if words:
                yield self._slip(*_narrowed(old, new), words, _rank(old, new))

    def _slip(self, old: ast.AST, new: ast.AST, words: str, rank: int) -> Slip:
        return Slip(self, *self.span(old), new, words, rank)


def _rank(old: Any, new: Any) -> int:
    """2: far-fetched; 1: seldom the simplest way to say it; 0: all others."""
    if isinstance(old, ast.Name) and isinstance(new, ast.Name):
        return 2
    both = isinstance(old, ast.BinOp) and isinstance(new, ast.BinOp)
    turned = both and new.left is old.right
    calls = isinstance(old, ast.Call) and isinstance(new, ast.Call)
    options = calls and name_of(old.func) == name_of(new.func)
    text = isinstance(old, ast.Constant) and isinstance(old.value, str)
    statement = isinstance(old, ast.Subscript | ast.Raise | ast.If)
    return int(turned or options or text or statement)


def _narrowed(old: Any, new: Any) -> tuple[ast.AST, ast.AST]:
    """The part that differs, where the whole is more than one line or has no place."""
    if isinstance(old, ast.If):
        return old.test, new.test
    if isinstance(old, ast.arguments):
        pairs = zip(old.defaults, new.defaults, strict=True)
        return next(pair for pair in pairs if ast.dump(pair[0]) != ast.dump(pair[1]))
    return old, new


def _habits(node: ast.AST, terms: Terms) -> Iterator[tuple[ast.expr, str]]:
    """What people write in place of a term when it is not a slip of the pen."""
    if isinstance(node, ast.BinOp):
        yield from _habits_of_arithmetic(node, terms)
    elif isinstance(node, ast.Call):
        on = receiver(node)
        if on is not None:
            yield from _habits_of_steps(node, name_of(node.func), on, terms)
        if name_of(node.func) == "range" or isinstance(node.func, ast.Name):
            yield from _habits_of_ranges(node)
    elif isinstance(node, ast.Slice):
        for field in ("lower", "upper"):
            if (bound := getattr(node, field)) and not isinstance(bound, ast.Constant):
                for new, words in _one_off(bound):
                    yield _changed(node, field, new), f"a slice {ENDS[field]} one place {words}"


ENDS = {"lower": "begins", "upper": "ends"}


def _one_off(bound: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    yield ast.BinOp(bound, ast.Sub(), ast.Constant(1)), "earlier"
    yield ast.BinOp(bound, ast.Add(), ast.Constant(1)), "later"


def _habits_of_ranges(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    if name_of(node.func) != "range" or not 0 < len(node.args) < 3:
        return
    for i, argument in enumerate(node.args):
        end = "begins" if i + 1 < len(node.args) else "ends"
        for new, words in _one_off(argument):
            arguments = [*node.args[:i], new, *node.args[i + 1 :]]
            yield _changed(node, "args", arguments), f"a loop {end} one place {words}"


def _habits_of_arithmetic(node: ast.BinOp, terms: Terms) -> Iterator[tuple[ast.expr, str]]:
    if not isinstance(node.op, ast.Mult | ast.Div | ast.Sub | ast.Add):
        return
    for side, field in ((node.left, "left"), (node.right, "right")):
        if not isinstance(side, ast.Constant):
            said = terms.say(side)
            yield _changed(node, field, _method(side, "detach")), f"{said} is detached"
            if said != "a term" and not isinstance(node.op, ast.Add):
                square = ast.BinOp(side, ast.Pow(), ast.Constant(2))
                yield _changed(node, field, square), f"{said} is squared"
    if isinstance(node.op, ast.Div):
        for small in EPSILONS:
            divisor = ast.BinOp(node.right, ast.Add(), ast.Constant(small))
            words = f"{small:g} is added to a divisor{terms.on(node.right)}"
            yield _changed(node, "right", divisor), words
    if isinstance(node.op, ast.Mult) and terms.say(node) != "a term":
        square = ast.BinOp(node, ast.Pow(), ast.Constant(2))
        yield square, f"a product, {terms.say(node)}, is squared"


def _habits_of_steps(
    node: ast.Call, called: str, on: ast.expr, terms: Terms
) -> Iterator[tuple[ast.expr, str]]:
    """Another method in its place, or the same one with other options."""
    if called == "exp":
        taylor = ast.BinOp(ast.Constant(1), ast.Add(), on)
        yield taylor, f"1 + x is used in place of e to the x{terms.on(on)}"
    more = [a for a in node.args if a is not on]
    if called in FOLDING and (node.keywords or more):
        over = f"{NOUNS.get(called, called)} is taken over everything, not along one dimension"
        yield _method(on, called), over + terms.on(on)
    for now in NEIGHBORS.get(called, ()):
        if isinstance(node.func, ast.Attribute) and node.func.value is on:
            words = f"{NOUNS[now]} is used in place of {NOUNS[called]}{terms.on(on)}"
            yield _changed(node, "func", ast.Attribute(on, now, ast.Load())), words
    if called in ("std", "var") and not any(k.arg == "correction" for k in node.keywords):
        options = [*node.keywords, ast.keyword("correction", ast.Constant(0))]
        yield _changed(node, "keywords", options), f"{NOUNS[called]} divides by n, not by n − 1"
    if called in ("clamp", "clip") and len(more) == 2:
        for bound, value, side in zip(("min", "max"), more, ("lower", "upper"), strict=True):
            kept = ast.Call(ast.Attribute(on, called, ast.Load()), [], [ast.keyword(bound, value)])
            yield kept, f"only the {side} bound of `{called}` holds"


def _changed(node: Any, field: str, new: Any) -> Any:
    node = copy.copy(node)
    setattr(node, field, new)
    return node


def _method(on: ast.expr, name: str) -> ast.Call:
    return ast.Call(ast.Attribute(on, name, ast.Load()), [], [])


def receiver(call: ast.Call) -> ast.expr | None:
    """The tensor that a method or a function of torch works on."""
    if not isinstance(call.func, ast.Attribute):
        return None
    value = call.func.value
    if isinstance(value, ast.Name) and value.id in ("torch", "F"):
        return call.args[0] if call.args else None
    return None if isinstance(value, ast.Name) and value.id == "math" else value


def _is_guard(node: ast.AST) -> bool:
    if isinstance(node, ast.BoolOp):
        return _is_guard(node.values[0])
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Name) and called.id in (TICK, COUNTING)


class _Guarded(ast.NodeTransformer):
    """Every round of every loop is counted."""

    def visit_While(self, node):
        self.generic_visit(node)
        tick = ast.Call(ast.Name(TICK, ast.Load()), [], [])
        node.test = ast.BoolOp(ast.And(), [tick, node.test])
        return node

    def visit_For(self, node):
        self.generic_visit(node)
        node.iter = ast.Call(ast.Name(COUNTING, ast.Load()), [node.iter], [])
        return node

    visit_comprehension = visit_For


class _Ticks:
    """Counts the rounds of all loops of one call."""

    rounds = 0

    def tick(self) -> bool:
        self.rounds += 1
        if self.rounds > ROUNDS:
            raise EndlessLoop
        return True

    def counting(self, items: Iterable) -> Iterator:
        for item in items:
            self.tick()
            yield item

    def fresh(self, fn: Callable) -> Callable:
        def counted(*args, **kwargs) -> Any:
            self.rounds = 0
            return fn(*args, **kwargs)

        counted.__name__ = fn.__name__
        return counted


@lru_cache(maxsize=200)
def slips_of(fn: Callable, deep: int = DEEP) -> tuple[Slip | Inside, ...]:
    """All slips in a function and in the course's functions that it calls."""
    text = Text.guarded(fn)
    if text is None:
        return ()
    found: list[Slip | Inside] = list(text.slips())
    for name, helper in _helpers(text) if deep else ():
        found += [Inside(text, name, slip) for slip in slips_of(helper, deep - 1)]
    return tuple(found)


def _helpers(text: Text) -> Iterator[tuple[str, Callable]]:
    names = dict.fromkeys(n.id for n in ast.walk(text.tree) if isinstance(n, ast.Name))
    for name in names:
        helper = inspect.unwrap(text.fn).__globals__.get(name)
        if inspect.isfunction(helper) and helper.__module__.startswith(COURSE):
            yield name, helper
