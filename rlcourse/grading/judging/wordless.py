"""Answers of code that ran beside right implementations, without a word of its own.

Such code can ask a right implementation whatever it likes and put the result into everything that
it says: an exception's message, its type's name, a line of "source", what it prints, the value that
it returns. Where any of this were shown, a student could read right answers off the feedback and
hand them in next time. So of these answers only the judge's own words are told: points, which
declared mistake it is, and which line of the notebook an error came from.
"""

import builtins
from collections.abc import Collection, Sequence
from dataclasses import replace

from nbformat import NotebookNode

from rlcourse.checks.asking.calling import Failure, Outcome
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.telling.result import Result
from rlcourse.grading.running.answers import LOST
from rlcourse.grading.running.steps import Transcript

KEPT_BACK = (
    "What it returns beside right functions is not shown: with those above it fixed, its own check "
    "says more."
)


def lines_of(notebook: NotebookNode | None) -> frozenset[str]:
    """The lines of code that a submission holds, and that may therefore be quoted."""
    cells = notebook.cells if notebook else ()
    return frozenset(
        line.strip()
        for cell in cells
        if cell.cell_type == "code"
        for line in cell.source.split("\n")
    )


def make_wordless(
    transcript: Transcript, exams: Collection[str], first: Transcript, lines: Collection[str]
) -> None:
    """Change the answers to these `exams`: facts are those that the `first` run found out, before
    anything right was in reach, and errors quote only `lines`."""
    for grade_id in exams:
        answer, facts = transcript.exams[grade_id], first.exams[grade_id].facts
        name = facts.name if facts else ""
        outcomes = tuple(_outcome(outcome, name, lines) for outcome in answer.outcomes)
        transcript.exams[grade_id] = replace(answer, facts=facts, outcomes=outcomes)


def _outcome(outcome: Outcome, name: str, lines: Collection[str]) -> Outcome:
    error = outcome.error and _failure(outcome.error, name, lines)
    refused = {n: _failure(failure, name, lines) for n, failure in outcome.refused.items()}
    return replace(outcome, error=error, refused=refused, warnings=(), printed="")


def _failure(failure: Failure, name: str, lines: Collection[str]) -> Failure:
    kind = getattr(builtins, failure.type, None)
    known = failure.type == LOST.type or (isinstance(kind, type) and issubclass(kind, Exception))
    written = failure.line.strip() in lines
    return Failure(
        failure.type if known else "Exception",
        "",
        failure.line_number if written else None,
        failure.line if written else "",
        failure.function if failure.function == name else "",
    )


def tell_without_values(verdict: Sequence[Result], exercise: Exercise) -> list[Result]:
    """The verdicts of a second run: what they say of an answer is ours, word for word."""
    declared = {mistake.name: mistake.diagnosis for mistake in exercise.mistakes}
    told = []
    for result in verdict:
        said = [KEPT_BACK]
        if result.mistake:  # named by the judge, of declared ones
            said.insert(0, f"Its numbers are those of {result.mistake}.")
            said[1:1] = [declared[result.mistake]] if result.mistake in declared else []
        sentences = () if result.passed or result.unwritten else tuple(said)
        told.append(
            replace(result, sentences=sentences, example=None, printed="", warning="", place=None)
        )
    return told
