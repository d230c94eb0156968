"""Write the pages of a course's site as MyST Markdown, from the notebooks and texts that are there.

A lesson's page is its executed solution, functions folded, or what students start from: a switch
says which. Nothing is executed here. Links between files become links between pages, if they can.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import attached
import home
import nbformat
import run
import web
from figures import build as figures
from live import build as live
from nbformat import NotebookNode
from recorded import build as recorded

from rlcourse import exercises, published
from rlcourse.authoring.filling import about_lesson
from rlcourse.courses import LessonFolder, shipped
from rlcourse.errors import UserError
from rlcourse.reports import render_report

COURSE = shipped()
ROOT = COURSE.directory.parent  # of the repository, where its README is
RENAMED = {"README.md": "index.md", "course/README.md": "course/instructors.md"}
DESK = "instructors canvas moodle gradescope jupyterhub jupyterhub_reference late regrading backup"
# One page of the reference each: what students and instructors call.
REFERENCE = (
    *("algorithms", "tasks", "policy", "training", "evaluation", "planning", "reports"),
    *("student", "checks", "plots", "pictures"),
)
# What the page "Train one" starts with when a lesson links to it.
TRAINED = {
    **{"02": "reinforce", "03": "rloo", "04": "grpo", "05": "grpo", "06": "grpo", "07": "dr_grpo"},
}
PROGRESS = re.compile(r"\s*(progress|hint)\(")  # cells whose output is about the reader
SOLVED = re.compile(r"(if ready|check)\(")  # cells whose output is there once functions are written
SWITCH = """<fieldset class="states"><legend>This page shows the lesson</legend>
<label><input type="radio" name="state" id="as-solved" checked> solved and run</label>
<label><input type="radio" name="state" id="as-start"> as you start it</label></fieldset>"""
PICTURE = re.compile(r'(<img[^>]*?)src="data:image/png;base64,([^"]+)"')
# What people look for by its letters, where a lesson's title spells it out or says it otherwise.
ALSO = {"02": "REINFORCE", "05": "PPO", "06": "GRPO", "09": "DPO"}


@dataclass(frozen=True)
class Lesson:
    """One lesson's two notebooks: as students get it, and solved and executed."""

    name: str
    about: dict[str, str]
    released: NotebookNode
    solved: NotebookNode

    @property
    def title(self) -> str:
        own = self.released.cells[0].source.partition("\n")[0].lstrip("# ")
        also = ALSO.get(self.name[:2])
        return f"{own} ({also})" if also else own

    @property
    def head(self) -> str:
        """The title of its page, and what search engines and links say of it."""
        about = f"you write {self.about['write']}, and see {self.about['see']}."
        about = json.dumps(f"{self.title[5:]}: {about}", ensure_ascii=False)
        return f"---\ndescription: {about}\n---\n# {self.title}"


def write_pages(target: Path, extra: Path) -> None:
    """Write every page below `target`, and files that are not pages but belong to them to `extra`.

    Both are emptied first.
    """
    for folder in (target, extra):
        shutil.rmtree(folder, ignore_errors=True)
    lessons = [read_lesson(lesson) for lesson in COURSE.lessons]
    texts = [*ROOT.glob("*.md"), *(ROOT / "course").glob("*.md")]
    pages = {str(path.relative_to(ROOT)) for path in texts}
    pages |= {f"notebooks/{lesson.name}/{lesson.name}.ipynb" for lesson in lessons}
    for lesson in lessons:
        source = f"notebooks/{lesson.name}/{lesson.name}.ipynb"
        page = linked(lesson_page(lesson, extra), source, pages)
        write(target / f"lessons/{lesson.name}.md", page)
        write(target / f"solutions/{lesson.name}.md", solutions_page(lesson))
        write(extra / source, COURSE.notebook(lesson.name).read_text("utf-8"))
    for path in texts:
        name = str(path.relative_to(ROOT))
        if name == "README.md":
            continue  # the site has a first page of its own
        write(target / RENAMED.get(name, name), linked(path.read_text("utf-8"), name, pages))
    write(target / "index.md", home_page(lessons, sorted(pages), extra))
    write(target / "recorded-run.md", recorded.page())
    write(extra / "run.html", web.with_way_back(render_report(run.recorded()), COURSE.name))
    for name in ("home.css", "card.png"):
        shutil.copyfile(Path(__file__).with_name(name), extra / name)
    write(target / "train-one.md", live.page())
    if missing := live.write_files(extra / "live"):
        print(missing, file=sys.stderr)
    for part in REFERENCE:
        write(target / f"reference/{part}.md", reference_page(part))
    figures.write_files(extra / "figures")
    write(extra / "robots.txt", web.robots(site()))
    write(extra / "404.html", web.not_found(COURSE.name, site()))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def repository() -> str:
    """Where the course is published, from the workflow or else the package; "" if nowhere."""
    return (os.environ.get("RLCOURSE_REPOSITORY") or published.REPOSITORY).rstrip("/")


def site() -> str:
    """The address of the site, with a slash at its end; "" if nowhere."""
    return published.site(repository())


def colab(lesson: str) -> str:
    """Address that opens a lesson's notebook on Colab; "" until it is published."""
    return published.launch_links(lesson, repository()).get("Colab", "")


# lessons


def read_lesson(folder: LessonFolder) -> Lesson:
    name = folder.name
    paths = COURSE.notebook(name), COURSE.solutions / f"{name}.ipynb"
    for path in paths:
        if not path.is_file():
            raise UserError(f"there is no {path}: run `rlcourse build {name} --execute` first")
    released, solved = (nbformat.read(path, as_version=4) for path in paths)
    released.cells = [c for c in released.cells if "setup" not in c.metadata.get("tags", [])]
    return Lesson(name, about_lesson(folder), released, solved)


def lesson_page(lesson: Lesson, extra: Path) -> str:
    solved = {cell.id: cell for cell in lesson.solved.cells}
    declared = {exercise.name: exercise for exercise in exercises.all(contests=True)}
    parts: list[str] = []
    figure: str | None = None  # to be shown by the next cell with an output
    drawn = False
    for i, cell in enumerate(lesson.released.cells):
        if cell.cell_type == "markdown":
            text, named = figures.taken_out(
                attached.with_files(cell, lambda png: f"../{keep(png, extra)}")
            )
            figure = named or figure
            if i == 0:
                text = "\n\n".join([lesson.head, links_of(lesson), SWITCH, text.partition("\n")[2]])
            parts.append(text)
        elif cell.id in declared:
            hints = folded_hints(declared[cell.id].hints, lesson.name, cell.id)
            stub, code = (fenced(c.source, "python") for c in (cell, solved[cell.id]))
            parts.append(seen("start", stub, hints))
            summary = f"<details><summary><code>{cell.id}</code>, written</summary>"
            parts.append(seen("solved", summary, code, "</details>"))
        else:
            parts.append(fenced(cell.source, "python"))
            outputs = [] if PROGRESS.match(cell.source) else solved[cell.id].get("outputs", [])
            texts = [shown(output, extra) for output in outputs]
            if figure and texts:
                texts, figure, drawn = figures.around(figure, texts), None, True
            parts += [seen("solved", *texts)] if SOLVED.search(cell.source) else texts
    parts += [figures.loaded()] if drawn else []
    return "\n\n".join(filter(None, parts)) + "\n"


def seen(state: str, *parts: str) -> str:
    """What a page shows in one of its two states."""
    return "\n\n".join([f'<div class="{state}">', *filter(None, parts), "</div>"]) if parts else ""


def links_of(lesson: Lesson) -> str:
    """The links below the title: where to work on the lesson, and its solutions."""
    opened = "" if "colab.research" in lesson.released.cells[0].source else colab(lesson.name)
    links = [f"[Open in Colab]({opened})"] if opened else []
    notebook = f"../notebooks/{lesson.name}/{lesson.name}.ipynb"
    links.append(f'<a href="{notebook}" download>Notebook</a>')
    links.append(f"[Solutions](../solutions/{lesson.name}.md)")
    if algorithm := TRAINED.get(lesson.name[:2]):
        here = f"../train-one.html?algorithm={algorithm}"
        links.append(f'<a href="{here}">Train one in your browser</a>')
        if algorithm == "grpo":
            links.append("[Scrub through a recorded run](../recorded-run.md)")
    return " · ".join(links)


def folded_hints(hints: tuple[str, ...], lesson: str, name: str) -> str:
    parts = [
        f"<details><summary>Hint {i}</summary>\n\n{hint}\n\n</details>"
        for i, hint in enumerate(hints, 1)
    ]
    link = f"[Solution](../solutions/{lesson}.md#{name.replace('_', '-')})"
    return "\n\n".join(['<div class="hints">', *parts, link, "</div>"])


def shown(output: NotebookNode, extra: Path) -> str:
    """A cell's output as Markdown; pictures become files."""
    if output.output_type == "stream":
        return fenced(output.text.rstrip(), "text", "output")
    data = output.get("data", {})
    if "text/html" not in data:
        return fenced(data["text/plain"], "text", "output") if "text/plain" in data else ""

    def file_of(match: re.Match) -> str:
        png = base64.b64decode(match[2])
        width, height = attached.size(png)
        tag = re.sub(r' width="\d+"', "", match[1])  # its style limits it as well
        place = f'width="{width}" height="{height}" src="../{keep(png, extra)}"'
        return f'{tag}{place} loading="lazy"'

    drawn = PICTURE.sub(file_of, data["text/html"])
    return fenced(f'<div class="shown">{drawn}</div>', "{raw} html")


def keep(picture: bytes, extra: Path) -> str:
    """The file of a picture, below `extra`."""
    name = f"pictures/{hashlib.sha256(picture).hexdigest()[:16]}.png"
    path = extra / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)
    return name


def solutions_page(lesson: Lesson) -> str:
    number = lesson.name[:2]
    parts = [
        f"# Solutions of lesson {number}",
        f"To [{lesson.title}](../lessons/{lesson.name}.md). Other ways pass as well: "
        "a check compares numbers, not texts.",
    ]
    for cell in lesson.solved.cells:
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("solution"):
            code = cell.cell_type == "code"
            parts.append(
                f"## {grading['grade_id']}" if code else f"## Question: {grading['grade_id']}"
            )
            parts.append(fenced(cell.source, "python") if code else cell.source)
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str, role: str = "") -> str:
    """A code block whose fence is longer than any in the text."""
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    if role:
        return f"{ticks}{{code-block}} {language}\n:class: {role}\n\n{text}\n{ticks}"
    return f"{ticks}{language}\n{text}\n{ticks}"


# other pages


def home_page(lessons: list[Lesson], pages: list[str], extra: Path) -> str:
    """The front page, and the tree of all pages."""
    pictures = {lesson.name: found for lesson in lessons if (found := first_picture(lesson, extra))}
    guides = {RENAMED.get(p, p) for p in pages if p.startswith("course/")}
    about = [p for p in pages if p.endswith(".md") and "/" not in p and p not in RENAMED]
    trees = {
        "Try it": ["train-one", "recorded-run"],
        "Lessons": [f"lessons/{lesson.name}" for lesson in lessons],
        "Guides": sorted(guides, key=lambda page: (DESK.find(Path(page).stem), page)),
        "Reference": [f"reference/{part}" for part in REFERENCE],
        "Solutions": [f"solutions/{lesson.name}" for lesson in lessons],
        "The project": about,
    }
    return home.page(pictures, colab(lessons[0].name), repository()) + contents(trees)


def first_picture(lesson: Lesson, extra: Path) -> dict | None:
    """File, width and height of the first picture that a lesson draws."""
    for cell in lesson.solved.cells:
        for output in cell.get("outputs", []):
            if found := PICTURE.search(output.get("data", {}).get("text/html", "")):
                content = base64.b64decode(found[2])
                width, height = attached.size(content)
                return {"file": keep(content, extra), "width": width, "height": height}
    return None


def contents(trees: dict[str, list[str]]) -> str:
    """The tree of all pages, by captions."""
    text = ""
    for caption, entries in trees.items():
        text += (
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(entries) + "\n```\n"
        )
    return text


def reference_page(part: str) -> str:
    """A page of a part of the package: the docstrings of its modules and of their names."""
    package = ROOT / "rlcourse" / part
    modules = [f"rlcourse.{part}"]
    for path in sorted(package.glob("*.py")) if package.is_dir() else []:
        if not path.stem.startswith(("_", "build_", "commands")):
            modules.append(f"rlcourse.{part}.{path.stem}")
    parts = [f"# rlcourse.{part}"]
    for module in modules:
        if module != f"rlcourse.{part}":
            parts.append(f"## {module}")
        own = "   :members:\n   :ignore-module-all:"  # not what a package only hands on
        parts.append(f"```{{eval-rst}}\n.. automodule:: {module}\n{own}\n```")
    return "\n\n".join(parts) + "\n"


def linked(text: str, source: str, pages: set[str]) -> str:
    """The text of the file `source` with its links to other files leading to where they are."""
    place = page_of(source)

    def moved(match: re.Match) -> str:
        path, mark, anchor = match[1].partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if file in pages:
            return (
                f"]({os.path.relpath(page_of(file), os.path.dirname(place) or '.')}{mark}{anchor})"
            )
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        if not (ROOT / file).exists():
            return match[0]
        address = repository()
        return f"]({address}/blob/{published.BRANCH}/{file})" if address else "]{.file}"

    text = re.sub(r"\]\(([^)\s]+)\)", moved, text)
    return re.sub(r"\[([^\]]*)\]\{\.file\}", r"\1", text)  # a file that is on no page


def page_of(file: str) -> str:
    """The page of a file of the repository: a notebook's is its lesson, the README's the first."""
    if file.endswith(".ipynb"):
        return f"lessons/{Path(file).stem}.md"
    return RENAMED.get(file, file)


if __name__ == "__main__":
    try:
        write_pages(*map(Path, sys.argv[1:]))
    except UserError as error:
        sys.exit(f"rlcourse: {error}")
