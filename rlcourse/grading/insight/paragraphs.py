"""The paragraph of a lesson that answers a mistake: the one that shares most of its rare words."""

import math
import re
from collections import Counter
from dataclasses import dataclass

from rlcourse.courses import Course
from rlcourse.errors import UserError
from rlcourse.exercises import get as get_exercise

WORD = re.compile(r"[^\W\d_]{3,}")
HEADING = re.compile(r"^#{1,6} +(?:[\d.]+ +)?(.+?)\s*$")
SHORTEST, LONGEST = 80, 900  # characters of a paragraph worth reading out
NEAR = 1.5  # how much more a word counts in the section that the exercise belongs to


@dataclass(frozen=True)
class Paragraph:
    lesson: str  # its name
    heading: str
    markdown: str


def paragraphs(text: str) -> list[tuple[str, str]]:
    """(heading, text) of the prose of a lesson: no code, comments, tables or questions.

    A formula on lines of its own belongs to the paragraph above it.
    """
    found: list[tuple[str, str]] = []
    heading, fenced, above = "", False, False
    for block in re.split(r"\n\s*\n", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)):
        fences = len(re.findall(r"^(?:```|~~~)", block, re.MULTILINE))
        inside, fenced = fenced, fenced ^ bool(fences % 2)
        block = block.strip()
        if match := HEADING.match(block.partition("\n")[0]):
            heading, block, above = match[1], block.partition("\n")[2].strip(), False
        if above and block.startswith("$$"):
            found[-1] = heading, f"{found[-1][1]}\n\n{block}"
            continue
        is_prose = block and not (inside or fences) and block[0] not in "|>-*#$<0123456789"
        above = bool(is_prose and SHORTEST <= len(block) <= LONGEST)
        if above:
            found.append((heading, block))
    return found


def answering(course: Course, exercise: str, words: str) -> Paragraph | None:
    """The paragraph of the exercise's lesson for a mistake that `words` describe, if any is."""
    try:
        section = get_exercise(exercise, course).section
    except UserError:
        return None
    folder = course.exercises[exercise]
    prose = paragraphs(folder.text.read_text("utf-8"))
    sets = [_stems(text) for _, text in prose]
    frequency = Counter(stem for stems in sets for stem in stems)
    wanted = _stems(words)

    def worth(i: int) -> float:
        shared = sum(math.log(1 + len(prose) / frequency[stem]) for stem in wanted & sets[i])
        return shared * (NEAR if prose[i][0] == section else 1.0)

    best = max(range(len(prose)), key=worth, default=None)
    if best is None or not wanted & sets[best]:
        return None
    return Paragraph(folder.name, *prose[best])


def _stems(text: str) -> set[str]:
    """Words by how they begin, so that "rewards" and "rewarded" are one."""
    return {word.casefold()[:6] for word in WORD.findall(text) if len(word) > 3}
