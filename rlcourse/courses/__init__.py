"""A course: which lessons it has, in which order, and where their files are.

    current()                  the course that is meant here, see ``finding``
    course_at(directory)       the one in that directory
    current().lesson("ppo")    one of its lessons, by number, topic or name

A lesson is a folder, ``lessons/06_grpo/``: its text, ``lesson.md``, and for each of its exercises
two files named after the function, ``grpo_loss.md`` for the words and ``grpo_loss.py`` for the
code. Nothing else lists lessons or exercises: ``course.toml`` names the lessons in order, and the
exercise cells of a lesson's text are its exercises, in their order.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for pydantic.
"""

from typing import TYPE_CHECKING

from rlcourse.on_first_use import on_first_use

if TYPE_CHECKING:
    from rlcourse.courses.course import Course, LessonFolder
    from rlcourse.courses.finding import course_at, current, shipped

__all__ = ["Course", "LessonFolder", "course_at", "current", "shipped"]
_HOMES = {name: ".course" if name[0].isupper() else ".finding" for name in __all__}
__getattr__ = on_first_use(__name__, _HOMES)
