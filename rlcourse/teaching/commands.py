"""``rlcourse slides`` and ``rlcourse teaching-pack``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing


def slides(
    lesson: Annotated[str, typer.Argument(help="Such as 06.")],
    out: Annotated[
        Path | None, typer.Option(help="The file [default: NN_topic.html].", show_default=False)
    ] = None,
) -> None:
    """Write a lesson's slides as one HTML file that needs no network; S shows the notes."""
    from rlcourse.courses import current
    from rlcourse.files import write_text

    course = current()
    folder = course.lesson(lesson)
    with needing("grade", "making slides"):
        from rlcourse.teaching.slides import slides_page

        page, missing = slides_page(folder, course)
    out = out or Path(f"{folder.name}.html")
    if not out.parent.is_dir():
        raise UserError(f"there is no directory {out.parent} for {out.name}: make it first")
    write_text(out, page)
    print(out)
    if missing:
        print(missing)


def teaching_pack(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory.")],
) -> None:
    """Write slides, plans, rubrics, notes, quizzes and exam sheets of the course into DIR."""
    from rlcourse.courses import current

    with needing("grade", "making the teaching pack"):
        from rlcourse.teaching.pack import write_pack

        missing = write_pack(current(), directory)
    print(directory / "index.html")
    for sentence in missing:
        print(sentence)
