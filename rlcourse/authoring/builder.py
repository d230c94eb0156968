"""Build every notebook from ``course/lessons/*.md``; ``rlcourse build`` is this module.

Per lesson: ``course/source/NN_topic/NN_topic.ipynb`` (for nbgrader), ``notebooks/NN_topic/
NN_topic.ipynb`` (for students) and ``solutions/NN_topic.ipynb`` (solved and executed). The same
sources give the same bytes, so that CI can say when a committed notebook has drifted.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from tqdm import tqdm

import rlcourse
from rlcourse import bars
from rlcourse.errors import UserError
from rlcourse.lab.answers import answered_cells

from .hosted import is_setup
from .kernel import error_of, run_cells, traceback_of
from .lesson import Lesson, read_lesson
from .notebooks import dumps, solved_notebook, source_notebook, student_notebook, without_outputs
from .results import check_output

ALIVE_ONLY = {"application/vnd.jupyter.widget-view+json", bars.MIME}
CELL_TIMEOUT = 600.0  # seconds: a demo cell trains for up to two minutes on a laptop


@dataclass(frozen=True)
class Built:
    """What was done for a lesson. ``solution`` is executed, current, stale or missing."""

    lesson: str
    seconds: float
    written: tuple[Path, ...]
    solution: str

    def __str__(self) -> str:
        advice = "" if self.solution in ("executed", "current") else ", --execute writes it"
        files = f"{len(self.written)} files written" if self.written else "nothing to write"
        return f"{self.lesson}: {files}, solution {self.solution}{advice} ({self.seconds:.1f} s)"


def build(
    lessons: Sequence[str] | None = None,
    execute: bool = False,
    check: bool = False,
    force: bool = False,
    *,
    root: Path | None = None,
    registry: Iterable | None = None,
    progress: bool = True,
) -> list[Built]:
    """Build the named lessons ("02", "policy_gradient", "02_policy_gradient"; None: all).

    Without ``execute`` no kernel starts: a solution whose code is unchanged keeps its pictures, any
    other is reported as stale and left alone. With ``execute``, solutions are run and written; a
    cell that fails, or a check that does not pass, leaves the old file in place. With ``check``
    nothing is written, and a file that the sources do not give raises ``UserError``. Answers that
    somebody wrote into ``notebooks/`` are not written over without ``force``.

    ``root`` is the course repository (default: found from the working directory upward), and
    ``registry`` the declared exercises (default: all of ``rlcourse.exercises``).
    """
    if check and execute:
        raise UserError("--check compares files without running them: leave out --execute.")
    root = Path(root) if root else find_root()
    registry = list(_declared() if registry is None else registry)
    paths = _selected(root, lessons)
    if check:
        for path in tqdm(paths, desc="check", unit="lesson", disable=not progress, leave=False):
            _verify(root, read_lesson(path, registry))
        if lessons is None:
            _verify_no_orphans(root, {path.stem for path in paths})
        return []
    parsed = [read_lesson(path, registry) for path in paths]  # authors' errors first, all lessons
    if not force:
        for lesson in parsed:
            _refuse_answers(_files(root, lesson.name)[1], root)
    bar = tqdm(parsed, desc="build", unit="lesson", disable=not progress, leave=False)
    return [_build_one(root, lesson, execute, progress) for lesson in bar]


def find_root(start: Path | None = None) -> Path:
    """The directory that holds ``course/lessons``: from ``start`` upward, else the package's."""
    start = Path(start or Path.cwd()).resolve()
    for candidate in (start, *start.parents, Path(rlcourse.__file__).resolve().parents[1]):
        if (candidate / "course" / "lessons").is_dir():
            return candidate
    raise UserError("no course/lessons here: run this inside a copy of the course repository.")


def _declared() -> Iterable:
    from rlcourse import exercises

    return exercises.all()


def _selected(root: Path, lessons: Sequence[str] | None) -> list[Path]:
    paths = sorted((root / "course" / "lessons").glob("*.md"))
    if lessons is None:
        return paths
    chosen = []
    for wanted in lessons:
        found = [p for p in paths if wanted in (p.stem, *p.stem.split("_", 1))]
        if not found:
            known = ", ".join(p.stem for p in paths) or "none yet"
            raise UserError(f"no lesson {wanted!r}: choose from {known}.")
        chosen += found
    return sorted(set(chosen))


def _files(root: Path, name: str) -> tuple[Path, Path, Path]:
    """Source, student and solution notebook of a lesson."""
    return (
        root / "course" / "source" / name / f"{name}.ipynb",
        root / "notebooks" / name / f"{name}.ipynb",
        root / "solutions" / f"{name}.ipynb",
    )


def _refuse_answers(path: Path, root: Path) -> None:
    """``notebooks/`` is built, but somebody may have worked in it all the same."""
    if names := answered_cells(path):
        raise UserError(
            f"{path.relative_to(root)} holds answers ({', '.join(names)}) that building would "
            "write over: copy it to another place, then build with --force."
        )


def _make(root: Path, lesson: Lesson) -> tuple[NotebookNode, NotebookNode, NotebookNode, dict]:
    source, lines = source_notebook(lesson)
    student = student_notebook(source, lesson.name, root / "course" / "nbgrader_config.py")
    return source, student, solved_notebook(lesson, student), lines


def _build_one(root: Path, lesson: Lesson, execute: bool, progress: bool) -> Built:
    start = time.perf_counter()
    source_path, student_path, solution_path = _files(root, lesson.name)
    source, student, solved, lines = _make(root, lesson)
    texts = {source_path: dumps(source), student_path: dumps(student)}
    old = _read(solution_path)
    if execute:
        execute_solution(lesson, solved, lines, progress)
        texts[solution_path], state = dumps(solved), "executed"
    elif old is None:
        state = "missing"
    elif _keep_outputs(old, solved):
        texts[solution_path], state = dumps(solved), "current"
    else:
        state = "stale"
    written = tuple(path for path, text in texts.items() if write_if_changed(path, text))
    return Built(lesson.name, time.perf_counter() - start, written, state)


def execute_solution(
    lesson: Lesson, notebook: NotebookNode, lines: dict[str, int], progress: bool = True
) -> None:
    """Run a solved notebook in place, away from the user's own progress and IPython settings.

    Raises ``UserError`` naming the lesson's line where a cell raises or a check does not pass.
    """
    language_info = notebook.metadata.language_info
    with tempfile.TemporaryDirectory(prefix="rlcourse-run-") as scratch:
        home = {"RLCOURSE_HOME": f"{scratch}/home", "IPYTHONDIR": f"{scratch}/ipython"}
        stopped = run_cells(
            notebook,
            Path(scratch),
            timeout=CELL_TIMEOUT,
            stop_on_error=True,
            skip=is_setup,  # it does nothing here
            environment=home,
            label=lesson.name,
            progress=progress,
        )
    notebook.metadata.language_info = language_info  # the kernel's names a Python version
    _drop_widgets(notebook)
    if stopped is not None:
        cell = notebook.cells[stopped]
        reason = error_of(cell) or "the kernel died"
        sentence = f"the cell fails: {reason}. The old solution is left as it was."
        raise lesson.error(lines[cell.id], f"{sentence}\n{traceback_of(cell)}".rstrip())
    for cell in notebook.cells:
        result = check_output(cell)
        graded = "nbgrader" in cell.metadata  # other cells may show what a wrong answer gets
        if graded and result is not None and not result.passed:
            raise lesson.error(lines[cell.id], f"the solution of {result.exercise} is not passed.")


def _drop_widgets(notebook: NotebookNode) -> None:
    """Take out sliders, which are dead without a kernel, and bars, which say how long it took."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if not ALIVE_ONLY & set(o.get("data", {}))]


def _keep_outputs(old: NotebookNode, new: NotebookNode) -> bool:
    """Give ``new`` the outputs of ``old`` where all their code is the same; else return False."""
    before, after = (
        [cell for cell in notebook.cells if cell.cell_type == "code" and not is_setup(cell)]
        for notebook in (old, new)
    )
    if [cell.source for cell in before] != [cell.source for cell in after]:
        return False
    for kept, cell in zip(before, after, strict=True):
        cell.outputs, cell.execution_count = kept.outputs, kept.execution_count
    return True


def _verify(root: Path, lesson: Lesson) -> None:
    _, student_path, solution_path = _files(root, lesson.name)
    _, student, solved, _ = _make(root, lesson)
    advice = f"run `rlcourse build {lesson.name}` and commit the result."
    if not student_path.is_file() or student_path.read_text(encoding="utf-8") != dumps(student):
        raise UserError(f"{student_path.relative_to(root)} is not what the lesson gives: {advice}")
    old = _read(solution_path)
    if old is None or dumps(without_outputs(old)) != dumps(solved):
        advice = advice.replace("build ", "build --execute ")
        raise UserError(f"{solution_path.relative_to(root)} is not what the lesson gives: {advice}")


def _verify_no_orphans(root: Path, names: set[str]) -> None:
    made = [*root.glob("notebooks/*/*.ipynb"), *root.glob("solutions/*.ipynb")]
    for path in sorted(made):
        if path.stem not in names:
            raise UserError(f"{path.relative_to(root)} has no lesson: delete it.")


def _read(path: Path) -> NotebookNode | None:
    """The notebook at ``path``; None where there is none that can be read."""
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError):
        return None


def write_if_changed(path: Path, text: str) -> bool:
    """Write atomically, and only when the bytes differ, so that an editor's tab stays quiet."""
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, suffix=".part", delete=False
    ) as part:
        part.write(text)
    Path(part.name).chmod(0o644)  # temporary files are private by default
    os.replace(part.name, path)
    return True
