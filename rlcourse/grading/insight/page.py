"""The report of a class as a page, in the look of the other reports. All of it is escaped."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import ChoiceLoader, Environment, FileSystemLoader
from markupsafe import Markup, escape

from rlcourse import published
from rlcourse.courses import Course
from rlcourse.errors import UserError
from rlcourse.exercises import get as get_exercise
from rlcourse.grading.insight.paragraphs import Paragraph, answering
from rlcourse.grading.insight.summing import KINDS, Group, Insight
from rlcourse.grading.judging.finding import NAMED
from rlcourse.grading.pages.formulas import FormulaExporter
from rlcourse.grading.pages.markdown import harmless
from rlcourse.reports.html_pages import environment, write_page
from rlcourse.words import amount

CODE = re.compile(r"`([^`]+)`")
MOST_CODES = 4  # of a group that are shown side by side
MOST_SAME = 12


def write(
    path: Path,
    insight: Insight,
    course: Course,
    names: bool = False,
    called: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the page. With `names`, students are on it, with what they are `called`.

    Raises:
        UserError: `path` is no .html, or a file that no report of ours is.
    """
    write_page(path, render(insight, course, names, called))


def render(
    insight: Insight,
    course: Course,
    names: bool = False,
    called: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The page, as text."""
    lesson = insight.recorded.lesson
    known = next((x for x in course.lessons if x.name == lesson), None)
    return (
        _environment()
        .get_template("insight.html")
        .render(
            title=f"What the class made of {known.heading if known else lesson}",
            insight=insight,
            recorded=insight.recorded,
            names=names,
            who=lambda student: f"{called[student]} ({student})" if student in called else student,
            kinds=KINDS,
            told=[(group, _paragraph(group, course)) for group in insight.worth_telling],
            most_codes=MOST_CODES,
            most_same=MOST_SAME,
            maker="rlcourse insight",
            date=f"{datetime.now():%Y-%m-%d %H:%M}",
        )
    )


def _paragraph(group: Group, course: Course) -> tuple[Paragraph, Markup, str] | None:
    """(the paragraph, the same as HTML or "" if there is none, the address of its lesson or "");
    None for a mistake of which nothing is known in words."""
    if group.kind != NAMED:
        return None
    found = answering(course, group.exercise, f"{group.name} {_said(group, course)}")
    if found is None:
        return None
    html = FormulaExporter().drawn(harmless(found.markdown)) if found.markdown else ""
    site = published.site()
    return found, Markup(html), f"{site}lessons/{found.lesson}.html" if site else ""


def _said(group: Group, course: Course) -> str:
    """What is declared of a mistake, or what the student was told, where it is a mixture."""
    with suppress(UserError):
        for mistake in get_exercise(group.exercise, course).mistakes:
            if mistake.name == group.name:
                return mistake.diagnosis
    return " ".join(group.example.sentences)


def _with_code(sentence: str) -> Markup:
    """A sentence as HTML, in which what stands between backticks is code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(sentence))))


@cache
def _environment() -> Environment:
    shared = environment()
    beside = FileSystemLoader(Path(__file__).parent)
    made = shared.overlay(loader=ChoiceLoader([beside, *filter(None, [shared.loader])]))
    made.filters = shared.filters | {"amount": amount}
    made.filters["code"] = _with_code
    return made
