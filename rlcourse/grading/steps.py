"""What a submission is made to do, step by step, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from rlcourse.grading.answers import CellAnswer, ExamAnswer


@dataclass(frozen=True)
class Cell:
    """A step: run this source in the submission's namespace."""

    name: str
    source: str


@dataclass(frozen=True)
class ExamRequest:
    """A step: call the function on the cases that `message` holds, ready to send.

    `answer` replies to the calls of stand-ins, where the function is a test that asks for them.
    """

    name: str
    message: bytes
    cases: int
    answer: Callable[[dict, int], dict] | None = None


@dataclass(frozen=True)
class Incident:
    """Something that a person should know: a status, the step, and a few words."""

    status: str
    where: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.status} ({self.where}{detail})"


@dataclass
class Transcript:
    """Everything that a submission answered."""

    cells: dict[str, CellAnswer] = field(default_factory=dict)
    exams: dict[str, ExamAnswer] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
