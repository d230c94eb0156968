"""What students write: the exercises of the current course.

    get("grpo_loss")    the declaration of that function; only its files are read
    names()             the names of all exercises in lesson order, without reading any
    all()               all of them, in lesson order
    beside("grpo_step") the names of its lesson's exercises, itself included
    above("grpo_step")  those of them that come before it

Their pages and modules are in the folders of their lessons; ``rlcourse.courses`` finds them.
"""

from difflib import get_close_matches
from functools import cache

from rlcourse.checks.exercise import Exercise
from rlcourse.courses import Course, current
from rlcourse.courses.declared import load_exercise
from rlcourse.errors import UserError

__all__ = ["above", "all", "beside", "get", "names"]


def names(course: Course | None = None) -> list[str]:
    """The names of all exercises, in lesson order."""
    return list((course or current()).exercises)


def all(course: Course | None = None, contests: bool = False) -> list[Exercise]:
    """All exercises whose answers are compared with a right one, in lesson order; with `contests`
    also those in which a trainer is judged by what it has trained."""
    course = course or current()
    found = [_loaded(course, name) for name in names(course)]
    return [exercise for exercise in found if contests or not exercise.contest]


def get(name: str, course: Course | None = None) -> Exercise:
    """The exercise of that name; ``UserError`` with the nearest name if there is none."""
    course = course or current()
    if name in course.exercises:
        return _loaded(course, name)
    if name in course.renamed:
        raise UserError(f"The exercise “{name}” is called “{course.renamed[name]}” now.")
    nearest = get_close_matches(str(name), course.exercises, n=1, cutoff=0.0)
    hint = f"; did you mean “{nearest[0]}”?" if nearest else ": this course has no exercises."
    raise UserError(f"There is no exercise “{name}”{hint}")


def above(name: str, course: Course | None = None) -> list[str]:
    """The names of its lesson's exercises that come before it; none if it is in no lesson."""
    same = beside(name, course)
    return same[: same.index(name)] if same else []


def beside(name: str, course: Course | None = None) -> list[str]:
    """The names of its lesson's exercises, itself included; none if it is in no lesson."""
    lessons = (course or current()).exercises
    return [other for other, lesson in lessons.items() if lesson is lessons.get(name)]


@cache
def _loaded(course: Course, name: str) -> Exercise:
    return load_exercise(course, course.exercises[name], name)
