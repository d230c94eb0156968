"""What the untrusted side answers, believed only as far as it has the form that it should have."""

from dataclasses import dataclass

from rlcourse.checks.calling import Facts, Failure, Outcome
from rlcourse.grading import protocol

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
    """What a function did on the cases; no facts where there was no such function."""

    facts: Facts | None = None
    outcomes: tuple[Outcome, ...] = ()


def fields_of(answer) -> dict:
    if not isinstance(answer, dict):
        raise protocol.BrokenMessage("an answer without fields")
    return answer


def text_of(fields: dict, name: str) -> str:
    text = fields.get(name, "")
    return text[:MOST_CELLS_PRINTED] if isinstance(text, str) else ""


def failure_of(value) -> Failure | None:
    if value is None:
        return None
    good = isinstance(value, Failure) and all(
        isinstance(text, str) and len(text) <= LONGEST_COMPLAINT
        for text in (value.type, value.message, value.line, value.function)
    )
    if not good or not isinstance(value.line_number, int | None):
        raise protocol.BrokenMessage("an error that is none")
    return value


class ExamInParts:
    """An exam's answer as it comes, case by case: what came before a process was lost counts."""

    def __init__(self, cases: int):
        self._cases = cases
        self._facts: Facts | None = None
        self._outcomes: dict[int, Outcome] = {}

    def add(self, part: dict) -> bool:
        """Believe one more part, and say whether it was the last. ``BrokenMessage`` for others."""
        if part.get("over") is True:
            return True
        case = part.get("case")
        if self._facts is None:
            self._facts = _facts(part.get("facts"))
        elif type(case) is int and 0 <= case < self._cases and case not in self._outcomes:
            self._outcomes[case] = _outcome(part.get("outcome"))
        else:
            raise protocol.BrokenMessage("an answer to nothing")
        return False

    @property
    def begun(self) -> bool:
        return bool(self._outcomes)

    def answer(self, otherwise: Failure) -> ExamAnswer:
        """What was answered, and `otherwise` for the rest."""
        if self._facts is None:
            return ExamAnswer()
        rest = Outcome(error=otherwise)
        outcomes = tuple(self._outcomes.get(i, rest) for i in range(self._cases))
        return ExamAnswer(self._facts, outcomes)


def _facts(value) -> Facts:
    if not isinstance(value, Facts) or not isinstance(value.name, str):
        raise protocol.BrokenMessage("facts that are none")
    if not all(
        isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        for names in (value.parameters, value.unused, value.uses)
    ):
        raise protocol.BrokenMessage("facts that are none")
    return value


def _outcome(value) -> Outcome:
    """An outcome whose parts have the types that they are declared with."""
    failure_of(value.error if isinstance(value, Outcome) else 0)
    texts = (*_tuple(value.changed), *_tuple(value.warnings), value.printed)
    if not all(isinstance(text, str) for text in texts):
        raise protocol.BrokenMessage("an outcome that is none")
    if not isinstance(value.repeatable, bool):
        raise protocol.BrokenMessage("an outcome that is none")
    if not isinstance(value.gradients, dict) or not isinstance(value.after, dict):
        raise protocol.BrokenMessage("an outcome that is none")
    if not isinstance(value.refused, dict) or None in value.refused.values():
        raise protocol.BrokenMessage("an outcome that is none")
    for failure in value.refused.values():
        failure_of(failure)
    return value


def _tuple(value) -> tuple:
    if not isinstance(value, tuple):
        raise protocol.BrokenMessage("an outcome that is none")
    return value
