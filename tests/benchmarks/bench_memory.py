"""What grading each lesson's solution takes in memory: the processes that run student code.

    python tests/benchmarks/bench_memory.py             # all lessons
    python tests/benchmarks/bench_memory.py 16 18

The most that was seen, with each shared page counted once. Gradescope's default container has
768 MiB for everything. Each lesson is graded by a process of its own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))

import memory
import nbformat
from small_courses import write_course

from rlcourse.authoring import build, stubs
from rlcourse.courses import shipped
from rlcourse.exercises import all as all_exercises
from rlcourse.grading import Options, grade


def measured(lesson: str, root: Path) -> str:
    """A line of the table."""
    write_course(root / "course", {lesson: None})
    build(root=root, progress=False)
    exercises = {e.name: e for e in all_exercises(contests=True) if e.lesson == lesson}
    notebook = nbformat.read(root / "notebooks" / lesson / f"{lesson}.ipynb", as_version=4)
    for cell in notebook.cells:
        if (name := cell.metadata.get("nbgrader", {}).get("grade_id")) in exercises:
            cell.source = stubs.solution(exercises[name].reference, marks=False)
    path = root / "course" / "submitted" / "solved" / lesson / f"{lesson}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    with memory.watched(os.getpid(), itself=False) as peak:
        (row,) = grade(lesson, course=root / "course", options=Options(jobs=1)).rows
    return f"{lesson:24}{peak.bytes / 2**20:6.0f} MiB  {row.score:g} of {row.possible:g} points"


def main() -> None:
    """One lesson in this process; of several, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", metavar="NUMBER")
    wanted = parser.parse_args().lessons
    names = [x.name for x in shipped().lessons if not wanted or x.name[:2] in wanted]
    if len(names) == 1:
        with tempfile.TemporaryDirectory() as root:
            print(measured(names[0], Path(root)))
        return
    for name in names:
        subprocess.run([sys.executable, __file__, name[:2]], stderr=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
