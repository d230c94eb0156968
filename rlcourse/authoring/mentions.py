"""Where a lesson's text mentions another lesson by number, it becomes a link to it.

Authors write "lesson 04", or "lessons 03, 06 and 07". The links lead from a notebook to its
neighbors, in a student's copy as on the course's website. A lesson that this course does not have,
such as one that was taken from another course without its neighbors, stays a plain number.
"""

import re

from rlcourse.courses import Course

MENTION = re.compile(r"\b[Ll]essons? \d\d(?:(?:, and|, or|,| and| or| to) \d\d)*\b")
# Not in code, displayed formulas or headings, which other pages link to, nor within a link.
PLAIN = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|^#[^\n]*$|\[[^\]]*\]\([^)]*\)", re.DOTALL | re.M
)


def with_links(text: str, name: str, course: Course) -> str:
    """The text of a cell of lesson `name`, the first mention of each other lesson a link."""
    own = next((one for one in course.lessons if one.name == name), None)
    if own is None:
        return text
    others = [one for one in course.lessons if one.home == own.home and one is not own]
    known = {one.number: one.name for one in others}  # numbers of the course it was written for

    def linked(number: re.Match) -> str:
        target = known.pop(number[0], None)
        return f"[{number[0]}](../{target}/{target}.ipynb)" if target else number[0]

    def mentioned(mention: re.Match) -> str:
        return re.sub(r"\d\d", linked, mention[0])

    parts, end = [], 0
    for kept in PLAIN.finditer(text):
        parts += [MENTION.sub(mentioned, text[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, MENTION.sub(mentioned, text[end:])])
