"""Completions token by token, colored by what the model and the trainer think of each.

One fragment of HTML without a script: the switch between measures is a group of radio buttons, and
style sheets do the rest. A notebook that the reader has not yet trusted shows none; there the
tokens keep the colors of the first measure, and their numbers.
"""

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from math import exp

from rlcourse.evaluation.transcripts import escape

BLUE, VERMILION, VIOLET = "70, 150, 235", "235, 120, 30", "150, 105, 235"  # on light and on dark
STRONGEST = 0.5  # opacity: words on it can be read, light ones on dark as well
BUDGET = 1600  # tokens of a page: with their numbers, about 120 characters each


@dataclass(frozen=True)
class Measure:
    """One number per token: its name, its scale, and its meaning."""

    name: str
    key: str  # one letter: the class of a token is "l3" in the fourth step of the log-prob's scale
    edges: tuple[float, ...]  # between the steps of the scale
    labels: tuple[str, ...]  # of the steps
    diverging: bool  # blue above the middle, vermilion below; else violet, more and more
    about: str

    def step(self, value: float) -> int:
        """Which step of the scale a value is on."""
        return bisect_right(self.edges, value)

    def color(self, step: int) -> str:
        """A step's color over any background; "" in the middle, where nothing happens."""
        if not self.diverging:
            strength = (step if self.key == "k" else len(self.edges) - step) / len(self.edges)
            return f"rgba({VIOLET}, {STRONGEST * strength:.2f})" if strength else ""
        middle = len(self.edges) / 2
        distance = step - middle
        shade = BLUE if distance > 0 else VERMILION
        return f"rgba({shade}, {STRONGEST * abs(distance) / middle:.2f})" if distance else ""


MEASURES = {
    "logprob": Measure(
        "log-prob",
        "l",
        (-3.0, -1.5, -0.7, -0.3, -0.05),
        ("below −3 (5 %)", "−3", "−1.5 (22 %)", "−0.7 (50 %)", "−0.3 (74 %)", "above −0.05 (95 %)"),
        False,
        "Nats, under the policy that wrote the token: the stronger the color, the less likely.",
    ),
    "ratio": Measure(
        "ratio",
        "r",
        (0.5, 0.8, 0.95, 1.05, 1.25, 2.0),
        ("below 0.5", "0.5", "0.8", "about 1", "1.05", "1.25", "above 2"),
        True,
        "The token's probability now, divided by what it was: blue is likelier, orange rarer.",
    ),
    "advantage": Measure(
        "advantage",
        "a",
        (-1.5, -0.5, -0.05, 0.05, 0.5, 1.5),
        ("below −1.5", "−1.5", "−0.5", "about 0", "0.05", "0.5", "above 1.5"),
        True,
        "How much better than expected the trainer considers the token.",
    ),
    "kl": Measure(
        "KL",
        "k",
        (0.001, 0.01, 0.1, 0.5, 2.0),
        ("below 0.001", "0.001", "0.01", "0.1", "0.5", "above 2"),
        False,
        "The token's share of the KL penalty, k3, in nats: how far the policy has moved there.",
    ),
}


@dataclass(frozen=True)
class Tokens:
    """One completion. `values` holds a number per token for each known measure."""

    texts: list[str]
    values: dict[str, list[float]]
    reward: float | None = None


@dataclass(frozen=True)
class TokenGroup:
    """Completions of one question: {"before": several, "after": several}, or another heading."""

    question: str
    columns: dict[str, list[Tokens]]


@dataclass(frozen=True)
class TokenPage:
    """What ``inspect_rollouts`` found; a notebook displays it."""

    groups: list[TokenGroup]

    @property
    def measures(self) -> list[str]:
        """The measures that any of the tokens has, in the order of the switch: the ratio comes
        first where it shows something."""
        known = {name for _, one in self._completions() for name in one.values}
        ratios = [x for _, one in self._completions() for x in one.values.get("ratio", ())]
        moved = any(MEASURES["ratio"].color(MEASURES["ratio"].step(x)) for x in ratios)
        order = sorted(MEASURES, key=lambda name: moved and name != "ratio")
        return [name for name in order if name in known]

    def _completions(self) -> list[tuple[str, Tokens]]:
        return [(w, t) for g in self.groups for w, of in g.columns.items() for t in of]

    def __str__(self) -> str:
        lines = []
        for group in self.groups:
            lines.append(group.question)
            for when, of in group.columns.items():
                lines += [f"  {when} {_reward(t)} {''.join(t.texts)!r}" for t in of]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html(inline=True)

    def html(self, inline: bool = False, budget: int = BUDGET) -> str:
        """The fragment; with `inline` the tokens also carry the first measure's colors.

        Groups are left out at the end, and long completions cut, when there are more than `budget`
        tokens; the fragment says what is left out.
        """
        groups, longest, left_out = self._within(budget)
        bare = {name: MEASURES[name] for name in self.measures}
        shown = "".join(
            _group(group, bare, longest, inline, is_open=i == 0) for i, group in enumerate(groups)
        )
        name = "t" + hashlib.sha256(shown.encode()).hexdigest()[:8]
        more = f"<p class='q'>{left_out} more questions are not shown.</p>" if left_out else ""
        return (
            f'<div class="rl-tok"><style>{_style(bare)}</style>{_switch(bare, name)}'
            f"{_scales(bare)}{shown}{more}</div>"
        )

    def _within(self, budget: int) -> tuple[list[TokenGroup], int, int]:
        """The groups to show, the tokens of a completion to show, the number of groups left out."""
        sizes = [sum(len(t.texts) for of in g.columns.values() for t in of) for g in self.groups]
        kept = max(1, sum(sum(sizes[: i + 1]) <= budget for i in range(len(sizes))))
        groups = self.groups[:kept]
        written = [t for g in groups for of in g.columns.values() for t in of]
        longest = max((len(t.texts) for t in written), default=0)
        if kept == 1 and sizes and sizes[0] > budget:
            longest = max(8, budget // max(1, len(written)))
        return groups, longest, len(self.groups) - kept


def _reward(tokens: Tokens) -> str:
    return "" if tokens.reward is None else f"reward {tokens.reward:g}"


def _switch(measures: dict[str, Measure], name: str) -> str:
    """Radio buttons: one tab stop, arrow keys between them. Hidden without style sheets."""
    buttons = "".join(
        f'<label><input type="radio" name="{name}" value="{key}"{" checked" * (i == 0)}> '
        f"{measure.name}</label>"
        for i, (key, measure) in enumerate(measures.items())
    )
    return f"<fieldset hidden><legend>Color by</legend>{buttons}</fieldset>"


def _scales(measures: dict[str, Measure]) -> str:
    """The scale of each measure; only the chosen one is shown, and none without style sheets."""
    parts = []
    for key, measure in measures.items():
        steps = "".join(
            f'<span style="background: {measure.color(step) or "none"}">{label}</span>'
            for step, label in enumerate(measure.labels)
        )
        parts.append(f'<div class="scale {key}" hidden>{steps}<em>{measure.about}</em></div>')
    return "".join(parts)


def _group(group, measures, longest: int, inline: bool, is_open: bool) -> str:
    columns = "".join(
        f'<div class="col"><strong>{escape(when)}</strong>'
        + "".join(_completion(one, measures, longest, inline) for one in of)
        + "</div>"
        for when, of in group.columns.items()
    )
    return (
        f"<details{' open' * is_open}><summary>{escape(group.question)}</summary>"
        f'<div class="cols">{columns}</div></details>'
    )


def _completion(tokens: Tokens, measures, longest: int, inline: bool) -> str:
    spans = "".join(
        _token(text, {name: of[i] for name, of in tokens.values.items()}, measures, inline)
        for i, text in enumerate(tokens.texts[:longest])
    )
    rest = len(tokens.texts) - longest
    cut = f" … {rest} more tokens" if rest > 0 else ""
    return f'<p><span class="q">{_reward(tokens)}&emsp;</span>{spans}{cut}</p>'


def _token(text: str, values: dict[str, float], measures, inline: bool) -> str:
    named = [(name, m, values[name]) for name, m in measures.items() if name in values]
    classes = " ".join(f"{m.key}{m.step(value)}" for _, m, value in named)
    said = " · ".join(f"{m.name} {_written(name, value)}" for name, m, value in named)
    style = ""
    if inline and named and (color := named[0][1].color(named[0][1].step(named[0][2]))):
        style = f' style="background: {color}"'
    shown = escape(text).replace("\n", "⏎\n")
    return f'<i tabindex="0" class="{classes}" title="{said}"{style}>{shown}</i>'


def _written(name: str, value: float) -> str:
    """The number with a true minus sign, and none before a zero."""
    if name == "kl":
        return f"{round(value, 4) + 0.0:.4f}"
    value = round(value, 2) + 0.0
    if name == "advantage":
        return f"{value:+.2f}".replace("-", "−")
    shown = f"{value:.2f}".replace("-", "−")
    return f"{shown} ({exp(value):.0%})" if name == "logprob" else shown


def _style(measures: dict[str, Measure]) -> str:
    rules = [STYLE]
    for key, measure in measures.items():
        chosen = f".rl-tok:has(input[value={key}]:checked)"
        rules.append(f"{chosen} .scale.{key}{{display:flex}}")
        rules.append(f"{chosen} i{{background:none!important}}")
        for step in range(len(measure.labels)):
            if color := measure.color(step):
                rules.append(f"{chosen} .{measure.key}{step}{{background:{color}!important}}")
    return "\n".join(rules)


STYLE = """
.rl-tok{color:var(--jp-content-font-color1,inherit);line-height:1.7}
.rl-tok fieldset[hidden]{display:flex;flex-wrap:wrap;gap:.2em 1.2em;border:0;padding:0;
margin:.3em 0}
.rl-tok legend{float:left;font-weight:600;padding:0}
.rl-tok label{cursor:pointer;display:inline-flex;gap:.3em;align-items:center}
.rl-tok input{margin:0;width:auto;height:auto}
.rl-tok .scale{flex-wrap:wrap;gap:2px;align-items:center;font-size:.85em;margin:.2em 0 .6em}
.rl-tok .scale span{padding:.1em .5em;border:1px solid rgba(128,128,128,.5)}
.rl-tok .scale em{flex-basis:100%;font-style:normal;opacity:.85}
.rl-tok summary{cursor:pointer;white-space:pre-wrap;font-size:.95em;margin:.5em 0;color:inherit}
.rl-tok .cols{display:grid;gap:1em;
grid-template-columns:repeat(auto-fit,minmax(min(100%,20em),1fr))}
.rl-tok p{margin:0 0 .35em;padding:.3em .5em;
border:1px solid rgba(128,128,128,.4);border-radius:6px;
white-space:pre-wrap;overflow-wrap:anywhere;font:.88em/1.6 ui-monospace,Menlo,Consolas,monospace}
.rl-tok p .q{float:right;font-family:system-ui,sans-serif;opacity:.85;margin-left:1em}
.rl-tok i{font-style:normal;position:relative;border-radius:3px;cursor:help;
print-color-adjust:exact}
.rl-tok i:hover{outline:1px solid currentColor}
.rl-tok i:focus{outline:2px solid currentColor}
.rl-tok i:focus::after{content:attr(title);position:absolute;left:0;top:100%;z-index:9;
width:max-content;max-width:18em;padding:.3em .6em;border-radius:6px;white-space:normal;
background:#1c2230;color:#fff;font:.9rem/1.4 system-ui,sans-serif}
""".strip()
