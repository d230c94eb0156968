"""Write the pages of the site as MyST Markdown, from the notebooks and texts that are there.

A lesson's page is the students' notebook with the outputs of its executed solution, the hints
folded; the solutions stand on a page of their own. Nothing is executed. Links between files of
the repository become links between pages, or lead to the repository where a file is no page.
"""

import base64
import hashlib
import os
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from rlcourse import exercises, published

ROOT = Path(__file__).resolve().parents[2]
RENAMED = {"README.md": "index.md", "course/README.md": "course/instructors.md"}
# One page of the reference each: what a reader of the lessons or an instructor calls.
REFERENCE = (
    *("algorithms", "tasks", "policy", "training", "evaluation", "planning", "reports"),
    *("student", "checks", "plots", "pictures"),
)
PROGRESS = re.compile(r"\s*(progress|hint)\(")  # cells whose output is about the reader
PICTURE = re.compile(r'src="data:image/png;base64,([^"]+)"')


@dataclass(frozen=True)
class Lesson:
    """One lesson's two notebooks: as students get it, and solved and executed."""

    name: str
    released: NotebookNode
    solved: NotebookNode

    @property
    def title(self) -> str:
        return self.released.cells[0].source.partition("\n")[0].lstrip("# ")

    @property
    def about(self) -> str:
        """The first sentence of the text."""
        text = self.released.cells[0].source.split("\n\n")[1].replace("\n", " ")
        return re.split(r"(?<=[.?!]) ", text)[0]


def write_pages(target: Path, extra: Path) -> None:
    """Write every page below `target`, and what is no page but belongs beside them to `extra`.

    Both are emptied first.
    """
    for folder in (target, extra):
        shutil.rmtree(folder, ignore_errors=True)
    lessons = [read_lesson(path.stem) for path in sorted((ROOT / "solutions").glob("*.ipynb"))]
    texts = [*ROOT.glob("*.md"), *(ROOT / "course").glob("*.md")]
    pages = {str(path.relative_to(ROOT)) for path in texts}
    pages |= {f"notebooks/{lesson.name}/{lesson.name}.ipynb" for lesson in lessons}
    for lesson in lessons:
        source = f"notebooks/{lesson.name}/{lesson.name}.ipynb"
        page = linked(lesson_page(lesson, extra), source, pages)
        write(target / f"lessons/{lesson.name}.md", page)
        write(target / f"solutions/{lesson.name}.md", solutions_page(lesson))
        write(extra / source, (ROOT / source).read_text("utf-8"))
        write(extra / f"lessons/{lesson.name}.md", plain_text(lesson))
    for path in texts:
        name = str(path.relative_to(ROOT))
        text = linked(path.read_text("utf-8"), name, pages)
        if name == "README.md":
            text = home_page(text, lessons, sorted(pages))
        write(target / RENAMED.get(name, name), text)
    for part in REFERENCE:
        write(target / f"reference/{part}.md", reference_page(part))
    write(extra / "llms.txt", llms_txt(lessons))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def repository() -> str:
    """Where the course is published: what a workflow says, else the package; "" if nowhere."""
    return (os.environ.get("RLCOURSE_REPOSITORY") or published.REPOSITORY).rstrip("/")


def colab(lesson: str) -> str:
    """Address that opens a lesson's notebook on Colab; "" as long as it is not published."""
    return published.launch_links(lesson, repository()).get("Colab", "")


# lessons


def read_lesson(name: str) -> Lesson:
    released = nbformat.read(ROOT / f"notebooks/{name}/{name}.ipynb", as_version=4)
    released.cells = [c for c in released.cells if "setup" not in c.metadata.get("tags", [])]
    return Lesson(name, released, nbformat.read(ROOT / f"solutions/{name}.ipynb", as_version=4))


def lesson_page(lesson: Lesson, extra: Path) -> str:
    solved = {cell.id: cell for cell in lesson.solved.cells}
    declared = {exercise.name: exercise for exercise in exercises.all()}
    parts = []
    for i, cell in enumerate(lesson.released.cells):
        if cell.cell_type == "markdown":
            title, _, rest = cell.source.partition("\n")
            parts += [title, links_of(lesson), rest] if i == 0 else [cell.source]
        else:
            parts.append(fenced(cell.source, "python"))
        if cell.id in declared:
            parts.append(folded_hints(declared[cell.id].hints, lesson.name, cell.id))
        elif cell.id in solved and not cell.id.startswith("check_"):
            outputs = [] if PROGRESS.match(cell.source) else solved[cell.id].get("outputs", [])
            parts += [shown(output, extra) for output in outputs]
    return "\n\n".join(filter(None, parts)) + "\n"


def links_of(lesson: Lesson) -> str:
    """Below the title: where to work on it, and its solutions."""
    opened = "" if "colab.research" in lesson.released.cells[0].source else colab(lesson.name)
    links = [f"[Open in Colab]({opened})"] if opened else []
    notebook = f"../notebooks/{lesson.name}/{lesson.name}.ipynb"
    links.append(f'<a href="{notebook}" download>Notebook</a>')
    links.append(f"[Solutions](../solutions/{lesson.name}.md)")
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
        content = base64.b64decode(match[1])
        name = f"pictures/{hashlib.sha256(content).hexdigest()[:16]}.png"
        path = extra / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f'src="../{name}" loading="lazy"'

    drawn = PICTURE.sub(file_of, data["text/html"])
    return fenced(f'<div class="shown">{drawn}</div>', "{raw} html")


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


def plain_text(lesson: Lesson) -> str:
    """The lesson for those who read text: Markdown and code, no outputs."""
    cells = lesson.released.cells
    return "\n\n".join(
        cell.source if cell.cell_type == "markdown" else fenced(cell.source, "python")
        for cell in cells
    )


def fenced(text: str, language: str, role: str = "") -> str:
    """A code block whose fence is longer than any in the text."""
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    if role:
        return f"{ticks}{{code-block}} {language}\n:class: {role}\n\n{text}\n{ticks}"
    return f"{ticks}{language}\n{text}\n{ticks}"


# other pages


def home_page(text: str, lessons: list[Lesson], pages: list[str]) -> str:
    """The README, its table of lessons linked, and the tree of all pages."""
    for lesson in lessons:
        row = rf"^\| {lesson.name[:2]} \| ([^|]+?) \|"
        text = re.sub(
            row, rf"| {lesson.name[:2]} | [\1](lessons/{lesson.name}.md) |", text, flags=re.M
        )
    guides = [RENAMED.get(p, p) for p in pages if p.startswith("course/")]
    about = [p for p in pages if p.endswith(".md") and "/" not in p and p not in RENAMED]
    trees = {
        "Lessons": [f"lessons/{lesson.name}" for lesson in lessons],
        "Guides": sorted(guides),
        "Reference": [f"reference/{part}" for part in REFERENCE],
        "Solutions": [f"solutions/{lesson.name}" for lesson in lessons],
        "The project": about,
    }
    for caption, entries in trees.items():
        text += (
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(entries) + "\n```\n"
        )
    return text


def reference_page(part: str) -> str:
    """A page of a part of the package: what each of its modules says of itself and of its names."""
    package = ROOT / "rlcourse" / part
    modules = [f"rlcourse.{part}"]
    for path in sorted(package.glob("*.py")) if package.is_dir() else []:
        if not path.stem.startswith(("_", "build_")):
            modules.append(f"rlcourse.{part}.{path.stem}")
    parts = [f"# rlcourse.{part}"]
    for module in modules:
        if module != f"rlcourse.{part}":
            parts.append(f"## {module}")
        own = "   :members:\n   :ignore-module-all:"  # not what a package only hands on
        parts.append(f"```{{eval-rst}}\n.. automodule:: {module}\n{own}\n```")
    return "\n\n".join(parts) + "\n"


def llms_txt(lessons: list[Lesson]) -> str:
    """The site for language models, in the form that llmstxt.org proposes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [f"# {project['name']}", "", f"> {project['description']}", "", "## Lessons", ""]
    lines += [f"- [{lesson.title}](lessons/{lesson.name}.md): {lesson.about}" for lesson in lessons]
    lines += ["", "## Solutions", ""]
    lines += [f"- [{lesson.title}](solutions/{lesson.name}.html)" for lesson in lessons]
    lines += ["", "## Reference", ""]
    lines += [f"- [rlcourse.{part}](reference/{part}.html)" for part in REFERENCE]
    return "\n".join(lines) + "\n"


def linked(text: str, source: str, pages: set[str]) -> str:
    """The text of the file `source` with its links to other files leading to where they are."""
    place = page_of(source)

    def moved(match: re.Match) -> str:
        path, mark, anchor = match[1].partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if not path or "://" in path or path.startswith("mailto:") or not (ROOT / file).exists():
            return match[0]
        if file in pages:
            return (
                f"]({os.path.relpath(page_of(file), os.path.dirname(place) or '.')}{mark}{anchor})"
            )
        address = repository()
        return f"]({address}/blob/{published.BRANCH}/{file})" if address else "]{.file}"

    text = re.sub(r"\]\(([^)\s]+)\)", moved, text)
    return re.sub(r"\[([^\]]*)\]\{\.file\}", r"\1", text)  # a file that is nowhere to be seen


def page_of(file: str) -> str:
    """The page of a file of the repository: README.md → index.md."""
    if file.endswith(".ipynb"):
        return f"lessons/{Path(file).stem}.md"
    return RENAMED.get(file, file)


if __name__ == "__main__":
    write_pages(*map(Path, sys.argv[1:]))
