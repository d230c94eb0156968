"""Everything for who teaches, in one new directory with an index page."""

from pathlib import Path

from rlcourse import exercises
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.rubrics import shown
from rlcourse.authoring.teaching import teaching_notes
from rlcourse.courses import Course
from rlcourse.errors import UserError
from rlcourse.files import write_directory
from rlcourse.teaching.exams import sheets
from rlcourse.teaching.html import html
from rlcourse.teaching.moodle import moodle_xml
from rlcourse.teaching.plans import plan
from rlcourse.teaching.qti import qti_package
from rlcourse.teaching.quiz import bank
from rlcourse.teaching.slides import slides_page

WEEKS = (10, 5)
PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>body {{ '
    "font: 17px/1.5 system-ui, sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em }} "
    "h2 {{ margin: 2em 0 .5em }} @media print {{ body {{ margin: 0; font-size: 12pt }} "
    "h2 {{ break-after: avoid }} }}"
    "</style>{body}</html>\n"
)

AUDIENCE = "Students may have the slides, which quote their lessons. All else is for teachers."


def write_pack(course: Course, directory: Path) -> list[str]:
    """Write the pack, all of it or nothing; sentences about what is missing.

    Raises:
        UserError: the directory is there already, or a source does not fit its lesson.
    """
    if directory.exists():
        raise UserError(f"{directory} is there already: name a new directory, or remove it")
    if not directory.resolve().parent.is_dir():
        raise UserError(f"there is no directory {directory.parent} for {directory.name}")
    missing: list[str] = []

    def fill(out: Path) -> None:
        links = _slides(course, out, missing)
        for name, title, text in _texts(course, missing):
            (out / f"{name}.md").write_text(text, "utf-8")
            (out / f"{name}.html").write_text(PAGE.format(title=title, body=html(text)), "utf-8")
            links.append(f"- [{title}]({name}.html)")
        links += _quizzes(course, out, missing)
        body = html("\n".join([f"# Teaching {course.title}", "", AUDIENCE, "", *links]))
        (out / "index.html").write_text(PAGE.format(title=course.title, body=body), "utf-8")

    write_directory(directory, fill)
    return missing


def _slides(course: Course, out: Path, missing: list[str]) -> list[str]:
    links = []
    (out / "slides").mkdir()
    for folder in course.lessons:
        page, lacking = slides_page(folder, course)
        (out / "slides" / f"{folder.name}.html").write_text(page, "utf-8")
        links.append(f"- [Slides: {folder.heading}](slides/{folder.name}.html)")
        missing += [lacking] if lacking else []
    return links


def _texts(course: Course, missing: list[str]) -> list[tuple[str, str, str]]:
    """(file, title, Markdown) of what is read."""
    texts = [(f"plan-{n}-weeks", f"Plan for {n} weeks", plan(course, n)) for n in WEEKS]
    texts.append(("rubrics", "Rubrics of questions graded by hand", rubrics(course)))
    try:
        texts.append(("notes", "Answers to think about", teaching_notes(course.lessons)))
    except UserError as error:
        missing.append(f"There are no teaching notes: {error}")
    exams = sheets(course.directory / "teaching" / "exams")
    missing += [] if exams else ["There are no exam sheets."]
    return texts + exams


def rubrics(course: Course) -> str:
    """Every question with its model answer and how its points split."""
    parts = ["# Rubrics"]
    for folder in course.lessons:
        lesson = read_lesson(folder.text, exercises.all(course, contests=True), course)
        for cell in (c for c in lesson.cells if c.kind == "question"):
            parts += [f"## {folder.heading}: {cell.name}", cell.source, "**Model answer**"]
            split = lesson.rubric(cell.name)
            parts += [lesson.answer(cell.name), shown(split) if split else "There is no rubric."]
    return "\n\n".join(parts) + "\n"


def _quizzes(course: Course, out: Path, missing: list[str]) -> list[str]:
    found = [(f.name, f.heading, bank(f)) for f in course.lessons]
    having = [row for row in found if row[2]]
    lacking = [name for name, _, questions in found if not questions]
    if lacking:
        missing.append(f"There are no quiz questions for {', '.join(lacking)}.")
    if not having:
        return []
    text = moodle_xml(course.title, [(heading, questions) for _, heading, questions in having])
    (out / "quiz-moodle.xml").write_text(text, "utf-8")
    (out / "quiz-canvas.zip").write_bytes(qti_package(having))
    return [
        "- [Quiz for Moodle](quiz-moodle.xml): *Question bank → Import → Moodle XML*",
        "- [Quiz for Canvas](quiz-canvas.zip): *Settings → Import course content → QTI*",
    ]
