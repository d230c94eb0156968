"""Completions side by side, right ones and wrong ones told apart by color and by a mark."""

from html import escape as html_escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an evaluation shows itself as such a table
    from rlcourse.evaluation.results import Transcript

STYLE = """
.rl-transcripts { border-collapse: collapse; width: 100%; font-size: 0.9em; }
.rl-transcripts th, .rl-transcripts td { text-align: left; vertical-align: top;
  padding: 0.5em 0.7em; border-top: 1px solid rgba(128,128,128,.35); white-space: pre-wrap; }
.rl-transcripts td.right { border-left: 3px solid #0f8a5f; background: rgba(15,138,95,.10); }
.rl-transcripts td.wrong { border-left: 3px solid #d1495b; background: rgba(209,73,91,.10); }
.rl-transcripts td code { white-space: pre-wrap; }
"""


def escape(text: str) -> str:
    """Text as HTML in which JupyterLab finds no formula between two dollar signs."""
    return html_escape(text).replace("$", "<span>$</span>")


class TranscriptsTable:
    """A table of transcripts: HTML in a notebook, plain text elsewhere."""

    def __init__(self, columns: dict[str, list["Transcript"]], samples: int):
        self.columns = columns
        self.samples = samples

    def _repr_html_(self) -> str:
        names = list(self.columns)
        head = "".join(f"<th>{escape(name)}</th>" for name in ("problem", *names))
        rows = []
        for row in zip(*self.columns.values(), strict=True):
            reference = html_escape(row[0].answer)
            cells = f'<td title="{reference}">{escape(row[0].question)}</td>'
            for t in row:
                kind, mark = ("right", "✓") if t.correct else ("wrong", "✗")
                cells += (
                    f'<td class="{kind}"><code>{escape(t.completion)}</code>\n'
                    f"{mark} {t.samples_correct}/{self.samples} samples right</td>"
                )
            rows.append(f"<tr>{cells}</tr>")
        return (
            f"<style>{STYLE}</style><table class='rl-transcripts'><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )

    def __str__(self) -> str:
        lines = []
        for row in zip(*self.columns.values(), strict=True):
            lines.append(row[0].question)
            for name, t in zip(self.columns, row, strict=True):
                completion = " ⏎ ".join(t.completion.splitlines())
                lines.append(f"  {'✓' if t.correct else '✗'} {name}: {completion}")
        return "\n".join(lines)

    __repr__ = __str__


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
