"""The paragraph of a lesson to read out for a mistake.

Of the section that explains the exercise, it is the one that shares most of the rare words, if
these are enough to say that it is about the mistake.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import jupytext

from rlcourse.authoring.filling import PLACE
from rlcourse.authoring.lesson import KINDS
from rlcourse.courses import Course
from rlcourse.errors import UserError
from rlcourse.exercises import get as get_exercise

WORD = re.compile(r"[^\W\d_]{3,}")
HEADING = re.compile(r"^#{1,6} +(?:[\d.]+ +)?(.+?)\s*$")
SHORTEST, LONGEST = 80, 900  # characters of a paragraph worth reading out
# A paragraph is quoted if it shares this much of a mistake's words, weighed by how rare they are,
# and this many of them. With less, those that we looked at were often about something else.
LEAST_SHARED = 0.25
FEWEST = 3
ASKS = "**To think about"  # from here to the next heading a lesson asks, without points


@dataclass(frozen=True)
class Paragraph:
    lesson: str  # its name
    heading: str
    markdown: str  # "" where no paragraph of the section is about the mistake


def paragraphs(text: str) -> list[tuple[str, str]]:
    """(heading, text) of the prose that a lesson's students read: no code, comments or tables.

    Nor anything of questions: what the lesson asks, with points or "to think about", and the model
    answers and rubrics, which are in no student's notebook. A formula on lines of its own belongs
    to the paragraph above it.
    """
    found: list[tuple[str, str]] = []
    heading, fenced, above, asking = "", False, False, False
    for block in _blocks(text):
        if block is None:
            fenced = above = False
            continue
        fences = len(re.findall(r"^(?:```|~~~)", block, re.MULTILINE))
        inside, fenced = fenced, fenced ^ bool(fences % 2)
        block = block.strip()
        if not inside and (match := HEADING.match(block.partition("\n")[0])):
            heading, block = match[1], block.partition("\n")[2].strip()
            above = asking = False
        asking = asking or block.startswith(ASKS)
        if above and block.startswith("$$"):
            found[-1] = heading, f"{found[-1][1]}\n\n{block}"
            continue
        is_prose = block and not (inside or fences) and block[0] not in "|>-*#$<0123456789"
        is_prose = is_prose and not block[0].islower()  # which goes on from a formula or a figure
        fits = SHORTEST <= len(block) <= LONGEST and not PLACE.search(block)
        above = bool(is_prose and fits and not asking)
        if above:
            found.append((heading, block))
    return found


def _blocks(text: str) -> Iterator[str | None]:
    """The blocks of a lesson's plain Markdown, and None where another cell stands between them."""
    for cell in jupytext.reads(text, fmt="md").cells:
        if cell.cell_type == "markdown" and not KINDS.keys() & cell.metadata.keys():
            yield from re.split(r"\n\s*\n", re.sub(r"<!--.*?-->", "", cell.source, flags=re.DOTALL))
        else:
            yield None


def answering(course: Course, exercise: str, words: str) -> Paragraph | None:
    """The paragraph for a mistake that `words` describe, or the section that explains the exercise
    where none is about that. None if there is no such exercise, or no prose.

    It is of the exercise's section; of the whole lesson where that has no prose.
    """
    try:
        section = get_exercise(exercise, course).section
    except UserError:
        return None
    folder = course.exercises[exercise]
    prose = paragraphs(folder.text.read_text("utf-8"))
    sets = [_stems(text) for _, text in prose]
    frequency = Counter(stem for stems in sets for stem in stems)
    wanted = _stems(words)

    def worth(stems: set[str]) -> float:
        return sum(math.log(1 + len(prose) / max(frequency[stem], 1)) for stem in stems)

    near = [i for i, (heading, _) in enumerate(prose) if heading == section]
    best = max(near or range(len(prose)), key=lambda i: worth(wanted & sets[i]), default=None)
    if best is None:
        return None
    heading, markdown = prose[best]
    shared = wanted & sets[best]
    if len(shared) < FEWEST or worth(shared) < LEAST_SHARED * worth(wanted):
        return Paragraph(folder.name, section, "") if near else None
    return Paragraph(folder.name, heading, markdown)


def _stems(text: str) -> set[str]:
    """Words by how they begin, so that "rewards" and "rewarded" are one."""
    return {word.casefold()[:6] for word in WORD.findall(text) if len(word) > 3}
