"""The trusted judge: a lesson's exams, drawn once for a class, and what a submission earns.

Cases come from a secret seed that stays with the course, so the same submission earns the same when
it is graded again, and no student can work out the answers beforehand.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from nbformat import NotebookNode

from rlcourse.checks.asking import wire
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.follow_through import UNDEFINED, counting, is_better, replaceable
from rlcourse.checks.judging.testing import Answers, standing_for
from rlcourse.checks.judging.trial import Trial
from rlcourse.checks.telling.result import Result
from rlcourse.courses import Course
from rlcourse.errors import UserError
from rlcourse.exercises import get as get_exercise
from rlcourse.grading.handing_in.submission import is_demo
from rlcourse.grading.judging import finding
from rlcourse.grading.judging.locating import FunctionCells
from rlcourse.grading.judging.mark import Mark
from rlcourse.grading.judging.questions import Questions
from rlcourse.grading.judging.wordless import lines_of, make_wordless, tell_without_values
from rlcourse.grading.running import steps as running
from rlcourse.grading.running.answers import ExamAnswer
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.steps import (
    DIED,
    IMPORTED,
    Cell,
    ExamRequest,
    Incident,
    Transcript,
)

CHECK = "check_"
Verdict = tuple[Result, Result]  # on the visible cases, on the hidden ones


class LessonExam:
    """All exams of a lesson: the visible cases and the hidden ones, mixed for each exercise."""

    def __init__(
        self,
        release: NotebookNode,
        secret: bytes,
        limits: Limits = Limits(),  # noqa: B008
        course: Course | None = None,  # default: the one that is meant here
    ):
        self.exercises: dict[str, Exercise] = {}
        self._patience = limits.patience
        for cell in release.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade"):
                try:
                    self.exercises[grade_id] = get_exercise(grade_id.removeprefix(CHECK), course)
                except UserError:
                    continue  # graded by a person
        self._trials = {
            grade_id: Trial(exercise, variant_of(secret, exercise.name))
            for grade_id, exercise in self.exercises.items()
            if exercise.contest
        }
        self._exams = {
            grade_id: (
                Exam(exercise, _seed(secret, exercise.name, "visible")),
                Exam(exercise, _seed(secret, exercise.name, "hidden"), hidden=True),
            )
            for grade_id, exercise in self.exercises.items()
            if grade_id not in self._trials
        }
        self._questions = {
            grade_id: Questions.draw(
                (visible.cases, hidden.cases), _seed(secret, grade_id, "order")
            )
            for grade_id, (visible, hidden) in self._exams.items()
        }
        found = [exercise for exercise in self.exercises.values() if not exercise.suspects]
        library = {e.name: (e.reference.__module__, e.reference.__name__) for e in found}
        order = {"do": "exam", "library": library, **limits.seconds}
        self._orders = {g: {**order, "function": e.name} for g, e in self.exercises.items()}
        self._messages = {
            g: tuple(_question(case) for case in questions.asked())
            for g, questions in self._questions.items()
        }
        self.requests = {
            g: self._trial_of(g) if g in self._trials else self._request(g) for g in self.exercises
        }
        # Numbers by which a stand-in calls for a reference, where that is right and not to be seen.
        self._numbers = {g: _seed(secret, g, "number") for g in self.exercises}

    def _trial_of(self, grade_id: str) -> ExamRequest:
        """A trainer is called once, on a variant that only the course's secret knows."""
        trial, seconds = self._trials[grade_id], self._trials[grade_id].contest.seconds
        times = {"seconds": seconds, "wall": seconds * self._patience}
        order = wire.dumps({**self._orders[grade_id], **times})
        asked = (_question(trial.case.question()),)
        return ExamRequest(grade_id, order, asked, trial.sitting, seconds=seconds)

    def _request(self, grade_id: str) -> ExamRequest:
        order, messages = wire.dumps(self._orders[grade_id]), self._messages[grade_id]
        whole = ExamRequest(grade_id, order, messages)
        if self.exercises[grade_id].suspects is None:
            return whole
        # The visible ones together, as they earn nothing; the hidden ones one by one.
        questions = self._questions[grade_id]
        hidden = questions.places(len(self._exams[grade_id][0].cases))
        visible = tuple(k for k in range(len(messages)) if k not in hidden)
        parts = []
        for places in (visible, *((k,) for k in hidden)):
            asked = tuple(questions.asked()[k] for k in places)
            part = tuple(messages[k] for k in places)
            parts.append((places, ExamRequest(grade_id, order, part, partial(Answers, asked))))
        return replace(whole, parts=tuple(parts))

    def steps(self, notebook: NotebookNode) -> list[Cell | ExamRequest]:
        """What is to be done for a notebook: its code in order, each check where it stands, or
        below it where the function is written further down."""
        steps: list[Cell | ExamRequest] = []
        places = FunctionCells(notebook)
        later: dict[int, list[ExamRequest]] = defaultdict(list)
        for i, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or is_demo(cell):
                continue
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
            if grade_id in self.requests:
                at = places.judged_after(self.exercises[grade_id].name, i)
                later[at].append(self.requests[grade_id])
            elif cell.source.strip():
                steps.append(Cell(f"cell {cell.id}", cell.source))
            steps += later.pop(i, [])
        return steps

    def judge(
        self,
        transcript: Transcript,
        notebook: NotebookNode | None = None,
        ask: Callable[[dict[str, ExamRequest]], Transcript] | None = None,
    ) -> dict[str, Mark]:
        """A mark for every exercise. A function that cannot be judged earns nothing. If a wrong
        function is also written elsewhere in the `notebook`, the message says so. Functions that
        use wrong ones are called once more, through `ask`, with right ones in their place, those
        above first; it adds to the `transcript` what students' tests say."""
        lines = lines_of(notebook)
        tests = {g for g, exercise in self.exercises.items() if exercise.suspects}
        results = self._verdicts(transcript, self.exercises.keys() - tests)
        wrong = {g: self._wrong_below(g, transcript, results) for g in results}
        requests = self.requests_again(wrong)
        asked_again = ask(requests) if ask else Transcript()
        make_wordless(asked_again, set(asked_again.exams), transcript, lines)
        make_wordless(transcript, tests & transcript.exams.keys(), transcript, lines)
        results |= self._verdicts(transcript, tests)
        wrong |= {g: self._wrong_below(g, transcript, results) for g in tests & results.keys()}
        again, answers = self._verdicts(asked_again, requests), dict(transcript.exams)
        for grade_id, names in wrong.items():
            if first := results[grade_id]:
                replaced = [other.name for other in self._replaced(grade_id, names)]
                second = again.get(grade_id)
                told = second and tell_without_values(second, self.exercises[grade_id])
                found = counting(first, told, names, replaced)
                results[grade_id] = found[0], found[1]
                if second and is_better(first, second):
                    answers[grade_id], wrong[grade_id] = asked_again.exams[grade_id], {}
        marks = {
            g: self._mark(g, transcript, results.get(g), answers.get(g), tuple(wrong.get(g, ())))
            for g in self.exercises
        }
        places = FunctionCells(notebook) if notebook else None
        for g, mark in marks.items():
            if places and not mark.passed:
                said = places.elsewhere(mark.exercise, g, transcript)
                marks[g] = replace(mark, message=f"{mark.message}\n  {said}") if said else mark
        return marks

    def worked_out(self) -> list[tuple]:
        """Which outcomes of declared mistakes are known, as warm-up keys for ``work_out``."""
        return [
            (grade_id, part, *key)
            for grade_id, exams in self._exams.items()
            for part, exam in enumerate(exams)
            for key in exam.known_outcomes()
        ]

    def work_out(self, warm_up_keys: list) -> None:
        """Compute the references, and the mistakes that the keys name, once for the whole class."""
        for exams in self._exams.values():
            for exam in exams:
                exam.expected  # noqa: B018
        for grade_id, part, name, i, repeat in warm_up_keys:
            self._exams[grade_id][part].know_outcome(name, i, repeat)

    def _verdicts(
        self, transcript: Transcript, exams: Collection[str]
    ) -> dict[str, Verdict | None]:
        """The verdict on each answer to one of the `exams`; None if there was no such function."""
        found: dict[str, Verdict | None] = {}
        for grade_id, answer in transcript.exams.items():
            if grade_id not in exams:
                continue
            try:
                verdict = self._results(grade_id, answer)
            except Exception as error:
                incident = Incident(
                    DIED, grade_id, f"returned what cannot be compared, {type(error).__name__}"
                )
                transcript.incidents.append(incident)
                continue
            if verdict and CHECK + answer.borrowed in self.exercises:
                visible, hidden = (result.as_borrowed(answer.borrowed) for result in verdict)
                verdict = visible, hidden
                detail = f"the library's own {answer.borrowed}"
                transcript.incidents.append(Incident(IMPORTED, grade_id, detail))
            found[grade_id] = verdict
        return found

    def _wrong_below(self, grade_id: str, transcript: Transcript, results) -> dict[str, str]:
        """The wrong functions that a failing one uses, with what is said of each."""
        facts = transcript.exams[grade_id].facts
        if facts is None or not (mine := results[grade_id]) or _is_settled(mine):
            return {}
        above, wrong = self._above(grade_id), {}
        for other, exercise in self.exercises.items():
            theirs = results.get(other)
            if other == grade_id or exercise.suspects or exercise.name not in facts.uses:
                continue
            if theirs and not (theirs[0].passed and theirs[1].passed):
                wrong[exercise.name] = theirs[1].state
            elif theirs is None and exercise in above:
                wrong[exercise.name] = UNDEFINED if other in results else "could not be judged"
        return wrong

    def _above(self, grade_id: str) -> list[Exercise]:
        return list(self.exercises.values())[: list(self.exercises).index(grade_id)]

    def _replaced(self, grade_id: str, wrong: dict[str, str]) -> list[Exercise]:
        above = [other for other in self._above(grade_id) if other.name in wrong]
        return replaceable(self.exercises[grade_id], above)

    def requests_again(self, wrong: dict[str, dict[str, str]]) -> dict[str, ExamRequest]:
        """The second exam of each function that uses `wrong` ones, those above first."""
        asked = {g: self._request_again(g, wrong[g]) for g in self.exercises if g in wrong}
        return {g: request for g, request in asked.items() if request}

    def _request_again(self, grade_id: str, wrong: dict[str, str]) -> ExamRequest | None:
        """The same exam, with stand-ins for references in place of the wrong functions that it
        uses: of functions above it, never of itself or of one below."""
        in_place = {
            other.name: standing_for(
                other.reference, self._numbers[CHECK + other.name], other.reference
            )
            for other in self._replaced(grade_id, wrong)
        }
        if not in_place:
            return None
        order = wire.dumps({**self._orders[grade_id], "in_place": in_place})
        answer = partial(Answers, (Case("", in_place),))
        return ExamRequest(grade_id, order, self._messages[grade_id], answer)

    def _results(self, grade_id: str, answer: ExamAnswer) -> Verdict | None:
        if answer.facts is None:
            return None
        if trial := self._trials.get(grade_id):
            holder = answer.asked.holder if answer.asked else None
            result = trial.judge(answer.facts, answer.outcomes[0], holder)
            return result, result
        visible, hidden = self._exams[grade_id]
        outcomes = self._questions[grade_id].collate(answer.outcomes)
        shown, unseen = outcomes[: len(visible.cases)], outcomes[len(visible.cases) :]
        return visible.judge(answer.facts, shown), hidden.judge(answer.facts, unseen)

    def _mark(
        self,
        grade_id: str,
        transcript: Transcript,
        found: Verdict | None,
        answer: ExamAnswer | None,
        because: tuple[str, ...],
    ) -> Mark:
        exercise = self.exercises[grade_id]
        possible = float(exercise.points)
        ended = [i for i in transcript.incidents if i.where == grade_id and i.status != IMPORTED]
        status = ended[0].status if ended else ""
        if found is None or answer is None:
            why = self._why_none(exercise.name, grade_id, transcript)
            cell = transcript.cells.get(f"cell {exercise.name}")
            state = finding.state_unjudged(cell.error if cell else None, status)
            said = f"✗ {exercise.name}: {why}"
            zero = Mark(exercise.name, 0.0, possible, False, None, said, state=state)
            return replace(zero, sentences=(why,))
        visible, hidden = found
        telling = hidden if visible.passed and not hidden.passed else visible
        points = float(hidden.points)
        if not (math.isfinite(points) and 0 <= points <= possible):
            raise ValueError(f"{exercise.name} earned {points} of {possible} points")
        # What to do about a blank cell is for who sits in front of it.
        message = telling.headline if telling.unwritten else telling.message
        judged_so = visible.passed or visible.borrowed or telling.unwritten
        if not (judged_so or grade_id in self._trials):
            agree = f"{hidden.agreeing} of {hidden.cases} agree"
            message += f"\n  Points are for larger cases, of which {agree}."
        right = visible.passed and hidden.passed  # perhaps in the second run, once another is
        for incident in () if right else ended:
            message += f"\n  It {_in_words(incident)}; what it answered before that counts."
        raises = self._mostly_raises(grade_id, found, answer)
        example = None if right or telling.unwritten or telling.borrowed else telling.example
        return Mark(
            exercise.name,
            points,
            possible,
            hidden.passed,
            hidden.mistake,
            message,
            hidden.once,
            state=finding.state_of(telling, right, bool(hidden.mistake), raises, status),
            sentences=() if right and not telling.once else telling.sentences,
            heading=example.heading if example else "",
            case=tuple(example.lines()) if example else (),
            because=() if right else because,
            measured=hidden.measured.as_json() if hidden.measured else None,
        )

    def _mostly_raises(self, grade_id: str, verdict: Verdict, answer: ExamAnswer) -> bool:
        """Whether most of what is wrong are exceptions where a value is expected."""
        if grade_id in self._trials:
            return answer.outcomes[0].error is not None
        questions = self._questions[grade_id]
        pairs = zip(questions.cases, questions.collate(answer.outcomes), strict=True)
        raising = sum(bool(outcome.error) and not case.raises for case, outcome in pairs)
        return 2 * raising >= max(1, sum(result.cases - result.agreeing for result in verdict))

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
        return "when its turn came, no function had that name."


def _question(case: Case) -> bytes:
    return wire.dumps({"do": "case", "case": case})


def _is_settled(verdict: Verdict) -> bool:
    """Whether another verdict has nothing to add."""
    return bool(verdict[1].borrowed) or all(result.passed for result in verdict)


def _in_words(incident: Incident) -> str:
    happened = "used too much memory" if incident.status == running.OVER_MEMORY else incident.status
    return f"{happened}{f' ({incident.detail})' if incident.detail else ''}"


def _seed(secret: bytes, *names: str) -> int:
    text = "/".join(names).encode()
    return int.from_bytes(hashlib.sha256(secret + text).digest()[:4], "little") >> 1


def variant_of(secret: bytes, name: str) -> int:
    """Which variant of a contest a course grades on: too large a number to be guessed."""
    return int.from_bytes(hashlib.sha256(secret + f"{name}/variant".encode()).digest()[:16]) or 1
