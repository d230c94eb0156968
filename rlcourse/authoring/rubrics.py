"""How the points of a question graded by hand split: a list next to its model answer.

    <!-- #region rubric="why_sum" -->
    - (1) Says that log-probs add because probabilities multiply.
    - (0.5) Gives an example with two tokens.
    <!-- #endregion -->

The parts sum to the question's points in the lesson. Where a course gives the question other
points, each part is scaled. Graders see it below the model answer; it is in no student's notebook.
"""

import re
from dataclasses import dataclass

from rlcourse.words import counted

PART = re.compile(r"- \((\d+(?:\.\d+)?)\) (.+)")


@dataclass(frozen=True)
class Part:
    points: float
    demand: str  # Markdown


def read_rubric(source: str) -> list[Part]:
    """The parts that a rubric's region lists.

    Raises:
        ValueError: a line is no part of one; the message quotes it.
    """
    parts: list[Part] = []
    for line in filter(str.strip, source.splitlines()):
        if found := PART.fullmatch(line.strip()):
            parts.append(Part(float(found[1]), found[2]))
        elif parts and line.startswith("  "):
            parts[-1] = Part(parts[-1].points, f"{parts[-1].demand} {line.strip()}")
        else:
            raise ValueError(line.strip())
    return parts


def total(parts: list[Part]) -> float:
    return sum(part.points for part in parts)


def scaled(parts: list[Part], points: float) -> list[Part]:
    """The same shares of another number of points."""
    factor = points / total(parts)
    return [Part(round(part.points * factor, 2), part.demand) for part in parts]


def shown(parts: list[Part]) -> str:
    """The rubric as Markdown that graders read."""
    lines = [f"- **{counted(part.points, 'point')}** {part.demand}" for part in parts]
    return "\n".join(["**How the points split**", "", *lines])
