"""``rlcourse teaching``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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
    format: Annotated[
        Format, typer.Option(help="A quiz for Canvas, by way of text2qti, or for Moodle (gift).")
    ] = Format.text2qti,
) -> None:
    """Write a lesson's slides, or its quiz for Canvas or Moodle, into this folder."""
    from rlcourse.courses import current
    from rlcourse.files import write_text

    course = current()
    folder = course.lesson(lesson)
    with needing("grade", f"making {material.value}"):
        from rlcourse.teaching.quiz import gift, text2qti
        from rlcourse.teaching.slides import slides_page

        if material is Material.slides:
            text, ending = slides_page(folder, course), "html"
        elif format is Format.gift:
            text, ending = gift(folder), "gift"
        else:
            text, ending = text2qti(folder), "txt"
    out = Path(f"{folder.name}.{ending}")
    write_text(out, text)
    print(out)
