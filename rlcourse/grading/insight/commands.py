"""``rlcourse insight``."""

from functools import partial
from pathlib import Path
from typing import Annotated

from rlcourse.grading.class_page import AS_JSON, COURSE, LESSON, NAMES, OUT, show
from rlcourse.installed import needing

TEMPLATE = Path(__file__).with_name("insight.html")  # all in it is escaped


def page(summary: dict, course, called: dict[str, str]) -> str:
    """The page of what ``summarized`` gave; whoever is in it is shown as they are `called`."""
    from rlcourse.grading.insight.summary import KINDS
    from rlcourse.reports.html_pages import render

    return render(
        TEMPLATE,
        title=f"What the class made of {course.lesson(summary['lesson']).heading}",
        found=summary,
        who=lambda student: f"{called[student]} ({student})" if student in called else student,
        kinds=KINDS,
        most_codes=4,  # of a group that are shown side by side
        maker="rlcourse insight",
    )


def insight(
    lesson: Annotated[str, LESSON],
    out: Annotated[Path | None, OUT] = None,
    as_json: Annotated[bool, AS_JSON] = False,
    names: Annotated[bool, NAMES] = False,
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Show how a class did on a lesson: which mistakes, how many made them, what they cost."""
    with needing("grade", "the report of a class"):
        from rlcourse.courses import current
        from rlcourse.grading.books.gradebook import Course
        from rlcourse.grading.books.people import names_of
        from rlcourse.grading.insight.graded_answers import read
        from rlcourse.grading.insight.summary import summarized
    taught = current(course)
    root = course or taught.directory
    found = summarized(read(root, lesson), names)
    called = names_of(Course.of(root).directory) if names else {}
    whole = partial(page, found, taught, called)
    show("insight", found["lesson"], found, whole, out, as_json, names)
