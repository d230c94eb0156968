"""The slides of a lesson, from its page ``teaching/slides/NN_topic.md``, as nbconvert makes them.

    ## A critic that is always up to date
    > Ask one question, sample $G = 5$ completions
    figure: ylabel="advantage"

    ## Your turn
    ask: All eight are right. What are the advantages?

Each heading begins a slide. What stands on it is quoted from the lesson:

    > first words           the sentence, formula, table or item of a list that begins so
    figure: code            the pictures drawn by the one cell with this code
    output: code            what that cell printed
    mistake: name: words    the box of exercise `name` for the declared mistake with these words
    ask: question           a question to the class: the only text of the page's own
    then                    what follows appears at the next key press
"""

import re
from dataclasses import replace

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
from rlcourse.teaching.sources import Sources

SLIDE = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"(> |figure: |output: |mistake: |ask: |then$)(.*)")
SEED = 0  # of the cases of the check that is shown
STYLE = """<style>
.reveal .slides section { text-align: left } .reveal details { display: none }
.reveal img { max-height: 55vh } .reveal pre { font-size: .6em }
</style>"""


def slides_page(folder: LessonFolder, course: Course) -> str:
    """The whole page, in HTML. It gets reveal.js and MathJax from the network.

    Raises:
        UserError: the lesson has no page of slides; or the page quotes what the lesson does not
            have, and the message names page and slide.
    """
    exporter = SlidesExporter(
        exclude_input=True, exclude_output_prompt=True, reveal_scroll=True, reveal_number="c/t"
    )
    notebook = new_notebook(cells=slides_of(folder, course), metadata={"title": folder.heading})
    return exporter.from_notebook_node(notebook)[0]


def slides_of(folder: LessonFolder, course: Course) -> list[NotebookNode]:
    """The cells of the slides: what to remember comes last."""
    page = folder.home / "teaching" / "slides" / f"{folder.name}.md"
    if not page.is_file():
        raise UserError(
            f"there is no {page}, which says what is on the slides; such pages are in the course's "
            "repository, and not in the package that students install"
        )
    sources = Sources(folder, course)
    cells = [_text("slide", f"{STYLE}\n\n# {folder.heading}\n\n{sources.opening}")]
    for title, body in SLIDE.findall(page.read_text("utf-8")):
        cells += _slide(f"{page}: slide '{title}'", title, body, sources)
    if remember := sources.section("What to remember"):
        cells.append(_text("slide", f"## What to remember\n\n{remember}"))
    return cells


def _slide(place: str, title: str, body: str, sources: Sources) -> list[NotebookNode]:
    cells, kind = [_text("slide", f"## {title}")], "-"
    for line in filter(str.strip, body.splitlines()):
        entry = ENTRY.fullmatch(line.strip())
        if not entry:
            raise UserError(f"{place}: '{line.strip()}' is no entry of a slide")
        if entry[1] == "then":
            kind = "fragment"
            continue
        try:
            cells.append(_entry(kind, entry[1].strip(" :"), entry[2].strip(), sources))
        except UserError as error:
            raise UserError(f"{place}: {error}") from None
    return cells


def _entry(kind: str, what: str, text: str, sources: Sources) -> NotebookNode:
    """The cell of one entry; `kind` is nbconvert's, a fragment or a part of the slide."""
    if what == ">":
        # In the lesson a sentence may follow a colon.
        said = re.sub(r"^[*_]*[a-z]", lambda first: first[0].upper(), sources.sentence(text))
        return _text(kind, said)
    if what == "ask":
        return _text(kind, f"**{text}**")
    if what == "output":
        return _shown(kind, sources.printed(text))
    if what == "figure":
        return _shown(kind, sources.pictures(text))
    html = f'<div class="check">{_box(text, sources.course)}</div>'
    return _shown(kind, [new_output("display_data", data={"text/html": html})])


def _text(kind: str, markdown: str) -> NotebookNode:
    return new_markdown_cell(markdown, metadata={"slideshow": {"slide_type": kind}})


def _shown(kind: str, outputs: list[NotebookNode]) -> NotebookNode:
    return new_code_cell(outputs=outputs, metadata={"slideshow": {"slide_type": kind}})


def _box(text: str, course: Course) -> str:
    """What the check says to a student who made this mistake."""
    name, _, words = text.partition(": ")
    exercise = exercises.get(name, course)
    found = [m for m in exercise.mistakes if words.strip() in m.name]
    if len(found) != 1:
        raise UserError(f"{len(found)} mistakes of {name} have '{words}' in their name, not one")
    wrong = found[0].implementation
    if exercise.contest:
        result = Trial(exercise).examine(describe(wrong), wrong)
    else:
        exam = Exam(exercise, SEED)
        result = exam.judge(describe(wrong), call_all(wrong, exam.cases))
    return result_html(replace(result, example=None))  # an example is too much for a slide
