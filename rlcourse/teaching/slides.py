"""Slides as one HTML file that needs no network: reveal.js, pictures and formulas are inside.

``reveal/`` holds the published files of reveal.js 5.2.1, unchanged, with their license.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from rlcourse.courses import Course, LessonFolder
from rlcourse.teaching.deck import slides_of

HERE = Path(__file__).parent


def slides_page(folder: LessonFolder, course: Course) -> str:
    """The whole page."""
    template = Environment(loader=FileSystemLoader(HERE)).get_template("slides.html")
    return template.render(
        heading=folder.heading,
        slides=slides_of(folder, course),
        number=folder.number,
        css=_read("slides.css"),
        reveal_css=_read("reveal/reveal.css"),
        reveal_js=_script("reveal/reveal.js"),
        notes_js=_script("reveal/notes.js"),
    )


def _read(name: str) -> str:
    return (HERE / name).read_text("utf-8")


def _script(name: str) -> str:
    """Text that may stand within an element of a page."""
    return _read(name).replace("</script", "<\\/script")
