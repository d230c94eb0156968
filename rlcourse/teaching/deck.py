"""The slides of a lesson, from its page ``teaching/slides/NN_topic.md``.

    ## A critic that is always up to date
    > Ask one question, sample $G = 5$ completions
    figure: ylabel="advantage"

    ## Your turn
    ask: All eight are right. What are the advantages?

Each heading begins a slide. What stands on it is quoted from the lesson:

    > first words           the sentence, formula or item of a list that begins so
    figure: code            the pictures drawn by the one cell with this code
    output: code            what that cell printed
    table: | a | b          the table whose first row begins so
    mistake: name: words    the box of exercise `name` for the declared mistake with these words
    ask: question           a question to the class: the only text of the page's own
    then                    what follows appears at the next key press

The notes of a slide are the paragraphs that its quotations are from.
"""

import re
from dataclasses import dataclass, field, replace

from rlcourse import exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.trial import Trial
from rlcourse.checks.telling.html import result_html
from rlcourse.courses import Course, LessonFolder
from rlcourse.errors import UserError
from rlcourse.teaching.html import html, inline
from rlcourse.teaching.sources import Sources

SLIDE = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"(> |figure: |output: |table: |mistake: |ask: |then$)(.*)")
LONGEST_OUTPUT = 14  # lines
SEED = 0  # of the cases of the check that is shown


@dataclass
class Slide:
    title: str
    parts: list[str] = field(default_factory=list)  # HTML
    notes: list[str] = field(default_factory=list)  # HTML
    kind: str = ""


def slides_of(folder: LessonFolder, course: Course) -> list[Slide]:
    """The slides of a lesson.

    Raises:
        UserError: it has no page; or its page quotes what the lesson does not have, and the
            message names page and slide.
    """
    page = folder.home / "teaching" / "slides" / f"{folder.name}.md"
    if not page.is_file():
        raise UserError(
            f"there is no {page}, which says what is on the slides; such pages are in the course's "
            "repository, and not in the package that students install"
        )
    sources = Sources(folder, course)
    slides = [
        _slide(f"{page}: slide '{title}'", title, body, sources)
        for title, body in SLIDE.findall(page.read_text("utf-8"))
    ]
    return [_first(sources), *slides, *_last(sources)]


def _slide(place: str, title: str, body: str, sources: Sources) -> Slide:
    slide, later = Slide(inline(title)), False
    for line in filter(str.strip, body.splitlines()):
        entry = ENTRY.fullmatch(line.strip())
        if not entry:
            raise UserError(f"{place}: '{line.strip()}' is no entry of a slide")
        kind, text = entry[1].strip(" :"), entry[2].strip()
        if kind == "then":
            later = True
            continue
        try:
            shown, note = _entry(kind, text, sources)
        except UserError as error:
            raise UserError(f"{place}: {error}") from None
        slide.parts.append(f'<div class="fragment">{shown}</div>' if later else shown)
        if note and html(note) not in slide.notes:
            slide.notes.append(html(note))
        if kind == "ask" and not slide.title.endswith("?"):
            slide.kind = "asks"  # its title then gets a question mark
    return slide


def _entry(kind: str, text: str, sources: Sources) -> tuple[str, str]:
    """(HTML of one entry, the paragraph for the notes)."""
    if kind == ">":
        sentence, paragraph = sources.sentence(text)
        return html(_begun(sentence)), paragraph
    if kind == "figure":
        return f'<div class="figure">{sources.pictures(text)}</div>', sources.after(text)
    if kind == "output":
        return _output(sources.printed(text)), sources.after(text)
    if kind == "table":
        return html(sources.table(text)), ""
    if kind == "mistake":
        return _box(text, sources.course), ""
    return f'<p class="ask">{inline(text)}</p>', ""


def _begun(sentence: str) -> str:
    """What is quoted, with a capital letter: in the lesson it may follow a colon."""
    return re.sub(r"^[*_]*[a-z]", lambda found: found[0].upper(), sentence)


def _output(printed: str) -> str:
    lines = printed.splitlines()
    cut = lines[:LONGEST_OUTPUT] + ["…"] * (len(lines) > LONGEST_OUTPUT)
    return html("```text\n" + "\n".join(cut) + "\n```")


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
    result = replace(result, example=None)  # too much for a slide
    return f'<div class="check">{result_html(result)}</div>'


def _first(sources: Sources) -> Slide:
    opening = next((b.text for b in sources.blocks if not b.code), "")
    sentence = sources.sentence(opening[:40])[0] if opening else ""
    title = sources.folder.heading.rpartition(" · ")[2]
    return Slide(inline(title), [html(sentence)], [html(opening)], "title")


def _last(sources: Sources) -> list[Slide]:
    """What the class writes now, and what the lesson says to remember."""
    rows = [
        f"| `{e.name}` | {e.points:g} | {e.minutes} |" for e in sources.lesson.exercises.values()
    ]
    slides = []
    if rows:
        table = html("| you write | points | minutes |\n|---|---|---|\n" + "\n".join(rows))
        slides.append(Slide("Your turn", [table], kind="exercises"))
    remember = [b.text for b in sources.blocks if b.section == "What to remember" and not b.code]
    if remember:
        slides.append(Slide("What to remember", [html(remember[0])], kind="remember"))
    return slides
