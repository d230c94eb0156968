"""What a slide can show of a lesson: its sentences, formulas, tables and pictures, by how they
begin, so that a slide which no longer fits its lesson is noticed."""

import re
from dataclasses import dataclass
from functools import cached_property

import nbformat
from nbformat import NotebookNode

from rlcourse import exercises
from rlcourse.authoring.lesson import Lesson, read_lesson
from rlcourse.courses import Course, LessonFolder
from rlcourse.courses.course import read_course
from rlcourse.courses.finding import named
from rlcourse.errors import UserError

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
COMMENT = re.compile(r"\s*<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"(#{2,3}) (?:\d+\. )?(.+)")
PICTURE = re.compile(r'<img class="rlcourse-picture"[^>]*>')
ENDS = re.compile(r"[.?!:][)*”\"]{0,3}(?=\s|$)")


@dataclass(frozen=True)
class Block:
    """A paragraph, formula, list or table of a lesson, or one of its code cells."""

    section: str
    text: str
    code: bool = False


class Sources:
    """A lesson's text in blocks, and the outputs of its solved copy."""

    def __init__(self, folder: LessonFolder, course: Course):
        self.folder, self.course = folder, course
        self.lesson: Lesson = read_lesson(folder.text, exercises.all(course, contests=True), course)

    @cached_property
    def blocks(self) -> list[Block]:
        found, section = [], ""
        for cell in self.lesson.cells:
            if cell.kind == "code":
                found.append(Block(section, cell.source, code=True))
            if cell.kind != "markdown":
                continue
            for text in re.split(r"\n\s*\n", COMMENT.sub("", LINK.sub(r"\1", cell.source))):
                if heading := HEADING.match(text):
                    section = heading[2]
                    text = text.partition("\n")[2].strip()
                if text and not text.startswith("# "):
                    found.append(Block(section, text))
        return found

    @cached_property
    def solved(self) -> NotebookNode:
        """The solved and executed notebook, of this course or of the one the lesson is from."""
        home = read_course(self.folder.home, named)
        for course in (self.course, home):
            path = course.solutions / f"{self.folder.name}.ipynb"
            if path.is_file():
                return nbformat.read(path, as_version=4)
        raise UserError(
            f"there is no {path}, which has the pictures: run `rlcourse build "
            f"{self.folder.number} --execute`"
        )

    @property
    def opening(self) -> str:
        """The first sentence of the lesson."""
        text = next((block.text for block in self.blocks if not block.code), "")
        return _from(" ".join(text.split()), 0)

    def section(self, name: str) -> str:
        """The first paragraph or list of a section; "" if the lesson has none of this name."""
        return next((b.text for b in self.blocks if b.section == name and not b.code), "")

    def sentence(self, begins: str) -> str:
        """The sentence that begins so, or a whole formula, table or item of a list."""
        begins = " ".join(begins.split())
        for block in self.blocks:
            text = " ".join(block.text.split())
            at = -1 if block.code else text.find(begins)
            if at >= 0:
                return block.text if text.startswith("|") else _from(text, at)
        raise UserError(f"the lesson has no sentence that begins with '{begins}'")

    def pictures(self, fragment: str) -> list[NotebookNode]:
        """The outputs with pictures of the cell with this code."""
        outputs = self._outputs(fragment)
        found = [o for o in outputs if PICTURE.search(o.get("data", {}).get("text/html", ""))]
        if not found:
            raise UserError(f"the cell with '{fragment}' has drawn no picture")
        return found

    def printed(self, fragment: str) -> list[NotebookNode]:
        """What the cell with this code printed."""
        return [o for o in self._outputs(fragment) if o.output_type == "stream"]

    def _outputs(self, fragment: str) -> list[NotebookNode]:
        found = [c for c in self.solved.cells if c.cell_type == "code" and fragment in c.source]
        if len(found) != 1:
            raise UserError(f"{len(found)} cells contain the code '{fragment}'; quote more of it")
        return found[0].outputs


def _from(text: str, at: int) -> str:
    """The sentence of a paragraph that begins at this place; a formula as a whole."""
    if text.startswith("$$", at):
        return text[at : text.index("$$", at + 2) + 2]
    hidden = re.sub(
        r"\$[^$]*\$|`[^`]*`", lambda found: "x" * len(found[0]), text
    )  # no end within a formula
    for end in ENDS.finditer(hidden, at):
        if not hidden.endswith(("e.g.", "i.e.", "et al."), 0, end.end()):
            return text[at : end.end()]
    return text[at:]
