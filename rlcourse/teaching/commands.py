"""``rlcourse teaching``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing


class Material(StrEnum):
    slides = "slides"
    quiz = "quiz"


class Format(StrEnum):
    text2qti = "text2qti"
    gift = "gift"


def teaching(
    material: Annotated[Material, typer.Argument(help="What to make.")],
    lesson: Annotated[str, typer.Argument(help="Such as 06.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The file [default: NN_topic.html, .txt or .gift].", show_default=False),
    ] = None,
    format: Annotated[
        Format, typer.Option(help="Of a quiz: text2qti makes QTI of it for Canvas; gift: Moodle.")
    ] = Format.text2qti,
) -> None:
    """Make a lesson's slides, as a file without network, or its quiz for Canvas or Moodle."""
    from rlcourse.courses import current
    from rlcourse.files import write_text

    course = current()
    folder = course.lesson(lesson)
    with needing("grade", f"making {material.value}"):
        from rlcourse.teaching.platforms import gift, text2qti
        from rlcourse.teaching.slides import slides_page

        if material is Material.slides:
            text, ending = slides_page(folder, course), "html"
        elif format is Format.gift:
            text, ending = gift(folder), "gift"
        else:
            text, ending = text2qti(folder), "txt"
    out = out or Path(f"{folder.name}.{ending}")
    if not out.parent.is_dir():
        raise UserError(f"there is no directory {out.parent} for {out.name}: make it first")
    write_text(out, text)
    print(out)
