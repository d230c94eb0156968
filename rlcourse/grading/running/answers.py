"""The untrusted side's answers, believed only as far as they have the right form."""

from dataclasses import dataclass
from typing import Any

from rlcourse.checks.asking.calling import Facts, Failure, Outcome
from rlcourse.checks.asking.wire import BrokenMessage

MOST_CELLS_PRINTED = 2000
LONGEST_COMPLAINT = 10_000
LATE = Failure("TimeoutError", "the function ran too long")
LOST = Failure("NoAnswer", "the process ended before this case was answered")


@dataclass(frozen=True)
class CellAnswer:
    printed: str = ""
    error: Failure | None = None


@dataclass(frozen=True)
class ExamAnswer:
    """What a function did on the cases; no facts if there was no such function."""

    facts: Facts | None = None
    outcomes: tuple[Outcome, ...] = ()
    borrowed: str = ""  # the library's function that it says it is, or calls
    asked: Any = None  # what answered its calls here, on the trusted side


def fields_of(answer) -> dict:
    if not isinstance(answer, dict):
        raise BrokenMessage("an answer without fields")
    return answer


def text_of(fields: dict, name: str) -> str:
    text = fields.get(name, "")
    return text[:MOST_CELLS_PRINTED] if isinstance(text, str) else ""


def failure_of(value) -> Failure | None:
    if value is None:
        return None
    good = isinstance(value, Failure) and all(
        isinstance(text, str) and len(text) <= LONGEST_COMPLAINT
        for text in (value.type, value.message, value.line, value.function, value.cause)
    )
    numbers = (value.line_number, value.called_from) if good else ("",)
    if not all(isinstance(number, int | None) for number in numbers):
        raise BrokenMessage("not an error")
    return value


class AnswersSoFar:
    """An exam's answers as they arrive: what came before a process was lost counts."""

    def __init__(self, cases: int):
        self._cases = cases
        self._facts: Facts | None = None
        self._borrowed = ""
        self._outcomes: list[Outcome] = []

    def add(self, part: dict) -> bool:
        """Accept the next one, and say whether it was the last. ``BrokenMessage`` for others."""
        if part.get("over") is True:
            self._borrowed = text_of(part, "borrowed")
            return True
        if self._facts is None:
            self._facts = _facts(part.get("facts"))
        elif self.begun < self._cases:
            self._outcomes.append(_outcome(part.get("outcome")))
        else:
            raise BrokenMessage("an answer to nothing")
        return False

    @property
    def begun(self) -> int:
        """How many questions were answered."""
        return len(self._outcomes)

    def answer(self, otherwise: Failure, asked: Any = None) -> ExamAnswer:
        """The answers, and `otherwise` for missing ones."""
        if self._facts is None:
            return ExamAnswer()
        rest = [Outcome(error=otherwise)] * (self._cases - self.begun)
        return ExamAnswer(self._facts, (*self._outcomes, *rest), self._borrowed, asked)


def _facts(value) -> Facts:
    if not isinstance(value, Facts) or not isinstance(value.name, str):
        raise BrokenMessage("not facts")
    if not all(
        isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        for names in (value.parameters, value.unused, value.uses)
    ):
        raise BrokenMessage("not facts")
    return value


def _outcome(value) -> Outcome:
    """An outcome whose parts have the types that they are declared with."""
    failure_of(value.error if isinstance(value, Outcome) else 0)
    texts = (*_tuple(value.changed), *_tuple(value.warnings), value.printed)
    if not all(isinstance(text, str) for text in texts):
        raise BrokenMessage("not an outcome")
    if not isinstance(value.repeatable, bool):
        raise BrokenMessage("not an outcome")
    if not isinstance(value.gradients, dict) or not isinstance(value.after, dict):
        raise BrokenMessage("not an outcome")
    if not isinstance(value.refused, dict) or None in value.refused.values():
        raise BrokenMessage("not an outcome")
    for failure in value.refused.values():
        failure_of(failure)
    return value


def _tuple(value) -> tuple:
    if not isinstance(value, tuple):
        raise BrokenMessage("not an outcome")
    return value
