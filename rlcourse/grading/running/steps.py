"""What a submission is made to do, step by step, and the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who only keeps a submission's account does without torch
    from rlcourse.grading.running.answers import CellAnswer, ExamAnswer

GRADED, TIMED_OUT, DIED, OVER_MEMORY = "graded", "timed out", "died", "over memory"
ENDINGS = (TIMED_OUT, DIED, OVER_MEMORY)
IMPORTED = "imported"
FLAGS = {"late": TIMED_OUT, "memory": OVER_MEMORY}


class Lost(Exception):
    """The process is gone or not to be trusted any further."""

    def __init__(self, status: str, detail: str = ""):
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True)
class Cell:
    """A step: run this source in the submission's namespace."""

    name: str
    source: str


@dataclass(frozen=True)
class ExamRequest:
    """A step: find the function by the `order`, then call it on one of the `questions` after the
    other. Both are messages, ready to send.

    `answer` makes what replies to the calls of stand-ins, which the function takes or finds beside
    it; each sitting has its own. `seconds` replaces the usual limit of processor time. A test
    that takes one is asked in `parts`, each in a process of its own: (places of the questions, the
    request). Otherwise a test that remembers what it saw could follow the majority.
    """

    name: str
    order: bytes
    questions: tuple[bytes, ...]
    answer: Callable[[], Callable[[dict, int], dict]] | None = None
    parts: tuple[tuple[tuple[int, ...], ExamRequest], ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Incident:
    """Something that a person should know: a status, the step, and a short description."""

    status: str
    where: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.status} ({self.where.removeprefix('check_')}{detail})"


@dataclass
class Transcript:
    """Everything that a submission answered."""

    cells: dict[str, CellAnswer] = field(default_factory=dict)
    exams: dict[str, ExamAnswer] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
