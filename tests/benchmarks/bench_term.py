"""A term of grading: so many students, every lesson, from nothing, on all cores.

    python tests/benchmarks/bench_term.py                          # 300 students
    python tests/benchmarks/bench_term.py --students 30 --root DIR # a share; DIR is kept

Submissions are of four kinds in turn: solved, solved by the half, with a known mistake in every
function that has one which stands for itself (the others are solved), and blank. Interrupted, it
goes on where it stopped when it is started again with the same `--root`. Figures are of what this
run graded: seconds for each lesson, and for one more submission (over the second half of them: the
first wrong answer has all known mistakes computed, once a lesson). What 300 students would take is
extrapolated from both.
"""

import argparse
import copy
import inspect
import json
import os
import sys
import tempfile
import textwrap
import time
from contextlib import nullcontext
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import nbformat

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_courses import write_course
from tqdm import tqdm

from rlcourse.authoring import build, stubs
from rlcourse.checks.judging.sketch import Edit
from rlcourse.courses import shipped
from rlcourse.exercises import all as all_exercises
from rlcourse.grading import Options, grade

LESSONS = [lesson.name for lesson in shipped().lessons]
TERM = 300


def make_term(root: Path, students: int) -> Path:
    """The course with all lessons built, and what everybody hands in; what stands is left."""
    course = root / "course"
    if not course.exists():
        write_course(course, dict.fromkeys(LESSONS))
        build(root=root, progress=False)
    for lesson in LESSONS:
        kinds = kinds_of(root / "notebooks" / lesson / f"{lesson}.ipynb", lesson)
        for number in range(students):
            folder = course / "submitted" / f"s{number:03}" / lesson
            if not folder.exists():
                folder.mkdir(parents=True)
                (folder / f"{lesson}.ipynb").write_text(kinds[number % len(kinds)])
    return course


def kinds_of(path: Path, lesson: str) -> list[str]:
    """Notebooks of a lesson: solved, half solved, wrong, blank."""
    blank = nbformat.read(path, as_version=4)
    exercises = [e for e in all_exercises() if e.lesson == lesson]
    right = {e.name: stubs.solution(e.reference, marks=False) for e in exercises}
    half = dict(list(right.items())[: (len(right) + 1) // 2])
    wrong = {e.name: mistaken(e) for e in exercises}
    return [json.dumps(with_answers(blank, answers)) for answers in (right, half, wrong, {})]


def mistaken(exercise) -> str:
    """A declared mistake that stands for itself, under the exercise's name; else the solution."""
    for mistake in exercise.mistakes:
        if source := text_of(mistake.implementation):
            return source.replace(
                f"def {mistake.implementation.__name__}(", f"def {exercise.name}(", 1
            )
    return stubs.solution(exercise.reference, marks=False)


def text_of(implementation) -> str | None:
    """The text of a mistake that needs nothing but torch."""
    edited = isinstance(implementation, Edit)
    fn = implementation.function if edited else implementation
    if not inspect.isfunction(fn) or fn.__name__ == "<lambda>" or fn.__closure__:
        return None
    if {*fn.__code__.co_names} & {*fn.__globals__} - {"torch"}:
        return None
    try:
        return implementation.text if edited else textwrap.dedent(inspect.getsource(fn))
    except OSError:  # put together from a sketch
        return None


def with_answers(notebook, answers: dict[str, str]):
    changed = copy.deepcopy(notebook)
    for cell in changed.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=TERM)
    parser.add_argument("--jobs", type=int, help="submissions at a time [default: one per core]")
    parser.add_argument("--root", type=Path, help="where to work, and to go on later")
    args = parser.parse_args()
    kept = (
        nullcontext(args.root) if args.root else tempfile.TemporaryDirectory(prefix="bench-term-")
    )
    with kept as root:
        course = make_term(Path(root), args.students)
        grade_term(course, args.students, args.jobs)


def grade_term(course: Path, students: int, jobs: int | None) -> None:
    total = students * len(LESSONS)
    whole = extrapolated = 0.0
    graded = 0
    print(f"{'lesson':24} {'graded':>6} {'seconds':>8} {'one more':>9}  statuses")
    with tqdm(total=total, desc="term", unit="submission", smoothing=0, leave=False) as bar:
        for lesson in LESSONS:
            start, done = time.perf_counter(), []

            def advance(row, count, done=done):
                bar.initial += row.before
                bar.update()
                if not row.before:
                    done.append(time.perf_counter())

            report = grade(lesson, course=course, options=Options(jobs=jobs), on_row=advance)
            seconds = time.perf_counter() - start
            half = len(done) // 2
            each = (done[-1] - done[half]) / (len(done) - 1 - half) if len(done) > 2 else 0.0
            whole, graded = whole + seconds, graded + len(done)
            extrapolated += seconds + each * (TERM - len(done))
            statuses = sorted({row.status for row in report.rows})
            line = f"{lesson:24} {len(done):6} {seconds:8.1f} {each:9.3f}  {', '.join(statuses)}"
            tqdm.write(line, file=sys.stdout)
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"\n{graded} submissions in {whole:.0f} s, {cores} cores, load {load:.1f}")
    if graded < TERM * len(LESSONS):
        print(f"extrapolated to {TERM} × {len(LESSONS)}: {extrapolated / 60:.1f} min")


if __name__ == "__main__":
    main()
