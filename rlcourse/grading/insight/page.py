"""The report of a class as a page, in the look of the other reports. All of it is escaped."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from rlcourse.courses import Course
from rlcourse.grading.insight.summary import KINDS
from rlcourse.reports.html_pages import render

TEMPLATE = Path(__file__).with_name("insight.html")
MOST_CODES = 4  # of a group that are shown side by side
MOST_SAME = 12


def page(summary: dict, course: Course, called: Mapping[str, str] = MappingProxyType({})) -> str:
    """The page of what ``summarized`` gave; whoever is in it is shown as they are `called`."""
    return render(
        TEMPLATE,
        title=f"What the class made of {course.lesson(summary['lesson']).heading}",
        found=summary,
        who=lambda student: f"{called[student]} ({student})" if student in called else student,
        kinds=KINDS,
        most_codes=MOST_CODES,
        most_same=MOST_SAME,
        maker="rlcourse insight",
    )
