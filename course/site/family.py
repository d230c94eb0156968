"""The map's family of methods as a poster with links, drawn from course/map.md and the lessons.

It is as narrow as a phone and as tall as a printed page. In a page it takes the theme's colors, by
itself those that are written here.
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from rlcourse.authoring.filling import about_lesson
from rlcourse.courses import current
from rlcourse.errors import UserError
from rlcourse.reports.charts import svg, texts

MAP = Path(__file__).parents[1] / "map.md"
BLOCK = re.compile(r"```text\n(.*?)```\n", re.S)
ROW = re.compile(
    r"(?P<branch>[│├└─ ]*)(?P<idea>\S.*?)(?:\s{2,}(?P<method>[a-z_]+))?\s{2,}(?P<lesson>\d\d)"
)
WIDTH, INDENT, LINE, GAP = 420, 18, 19, 7
COLORS = "#0b7a55", "#1f6fb8", "#b85c00", "#8a4fc4", "#b3324a"  # legible on light and dark
STYLE = """
.family text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  fill: var(--color-foreground-primary, #1c2230) }
.family .method { font: 700 15px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.family .head { font-size: 20px; font-weight: 700 }
.family .soft, .family .lesson { fill: var(--color-foreground-secondary, #505968) }
.family .lesson { font-size: 13px; text-anchor: end }
.family .card { fill: var(--color-background-secondary, #f5f7fa) }
.family .stem { fill: none; stroke: var(--color-foreground-border, #8a929e); stroke-width: 1.5 }
.family a:hover .card, .family a:focus .card { stroke: #1f6fb8; stroke-width: 2 }
.family a { text-decoration: none }
"""
ALONE = """
.paper { fill: #fff }
@media screen and (prefers-color-scheme: dark) { .paper { fill: #131416 }
.family text { fill: #e6eaf1 } .family .soft, .family .lesson { fill: #a9b4c4 }
.family .card { fill: #1d222b } }
"""


@dataclass(frozen=True)
class Idea:
    """One line of the family: what is done, what the trainer calls it, and which lesson has it."""

    depth: int
    idea: str
    method: str
    lesson: str


def ideas(text: str) -> list[Idea]:
    """The family, as the map's first block has it."""
    found = []
    for line in filter(str.strip, BLOCK.search(text)[1].splitlines()):
        row = ROW.fullmatch(line)
        if row is None:
            raise UserError(f"{MAP}: no idea, method and lesson can be read from {line!r}.")
        depth = len(row["branch"]) // 4
        found.append(Idea(depth, row["idea"], row["method"] or "", row["lesson"]))
    return found


def poster(lessons: str, alone: bool = True) -> str:
    """The family, and below it the lessons that no line of it names.

    Args:
        lessons: the folder of the lessons' pages, from where the poster is shown.
        alone: a file of its own, with a ground and colors for light and dark.
    """
    named = ideas(MAP.read_text("utf-8"))
    pages = {lesson.number: f"{lessons}{lesson.name}.html" for lesson in current().lessons}
    family, y = tree(named, pages, 44)
    parts = ['<text class="head" x="8" y="28">What descends from what</text>', family]
    parts.append(f'<text class="head" x="8" y="{y + 34}">Around the family</text>')
    y += 50
    for lesson in current().lessons:
        if lesson.number not in {idea.lesson for idea in named}:
            about = about_lesson(lesson)
            wrapped = textwrap.wrap(about["see"], 50)
            drawn, y = card(8, y, (about["name"], wrapped), lesson.number, COLORS[0], pages)
            parts.append(drawn)
            y += GAP
    ground = f'<rect class="paper" width="{WIDTH}" height="{y + 8}"/>' if alone else ""
    return svg(
        *((WIDTH, y + 8), [ground, *parts], "The family of methods, with links to lessons"),
        STYLE + ALONE * alone,
        **{"xmlns": "http://www.w3.org/2000/svg", "class": "family", "role": "group"},
    )


def tree(named: list[Idea], pages: dict[str, str], y: float) -> tuple[str, float]:
    """The ideas below one another, each joined to the one that it descends from."""
    parts, above, roots, branch = [], {}, 0, -1
    for idea in named:
        x = 8 + INDENT * idea.depth
        roots += idea.depth == 0
        branch += idea.depth == 0 or (idea.depth == 1 and roots > 1)
        if idea.depth == 0 and parts:
            y += GAP
        color = COLORS[branch % len(COLORS)]
        wrapped = textwrap.wrap(idea.idea, int((WIDTH - x - 60) / 7))
        drawn, end = card(x, y, (idea.method, wrapped), idea.lesson, color, pages)
        if idea.depth:
            start = above[idea.depth - 1]
            parts.append(f'<path class="stem" d="M{x - INDENT / 2} {start}V{y + 16}H{x}"/>')
        above[idea.depth] = end
        parts.append(drawn)
        y = end + GAP
    return "".join(parts), y


def card(
    x: float, y: float, said: tuple[str, list[str]], lesson: str, color: str, pages: dict[str, str]
) -> tuple[str, float]:
    """A name over lines of text, as a link to its lesson; and where it ends."""
    name, wrapped = said
    lines = [("method", name)] * bool(name) + [("", line) for line in wrapped]
    height = LINE * len(lines) + 12
    words = texts(lines, x + 14, y + 20, LINE)
    return (
        f'<a href="{pages[lesson]}"><rect class="card" x="{x}" y="{y}" width="{WIDTH - x - 8}" '
        f'height="{height}" rx="6"/><rect x="{x}" y="{y}" width="4" height="{height}" rx="2" '
        f'fill="{color}"/>{words}<text class="lesson" x="{WIDTH - 16}" y="{y + 20}">{lesson}</text>'
        f"</a>"
    ), y + height


def with_poster(page: str) -> str:
    """The map's page with the poster where its text has a drawing of letters."""
    drawn = poster("../lessons/", alone=False)
    alone = '<p><a href="../map.svg">The poster on its own</a>, to print.</p>'
    block = f'```{{raw}} html\n<div class="poster">{drawn}</div>\n{alone}\n```\n'
    return BLOCK.sub(lambda _: block, page, count=1)
