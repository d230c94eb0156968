"""Read what a check cell left in a notebook: the outputs of type ``CHECK_MIME``."""

from dataclasses import dataclass

from nbformat import NotebookNode

CHECK_MIME = "application/vnd.rlcourse.check+json"


@dataclass(frozen=True)
class CheckOutput:
    """A check's verdict, as ``check`` writes it beside the message. ``score`` is in [0, 1]."""

    exercise: str
    passed: bool
    score: float
    message: str


def check_output(cell: NotebookNode) -> CheckOutput | None:
    """The last verdict among a cell's outputs; None where it shows none."""
    verdict = None
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if CHECK_MIME in data:
            found = data[CHECK_MIME]
            verdict = CheckOutput(
                exercise=str(found["exercise"]),
                passed=bool(found["passed"]),
                score=float(found["score"]),
                message=str(data.get("text/plain", "")),
            )
    return verdict
