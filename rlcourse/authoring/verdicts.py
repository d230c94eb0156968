"""Read what a check cell left in a notebook: the outputs of type ``MIME_TYPE``."""

from dataclasses import dataclass

from nbformat import NotebookNode

from rlcourse.checks.telling.result import MIME_TYPE


@dataclass(frozen=True)
class CheckOutput:
    """A check's verdict, as ``check`` writes it next to the message. ``score`` is in [0, 1]."""

    exercise: str
    passed: bool
    unwritten: bool
    score: float
    message: str
    borrowed: bool = False
    once: tuple[str, ...] = ()
    mistake: str | None = None


def check_output(cell: NotebookNode) -> CheckOutput | None:
    """The last verdict among a cell's outputs; None where it shows none."""
    verdict = None
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if MIME_TYPE in data:
            found = data[MIME_TYPE]
            verdict = CheckOutput(
                exercise=str(found["exercise"]),
                passed=bool(found["passed"]),
                unwritten=bool(found.get("unwritten")),
                score=float(found["score"]),
                message=str(found["message"]),
                borrowed=bool(found.get("borrowed")),
                once=tuple(map(str, found.get("once", ()))),
                mistake=str(found["mistake"]) if found.get("mistake") else None,
            )
    return verdict
