"""``rlcourse insight``."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing


def insight(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page [default: insight-LESSON.html, or insight-LESSON-names.html]."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report for machines instead of a page.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a table of the mistakes instead of a page.")
    ] = False,
    draft: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Also write a declared mistake, to be completed, for each group without a name.",
        ),
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Say who; without it, nobody.")] = False,
    course: Annotated[
        Path | None,
        typer.Option("--course", help="Directory of the gradebook [default: the course's]."),
    ] = None,
) -> None:
    """Show what a class made of a lesson: which mistakes, by how many, and what they cost."""
    if as_json and as_csv:
        raise UserError("choose one of --json and --csv")
    if out and (as_json or as_csv):
        raise UserError("--out is for the page: --json and --csv print, so use > FILE")
    with needing("grade", "the report of a class"):
        from rlcourse.courses import current
        from rlcourse.grading.books.extensions import described, still_open
        from rlcourse.grading.books.gradebook import Course
        from rlcourse.grading.books.people import names_of
        from rlcourse.grading.insight import drafts, page, tables
        from rlcourse.grading.insight.recorded import read
        from rlcourse.grading.insight.summing import Insight
    taught = current(course)
    found = Insight(read(course or taught.directory, lesson))
    if draft:
        for path in drafts.write(found, draft):
            print(path, file=sys.stderr)
    if as_json:
        print(json.dumps(tables.as_json(found, names), indent=2))
    elif as_csv:
        print(tables.as_table(found, names).text(), end="")
    else:
        ending = "-names" if names else ""  # beside the page that a class may see
        path = out or Path(f"insight-{found.recorded.lesson}{ending}.html")
        called = names_of(Course.of(course).directory) if names else {}
        page.write(path, found, taught, names, called)
        print(path)
        if last := still_open(taught, course or taught.directory, found.recorded.lesson):
            print(
                f"Do not show it yet: some students can hand in until {described(last)}, and wrong "
                "code is often only one line from right.",
                file=sys.stderr,
            )
