"""``rlcourse insight``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
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
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page [default: insight-LESSON.html, or insight-LESSON-names.html]."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report for machines instead of a page.")
    ] = False,
    names: Annotated[bool, typer.Option("--names", help="Say who; without it, nobody.")] = False,
    course: Annotated[
        Path | None,
        typer.Option("--course", help="Directory of the gradebook [default: the course's]."),
    ] = None,
) -> None:
    """Show what a class made of a lesson: which mistakes, by how many, and what they cost."""
    if out and as_json:
        raise UserError("--out is for the page: --json prints, so use > FILE")
    with needing("grade", "the report of a class"):
        from rlcourse.courses import current
        from rlcourse.grading.books.gradebook import Course
        from rlcourse.grading.books.people import names_of
        from rlcourse.grading.insight.answers import read
        from rlcourse.grading.insight.summary import summarized
        from rlcourse.reports.html_pages import write_page
    taught = current(course)
    root = course or taught.directory
    found = summarized(read(root, lesson), names)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    ending = "-names" if names else ""  # beside the page that a class may see
    path = out or Path(f"insight-{found['lesson']}{ending}.html")
    called = names_of(Course.of(root).directory) if names else {}
    write_page(path, page(found, taught, called), mode=0o600 if names else 0o666)
    print(path)
