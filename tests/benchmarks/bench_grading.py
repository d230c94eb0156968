"""What one more submission costs `rlcourse grade` and plain `nbgrader autograde`, interleaved.

    python tests/benchmarks/bench_grading.py                # 3 rounds, a class of 100
    python tests/benchmarks/bench_grading.py --rounds 5 --plain 4 --students 40

Both grade the same submissions of lesson 02: perfect, half solved, blank and wrong ones in turn. In
each round plain nbgrader grades `--plain` of them, in a process that is warm (so that only the
submissions count), then ours grades the class on one core and on all. Marginal seconds are from the
first finished submission to the last; a class is timed from nothing, with the start of the server.

On a busy machine read the processor seconds: of all processes, and of ours, what the class costs
beyond a fifth of it, for each of those further submissions.
"""

import argparse
import logging
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ.setdefault("OMP_NUM_THREADS", "1")

import classroom as room
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from traitlets.config import PyFileConfigLoader

from rlcourse.grading.engine import Options, grade

WRONG = """\
def reinforce_loss(logprobs, advantages, mask):
    return (advantages.detach() * logprobs.masked_fill(~mask.bool(), 0).sum(dim=1)).mean()
"""


def make_class(root: Path, students: int) -> tuple[Path, Path]:
    """(course for us, the same course for plain nbgrader)."""
    ours = room.make_course(root / "ours")
    kinds = [
        room.solved(ours),
        room.solved(ours, room.NAMES[:2]),
        room.released(ours),
        room.with_answers(room.solved(ours), reinforce_loss=WRONG),
    ]
    for number in range(students):
        room.submit(ours, f"s{number:03}", kinds[number % len(kinds)])
    plain = root / "plain" / "course"
    shutil.copytree(ours, plain)
    config = (plain / "nbgrader_config.py").read_text()
    config = config[: config.index("# Student code runs")] + "c.Execute.timeout = 120\n"
    (plain / "nbgrader_config.py").write_text(config)
    grade("02", student="s000", course=plain)  # enters the assignment into its gradebook
    shutil.rmtree(plain / "autograded")
    return ours, plain


def processor() -> float:
    """Processor seconds of this process so far, and of all that it has waited for."""
    spent = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def a_fifth(course: Path) -> Path:
    """What the first fifth of the class handed in, and four at least."""
    submitted, few = course / "submitted", course.parent / "few"
    students = sorted(os.listdir(submitted))
    for student in students[: max(4, len(students) // 5)]:
        shutil.copytree(submitted / student, few / student)
    return few


def plain_seconds(course: Path, student: str) -> tuple[float, float]:
    """Plain nbgrader on one submission: seconds, processor seconds."""
    config = PyFileConfigLoader("nbgrader_config.py", str(course)).load_config()
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.student_id = student
    config.CourseDirectory.assignment_id = room.LESSON
    config.Autograde.force = True
    converter = Autograde(coursedir=CourseDirectory(config=config), config=config)
    converter.log.setLevel(logging.CRITICAL)
    start, spent = time.perf_counter(), processor()
    converter.start()
    return time.perf_counter() - start, processor() - spent


def our_seconds(course: Path, jobs: int, submitted: Path | None = None) -> tuple[float, ...]:
    """(the whole class, one more submission, processor seconds) with that many at a time."""
    start, spent, done = time.perf_counter(), processor(), []
    grade(
        "02",
        submitted,
        course=course,
        options=Options(force=True, jobs=jobs),
        on_row=lambda row, count: done.append(time.perf_counter()),
    )
    each = (done[-1] - done[0]) / (len(done) - 1)
    return time.perf_counter() - start, each, processor() - spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--plain", type=int, default=4, help="submissions per round for nbgrader")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="bench-grading-") as root:
        ours, plain = make_class(Path(root), args.students)
        plain_seconds(plain, "s000")  # imports, the database, the kernel's files in the cache
        measured: dict[str, list[float]] = {"plain": [], "plain, processor": [], "class": []}
        few = a_fifth(ours)
        more = args.students - len(os.listdir(few))
        for number in range(args.rounds):
            for k in range(args.plain):
                student = f"s{(number * args.plain + k) % args.students:03}"
                seconds, spent = plain_seconds(plain, student)
                measured["plain"].append(seconds)
                measured["plain, processor"].append(spent)
            for jobs in dict.fromkeys((1, cores)):
                _, _, for_few = our_seconds(ours, jobs, few)
                whole, marginal, spent = our_seconds(ours, jobs)
                measured.setdefault(f"ours, {jobs} at a time", []).append(marginal)
                by_processor = measured.setdefault(f"ours, {jobs} at a time, processor", [])
                by_processor.append((spent - for_few) / more)
            measured["class"].append(whole)
            print(f"round {number + 1}: {whole:.1f} s for the class", flush=True)
    report(measured, args.students, cores)


def report(measured, students: int, cores: int) -> None:
    plain = statistics.median(measured["plain"])
    rows = [(name, seconds) for name, seconds in measured.items() if name != "class"]
    print(f"\nmarginal seconds per submission ({cores} cores, load {os.getloadavg()[0]:.1f})")
    for name, seconds in rows:
        like = "plain, processor" if name.endswith("processor") else "plain"
        plain_one = statistics.median(measured[like])
        middle = statistics.median(seconds)
        spread = f"{min(seconds):.3f} to {max(seconds):.3f}"
        print(f"  {name:32} {middle:8.3f}   ({spread})   {plain_one / middle:6.1f}×")
    whole = statistics.median(measured["class"])
    print(
        f"class of {students}: {whole:.1f} s from nothing; plain nbgrader {students * plain:.0f} s"
    )
    print("  (that many times its marginal seconds)")


if __name__ == "__main__":
    main()
