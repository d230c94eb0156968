"""Completions side by side, right ones and wrong ones told apart by color and by a mark.

In a notebook they look as in a run's report: the question above, the answers side by side as
far as there is room. No table and no style sheet: JupyterLab and the site lay out tables in their
own way, and a notebook that is not trusted yet has no style sheets.
"""

import re
from decimal import Decimal, InvalidOperation
from html import escape as html_escape
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:  # an evaluation shows itself in this way
    from rlcourse.evaluation.scores import Transcript

RIGHT, WRONG = "15, 138, 95", "209, 73, 91"  # RGB, to be read on white and on black
CARD = (
    "border: 1px solid rgba(128, 128, 128, .35); border-radius: 8px; padding: .6em .8em; "
    "margin: 0 0 .7em; max-width: 56em; text-align: left; line-height: 1.45"
)
QUESTION = "white-space: pre-wrap; overflow-wrap: anywhere; margin-bottom: .5em"
ANSWERS = (
    "display: grid; gap: .6em; "
    "grid-template-columns: repeat(auto-fit, minmax(min(100%, 14em), 1fr))"
)
ANSWER = (
    "border-left: 4px solid rgb({0}); background: rgba({0}, .1); border-radius: 6px; "
    "padding: .4em .7em; min-width: 0"
)
WRITTEN = (
    "white-space: pre-wrap; overflow-wrap: anywhere; font-size: .92em; "
    "font-family: var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace)"
)
MARKED = '<mark style="background: rgba(240, 180, 0, .28); color: inherit">'
SMALL = "font-size: .86em"
NUMBER = re.compile(r"(?:[-−]\s*)?(?:[$€£]\s*)?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
OPENINGS = ("####", "<answer>")  # what announces the answer: a number after it is the one meant


class TranscriptsTable:
    """Transcripts of the same problems: HTML in a notebook, plain text elsewhere."""

    def __init__(self, columns: dict[str, list["Transcript"]], samples: int):
        self.columns = columns
        self.samples = samples

    def _repr_html_(self) -> str:
        rows = zip(*self.columns.values(), strict=True)
        return f'<div class="rl-transcripts">{"".join(map(self._problem, rows))}</div>'

    def _problem(self, row: tuple["Transcript", ...]) -> str:
        answers = zip(self.columns, row, strict=True)
        reference = f'<div style="{WRITTEN}">{escape(row[0].answer)}</div>'
        more = (
            f'<details style="{SMALL}; margin-top: .5em">'
            f'<summary style="cursor: pointer">reference answer</summary>{reference}</details>'
        )
        return problem_card(row[0].question, [self._answer(*answer) for answer in answers], more)

    def _answer(self, name: str, transcript: "Transcript") -> str:
        said = f" · {transcript.samples_correct} of {self.samples} samples right"
        written = (name, transcript.completion, transcript.given, transcript.correct)
        return answer_card(*written, said if self.samples else "")

    def __str__(self) -> str:
        lines = []
        for row in zip(*self.columns.values(), strict=True):
            lines.append(row[0].question)
            for name, t in zip(self.columns, row, strict=True):
                completion = " ⏎ ".join(t.completion.splitlines())
                lines.append(f"  {'✓' if t.correct else '✗'} {name}: {completion}")
        return "\n".join(lines)

    __repr__ = __str__


def problem_card(question: str, answers: list[str], more: str = "") -> str:
    """A question and the answers to it, from ``answer_card``, side by side as far as they fit."""
    return (
        f'<div style="{CARD}"><div style="{QUESTION}">{escape(question)}</div>'
        f'<div style="{ANSWERS}">{"".join(answers)}</div>{more}</div>'
    )


def answer_card(name: str, text: str, given: str | None, correct: bool, more: str = "") -> str:
    """A completion with the number `given` that was read from it marked, and its verdict."""
    color, mark, word = (RIGHT, "✓", "right") if correct else (WRONG, "✗", "wrong")
    written = str(with_answer_marked(text, given)) or "(nothing)"
    return (
        f'<div style="{ANSWER.format(color)}"><div style="{SMALL}">{escape(name)} '
        f'<strong><span style="color: rgb({color})">{mark}</span> {word}</strong>{more}</div>'
        f'<div style="{WRITTEN}">{written.replace("<mark>", MARKED)}</div></div>'
    )


def side_by_side(
    columns: dict[str, list["Transcript"]], samples: int, count: int
) -> TranscriptsTable:
    """`count` problems worth reading out of these columns, whose rows are the same problems."""
    chosen = telling(*columns.values(), count=count)
    return TranscriptsTable(
        {name: [ts[i] for i in chosen] for name, ts in columns.items()}, samples
    )


def telling(*columns: list["Transcript"], count: int) -> list[int]:
    """Indices of `count` problems worth reading: newly solved, lost, still wrong, always right."""
    outcomes = {
        i: tuple(t.correct for t in row) for i, row in enumerate(zip(*columns, strict=True))
    }
    changed = [i for i, outcome in outcomes.items() if len(set(outcome)) > 1]
    lost = [i for i in changed if not outcomes[i][-1]]
    gained = [i for i in changed if outcomes[i][-1]]
    wrong = [i for i, outcome in outcomes.items() if not any(outcome)]
    right = [i for i, outcome in outcomes.items() if all(outcome)]
    share = max(1, count // 4)
    picked = lost[:share] + wrong[:share] + right[:share]
    picked = gained[: count - len(picked)] + picked
    rest = [i for i in outcomes if i not in picked]
    return (picked + rest)[:count]


def escape(text: str) -> str:
    """Text as HTML in which JupyterLab finds no formula between two dollar signs."""
    return html_escape(text).replace("$", "<span>$</span>")


def with_answer_marked(text: str, given: str | None) -> Markup:
    """The text, escaped, with the number `given` that was read from it in a ``<mark>``.

    It is the first number of that value after the last opening (``####``, ``<answer>``), or else
    the last one of the text. Unmarked where no number has the value.
    """
    span = answer_span(text, given)
    if span is None:
        return Markup(escape(text))
    start, end = span
    before, answer, after = map(escape, (text[:start], text[start:end], text[end:]))
    return Markup(f"{before}<mark>{answer}</mark>{after}")


def answer_span(text: str, given: str | None) -> tuple[int, int] | None:
    """Start and end of the answer in `text`, or None."""
    value = _value(given or "")
    if value is None:
        return None
    same = [match.span() for match in NUMBER.finditer(text) if _value(match.group()) == value]
    announced = max(text.rfind(opening) for opening in OPENINGS)
    after = [span for span in same if announced >= 0 and span[0] > announced]
    chosen = after[:1] or same[-1:]
    return chosen[0] if chosen else None


def _value(number: str) -> Decimal | None:
    try:
        return Decimal(re.sub(r"[\s$€£,]", "", number).replace("−", "-"))
    except InvalidOperation:
        return None
