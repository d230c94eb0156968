"""Build every notebook of a course from its lessons; ``rlcourse build`` is this module.

Per lesson: ``source/NN_topic/NN_topic.ipynb`` by ``course.toml`` (for nbgrader), and where that
file says so ``notebooks/NN_topic/NN_topic.ipynb`` (for students) and ``solutions/NN_topic.ipynb``
(solved and executed). The same
sources give the same bytes, so that CI can say when a committed notebook has drifted.
"""

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from tqdm import tqdm

from rlcourse import bars, exercises
from rlcourse.courses import Course, course_at, current, outputs
from rlcourse.courses.course import read_course
from rlcourse.courses.finding import VARIABLE, named
from rlcourse.errors import UserError
from rlcourse.files import write_text
from rlcourse.lab.answered import answered_cells
from rlcourse.words import counted

from . import hosted
from .filling import filled_pages
from .kernel import error_of, run_cells, traceback_of, verdict_of
from .lesson import Lesson, read_lesson
from .notebooks import dumps, solved_notebook, source_notebook, student_notebook
from .recording import recording, with_opening

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
        files = (
            counted(len(self.written), "file") + " written" if self.written else "nothing to write"
        )
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
    somebody wrote into ``notebooks/`` are not overwritten without ``force``.

    ``root`` is where to look for the course, from there upward (default: the working directory),
    and ``registry`` the declared exercises (default: all of the course).
    """
    if check and execute:
        raise UserError("--check compares files without running them: leave out --execute.")
    course = course_at(root) if root else current()
    registry = list(exercises.all(course, contests=True) if registry is None else registry)
    names = {course.lesson(wanted).name for wanted in lessons or ()}
    folders = [folder for folder in course.lessons if lessons is None or folder.name in names]
    parsed = [read_lesson(x.text, registry, course) for x in folders]  # authors' errors first
    pages = filled_pages(course, registry)
    if not (force or check):
        for lesson in parsed:
            _refuse_answers(course.notebook(lesson.name))
    built = []
    for lesson in tqdm(parsed, desc="build", unit="lesson", disable=not progress, leave=False):
        start = time.perf_counter()
        texts, state = _texts(course, lesson, execute, progress)
        if check:
            _verify(course, lesson.name, texts, state)
            continue
        written = tuple(path for path, text in texts.items() if write_if_changed(path, text))
        built.append(Built(lesson.name, time.perf_counter() - start, written, state))
    for path, text in pages.items():
        if not check:
            write_if_changed(path, text)
        elif lessons is None and path.read_text("utf-8") != text:
            raise UserError(f"{path} is out of date: run `rlcourse build`.")
    return built


def _files(course: Course, name: str) -> tuple[Path, Path, Path]:
    """Source, student and solution notebook of a lesson."""
    return (
        course.directory / "source" / name / f"{name}.ipynb",
        course.notebook(name),
        course.solutions / f"{name}.ipynb",
    )


def _solution_at_home(course: Course, name: str) -> Path:
    """The solution of a lesson in the course that it comes from."""
    home = read_course(course.lesson(name).home, named)
    return home.solutions / f"{name}.ipynb"


def _refuse_answers(path: Path) -> None:
    """``notebooks/`` is generated, but somebody may have worked in it all the same."""
    if names := answered_cells(path):
        raise UserError(
            f"{path} holds answers ({', '.join(names)}) that building would overwrite: copy it to "
            "another place, then build with --force."
        )


def _texts(
    course: Course, lesson: Lesson, execute: bool, progress: bool
) -> tuple[dict[Path, str], str]:
    """What a lesson's files hold, and the state of its solution as ``Built`` has it."""
    source_path, student_path, solution_path = _files(course, lesson.name)
    before, after = course.beside(lesson.name)
    neighbors = {"Previous lesson": before, "Next lesson": after}
    source, lines = source_notebook(lesson, not course.is_package, neighbors)
    student = student_notebook(source, lesson.name, course.directory / "nbgrader_config.py")
    solved = solved_notebook(lesson, student)
    folder = course.lesson(lesson.name)
    shown = outputs.read(folder)
    old = _read(solution_path) or _read(_solution_at_home(course, lesson.name))
    if execute:
        execute_solution(lesson, solved, lines, progress, course)
        state = "executed"
    elif old is None:
        state = "missing"
    elif _keep_outputs(old, solved):
        state = "current"
    else:
        state = "stale"
    made = state in ("executed", "current")
    if made:
        shown = recording(solved, shown)
    texts = {source_path: dumps(with_opening(source, shown))}
    texts[student_path] = dumps(with_opening(student, shown))
    if made:
        texts[solution_path] = dumps(with_opening(solved, shown))
    if made and folder.home == course.directory and (shown.cells or shown.opening):
        texts[folder.directory / outputs.FILE] = shown.text
    return texts, state


def _verify(course: Course, name: str, texts: dict[Path, str], state: str) -> None:
    """What is committed is what the sources give; the instructor's notebook is not committed."""
    source, _, solution = _files(course, name)
    advice = f"run `rlcourse build {name}` and commit the result."
    for path, text in texts.items():
        if path != source and not (path.is_file() and path.read_bytes() == text.encode()):
            raise UserError(f"{path} is out of date: {advice}")
    if solution not in texts:
        advice = advice.replace("build ", "build --execute ")
        raise UserError(f"{solution} is {state}: {advice}")


def execute_solution(
    lesson: Lesson,
    notebook: NotebookNode,
    lines: dict[str, int],
    progress: bool = True,
    course: Course | None = None,
) -> None:
    """Run a solved notebook in place, away from the user's own progress and IPython settings.

    Its checks are those of `course`, by default of the one that is meant here.

    Raises ``UserError`` naming the lesson's line where a cell raises or a check does not pass.
    """
    language_info = notebook.metadata.language_info
    with tempfile.TemporaryDirectory(prefix="rlcourse-run-") as scratch:
        home = {"RLCOURSE_HOME": f"{scratch}/home", "IPYTHONDIR": f"{scratch}/ipython"}
        home[VARIABLE] = str((course or current()).directory)
        home["RLCOURSE_REAL_MODEL"] = "recorded"  # whether or not this machine has a GPU
        stopped = run_cells(
            notebook,
            Path(scratch),
            timeout=CELL_TIMEOUT,
            stop_on_error=True,
            skip_tag=hosted.TAG,  # it does nothing here
            environment=home,
            label=lesson.name,
            progress=progress,
        )
    notebook.metadata.language_info = language_info  # the kernel's names a Python version
    _drop_widgets(notebook)
    if stopped is not None:
        cell = notebook.cells[stopped]
        reason = error_of(cell) or "the kernel died"
        sentence = f"the cell fails: {reason}. The old solution is unchanged."
        raise lesson.error(lines[cell.id], f"{sentence}\n{traceback_of(cell)}".rstrip())
    for cell in notebook.cells:
        verdict = verdict_of(cell)
        graded = "nbgrader" in cell.metadata  # other cells may demonstrate wrong answers
        if graded and verdict and not verdict["passed"]:
            raise lesson.error(
                lines[cell.id], f"the solution of {verdict['exercise']} does not pass its check."
            )


def _drop_widgets(notebook: NotebookNode) -> None:
    """Remove sliders, which need a kernel, and progress bars, which say how long it took."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if not ALIVE_ONLY & set(o.get("data", {}))]


def _keep_outputs(old: NotebookNode, new: NotebookNode) -> bool:
    """Give ``new`` the outputs of ``old`` where all their code is the same; else return False."""
    before, after = (
        [cell for cell in notebook.cells if cell.cell_type == "code" and not hosted.is_setup(cell)]
        for notebook in (old, new)
    )
    if [cell.source for cell in before] != [cell.source for cell in after]:
        return False
    for kept, cell in zip(before, after, strict=True):
        cell.outputs, cell.execution_count = kept.outputs, kept.execution_count
    return True


def _read(path: Path) -> NotebookNode | None:
    """The notebook at ``path``; None if there is none that can be read."""
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError):
        return None


def write_if_changed(path: Path, text: str) -> bool:
    """Write `text`, but only if the bytes differ, so that editors do not ask to reload it."""
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return True
