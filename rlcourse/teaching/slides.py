"""The slides of a lesson, from its page ``teaching/slides/NN_topic.md``, as nbconvert makes them.

The page is Markdown. Each heading ``## title`` begins a slide, and some lines stand for more:

    figure: code            the pictures drawn by the one cell of the lesson with this code
    output: code            what that cell printed
    mistake: name: words    the box of exercise `name` for the declared mistake with these words
    then                    what follows appears at the next key press
"""

import re
from dataclasses import replace

import nbformat
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from rlcourse import exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.trial import Trial
from rlcourse.checks.telling.html import result_html
from rlcourse.courses import Course, LessonFolder
from rlcourse.errors import UserError

ENTRY = re.compile(r"^(figure: .+|output: .+|mistake: .+|then)$", re.MULTILINE)
SEED = 0  # of the cases of the check that is shown
STYLE = """<style>
.reveal .slides section { text-align: left } .reveal details { display: none }
.reveal img { max-height: 55vh } .reveal pre { font-size: .6em }
</style>"""


def slides_page(folder: LessonFolder, course: Course) -> str:
    """The whole page, in HTML. It gets reveal.js and MathJax from the network.

    Raises:
        UserError: the lesson has no page of slides or no solution; or the page shows what the
            lesson does not have, and the message names page and slide.
    """
    exporter = SlidesExporter(
        exclude_input=True, exclude_output_prompt=True, reveal_scroll=True, reveal_number="c/t"
    )
    notebook = new_notebook(cells=slides_of(folder, course), metadata={"title": folder.heading})
    return exporter.from_notebook_node(notebook)[0]


def slides_of(folder: LessonFolder, course: Course) -> list[NotebookNode]:
    """The cells of the slides, a slide each or what follows on it."""
    page = folder.home / "teaching" / "slides" / f"{folder.name}.md"
    solution = course.solutions / f"{folder.name}.ipynb"
    for needed in (page, solution):
        if not needed.is_file():
            raise UserError(
                f"there is no {needed}: slides are made in the course's repository, after "
                f"`rlcourse build {folder.number} --execute`"
            )
    solved = nbformat.read(solution, as_version=4)
    slides = re.split(r"^(?=## )", page.read_text("utf-8"), flags=re.MULTILINE)
    slides[0] = f"{STYLE}\n\n# {folder.heading}\n\n{slides[0]}"
    cells: list[NotebookNode] = []
    for slide in slides:
        kind, later = "slide", "-"
        for part in filter(None, map(str.strip, ENTRY.split(slide))):
            if part == "then":
                kind = later = "fragment"
                continue
            if ENTRY.fullmatch(part):
                try:
                    cell = new_code_cell(outputs=_outputs(part, solved, course))
                except UserError as error:
                    title = slide.partition("\n")[0]
                    raise UserError(f"{page}: slide '{title}': {error}") from None
            else:
                cell = new_markdown_cell(part)
            cell.metadata["slideshow"] = {"slide_type": kind}
            cells.append(cell)
            kind = later
    return cells


def _outputs(entry: str, solved: NotebookNode, course: Course) -> list[NotebookNode]:
    """What a line of a page stands for."""
    what, _, text = entry.partition(": ")
    if what == "mistake":
        html = f'<div class="check">{_box(text, course)}</div>'
        return [new_output("display_data", data={"text/html": html})]
    found = [c for c in solved.cells if c.cell_type == "code" and text in c.source]
    if len(found) != 1:
        raise UserError(f"{len(found)} cells contain the code '{text}'; quote more of it")
    kinds = ("stream",) if what == "output" else ("display_data", "execute_result")
    shown = [output for output in found[0].outputs if output.output_type in kinds]
    if not shown:
        raise UserError(f"the cell with '{text}' shows no {what}")
    return shown


def _box(text: str, course: Course) -> str:
    """What the check says to a student who made this mistake."""
    name, _, words = text.partition(": ")
    exercise = exercises.get(name, course)
    found = [m for m in exercise.mistakes if words in m.name]
    if len(found) != 1:
        raise UserError(f"{len(found)} mistakes of {name} have '{words}' in their name, not one")
    wrong = found[0].implementation
    if exercise.contest:
        result = Trial(exercise).examine(describe(wrong), wrong)
    else:
        exam = Exam(exercise, SEED)
        result = exam.judge(describe(wrong), call_all(wrong, exam.cases))
    return result_html(replace(result, example=None))  # an example is too much for a slide
