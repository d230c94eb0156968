"""What the untrusted side answers, believed only as far as it has the form that it should have."""

from dataclasses import dataclass

from rlcourse.checks.calling import Facts, Failure, Outcome
from rlcourse.grading import protocol

MOST_CELLS_PRINTED = 2000
LONGEST_COMPLAINT = 10_000


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


def exam_answer(answer: dict, cases: int) -> ExamAnswer:
    if answer.get("missing") is True:
        return ExamAnswer()
    facts, outcomes = answer.get("facts"), answer.get("outcomes")
    if not isinstance(facts, Facts) or not isinstance(outcomes, list) or len(outcomes) != cases:
        raise protocol.BrokenMessage("an answer without outcomes")
    if not isinstance(facts.name, str) or not all(
        isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        for names in (facts.parameters, facts.unused, facts.uses)
    ):
        raise protocol.BrokenMessage("facts that are none")
    return ExamAnswer(facts, tuple(map(_outcome, outcomes)))


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
    return value


def _tuple(value) -> tuple:
    if not isinstance(value, tuple):
        raise protocol.BrokenMessage("an outcome that is none")
    return value
