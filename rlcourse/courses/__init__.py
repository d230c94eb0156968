"""A course: which lessons it has, in which order, and where their files are.

    current()                  the course that is meant here, see ``finding``
    course_at(directory)       the one in that directory
    current().lesson("ppo")    one of its lessons, by number, topic or name

A lesson is a folder, ``lessons/06_grpo/``: its text, ``lesson.md``, and for each of its exercises
two files named after the function, ``grpo_loss.md`` for the words and ``grpo_loss.py`` for the
code. Nothing else lists lessons or exercises: ``course.toml`` names the lessons in order, and the
exercise cells of a lesson's text are its exercises, in their order.
"""

from rlcourse.courses.course import Course, LessonFolder
from rlcourse.courses.finding import course_at, current, shipped

__all__ = ["Course", "LessonFolder", "course_at", "current", "shipped"]
