"""Which notebooks and pictures are out of date."""

from collections.abc import Iterable, Iterator

import nbformat

from rlcourse import exercises
from rlcourse.authoring.builder import build
from rlcourse.authoring.verdicts import check_output
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam
from rlcourse.courses import Course, current
from rlcourse.errors import UserError


def drifted(lessons: Iterable[str]) -> Iterator[str]:
    """A sentence for each lesson whose notebooks must be built again, or executed again."""
    course = current()
    for lesson in sorted(lessons):
        try:
            build([lesson], check=True, progress=False)
            yield from stale_verdicts(course, lesson)
        except UserError as error:
            yield str(error)


def stale_verdicts(course: Course, lesson: str) -> Iterator[str]:
    """Checks whose verdict in the solution is out of date."""
    solution = course.solutions / f"{lesson}.ipynb"
    shown = {cell.id: check_output(cell) for cell in nbformat.read(solution, as_version=4).cells}
    for name in course.lesson(lesson).exercises:
        recorded = shown[f"check_{name}"]
        exercise = exercises.get(name)
        if exercise.contest:  # its accuracy is another one on another processor
            is_current = recorded is not None and recorded.passed
        else:
            exam, right = Exam(exercise, 0), exercise.reference
            said = exam.judge(describe(right), call_all(right, exam.cases)).headline
            is_current = recorded is not None and recorded.message.partition("\n")[0] == said
        if not is_current:
            yield (
                f"{solution}: the recorded result of {name}'s check is out of date: run "
                f"`rlcourse build {lesson} --execute` and commit the result."
            )
