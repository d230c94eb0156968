"""The trusted judge: a lesson's exams, drawn once for a class, and what a submission earns.

Cases come from a secret seed that stays with the course, so the same submission earns the same when
it is graded again, and nobody can work out the answers beforehand.
"""

import hashlib
import math
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from rlcourse.checks.exam import Exam
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.result import Result
from rlcourse.checks.testing import Answers
from rlcourse.errors import UserError
from rlcourse.exercises import get as get_exercise
from rlcourse.grading import protocol
from rlcourse.grading.answers import ExamAnswer
from rlcourse.grading.paper import Paper
from rlcourse.grading.sandbox import DIED, Cell, ExamRequest, Incident, Limits, Transcript
from rlcourse.grading.submission import is_demo

CHECK = "check_"


@dataclass(frozen=True)
class Mark:
    """What one exercise earned, in [0, ``possible``], and what the student is told."""

    exercise: str
    points: float
    possible: float
    passed: bool
    mistake: str | None
    message: str


class LessonExam:
    """All exams of a lesson: the visible cases and the hidden ones, in one paper per exercise."""

    def __init__(self, release: NotebookNode, secret: bytes, limits: Limits = Limits()):  # noqa: B008
        self.exercises: dict[str, Exercise] = {}
        for cell in release.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade"):
                try:
                    self.exercises[grade_id] = get_exercise(grade_id.removeprefix(CHECK))
                except UserError:
                    continue  # graded by a person
        self._exams = {
            grade_id: (
                Exam(exercise, _seed(secret, exercise.name, "visible")),
                Exam(exercise, _seed(secret, exercise.name, "hidden"), hidden=True),
            )
            for grade_id, exercise in self.exercises.items()
        }
        self._papers = {
            grade_id: Paper.draw((visible.cases, hidden.cases), _seed(secret, grade_id, "order"))
            for grade_id, (visible, hidden) in self._exams.items()
        }
        self.papers = {g: self._request(g, limits) for g in self._exams}

    def _request(self, grade_id: str, limits: Limits) -> ExamRequest:
        questions = self._papers[grade_id].questions()
        name = self.exercises[grade_id].name
        order = {"do": "exam", "function": name, "cases": questions, **limits.seconds}
        tests = self.exercises[grade_id].suspects is not None
        answer = Answers(self._papers[grade_id].cases) if tests else None
        return ExamRequest(grade_id, protocol.dumps(order), len(questions), answer)

    def steps(self, notebook: NotebookNode) -> list[Cell | ExamRequest]:
        """What is to be done for a notebook: its code in order, each check where it stands."""
        steps: list[Cell | ExamRequest] = []
        for cell in notebook.cells:
            if cell.cell_type != "code" or is_demo(cell):
                continue
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
            if grade_id in self.papers:
                steps.append(self.papers[grade_id])
            elif cell.source.strip():
                steps.append(Cell(f"cell {cell.id}", cell.source))
        return steps

    def judge(self, transcript: Transcript) -> dict[str, Mark]:
        """A mark for every exercise. What cannot be judged earns nothing."""
        results: dict[str, tuple[Result, Result] | None] = {}
        for grade_id, answer in transcript.exams.items():
            try:
                results[grade_id] = self._results(grade_id, answer)
            except Exception as error:
                incident = Incident(
                    DIED, grade_id, f"returned what cannot be compared, {type(error).__name__}"
                )
                transcript.incidents.append(incident)
        return {g: self._mark(g, transcript, results) for g in self.exercises}

    def worked_out(self) -> list[tuple]:
        """Which outcomes of declared mistakes are known, as hints for ``work_out``."""
        return [
            (grade_id, part, *key)
            for grade_id, exams in self._exams.items()
            for part, exam in enumerate(exams)
            for key in exam.known_outcomes()
        ]

    def work_out(self, hints: list) -> None:
        """Do the references, and the mistakes that are hinted at, once and for all."""
        for exams in self._exams.values():
            for exam in exams:
                exam.expected  # noqa: B018
        for grade_id, part, name, i, repeat in hints:
            self._exams[grade_id][part].know_outcome(name, i, repeat)

    def _results(self, grade_id: str, answer: ExamAnswer) -> tuple[Result, Result] | None:
        visible, hidden = self._exams[grade_id]
        if answer.facts is None:
            return None
        outcomes = self._papers[grade_id].collate(answer.outcomes)
        shown, unseen = outcomes[: len(visible.cases)], outcomes[len(visible.cases) :]
        return visible.judge(answer.facts, shown), hidden.judge(answer.facts, unseen)

    def _mark(self, grade_id, transcript: Transcript, results) -> Mark:
        exercise = self.exercises[grade_id]
        possible = float(exercise.points)
        found = results.get(grade_id)
        if found is None:
            message = f"✗ {exercise.name}: {self._why_none(exercise.name, grade_id, transcript)}"
            return Mark(exercise.name, 0.0, possible, False, None, message)
        visible, hidden = found
        telling = hidden if visible.passed and not hidden.passed else visible
        facts = transcript.exams[grade_id].facts
        if not telling.passed and facts is not None:
            telling = self._blame(telling, facts.uses, results)
        points = float(hidden.points)
        if not (math.isfinite(points) and 0 <= points <= possible):
            raise ValueError(f"{exercise.name} earned {points} of {possible} points")
        message = telling.message
        if telling.exercise == hidden.exercise and not visible.passed:
            counted = (
                f"{hidden.agreeing} of {hidden.cases} larger cases agree, which points are for"
            )
            message += f"\n  {counted}."
        for incident in transcript.incidents:
            if incident.where == grade_id:
                message += f"\n  It {_in_words(incident)}; what it had answered before counts."
        return Mark(exercise.name, points, possible, hidden.passed, hidden.mistake, message)

    def _blame(self, result: Result, uses: tuple[str, ...], results) -> Result:
        for name in uses:
            theirs = results.get(CHECK + name)
            if theirs and name != result.exercise and not theirs[1].passed:
                return result.blamed_on(theirs[1])
        return result

    @staticmethod
    def _why_none(name: str, grade_id: str, transcript: Transcript) -> str:
        for incident in transcript.incidents:
            if incident.where == grade_id:
                return f"no points, because it {_in_words(incident)}."
        if grade_id not in transcript.exams:
            return "it was not reached."
        cell = transcript.cells.get(f"cell {name}")
        if cell and cell.error:
            return f"not defined, because its cell ends in {cell.error.type}: {cell.error.message}"
        return "the notebook defines no function of that name."


def _in_words(incident: Incident) -> str:
    return f"{incident.status}{f' ({incident.detail})' if incident.detail else ''}"


def _seed(secret: bytes, *names: str) -> int:
    text = "/".join(names).encode()
    return int.from_bytes(hashlib.sha256(secret + text).digest()[:4], "little") >> 1


def course_secret(course: Path) -> bytes:
    """The course's own secret, made at first use; readable by the instructor only."""
    path = course / ".grading-secret"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        part = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(part, path)  # of two graders at once, one wins
        except FileExistsError:
            pass
        finally:
            part.unlink()
        return path.read_bytes()
