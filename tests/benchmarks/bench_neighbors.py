"""What attackers cost others: the neighbors of each attack, and a class with hogs in it.

    python tests/benchmarks/bench_neighbors.py                        # some minutes
    python tests/benchmarks/bench_neighbors.py --rounds 9 exhausting  # attacks of one kind

Neighbors: an honest submission runs again and again while an attack runs beside it, over and over.
In each round it runs beside the attack and beside a cell that does nothing but compute, in turns
that change their order, so that what else this machine does falls on both alike. The ratio of the
medians is to stay below 1.2, on the clock and in processor seconds; on a machine whose cores are
taken, believe the processor seconds, and the clock only where the two differ for each attack alike.

Hogs: of a class of 20, five use up all that they get. Their processor seconds are to be at most 1.5
times what they may take, and then they hold up a class for at most that, over the cores. Limits are
a twentieth of the usual ones.
"""

import argparse
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import attacks_by_clock
import attacks_by_force  # noqa: F401  (they register themselves)
import classroom as room
from attacks import ATTACKS, LIMITS, MEMORY, SECRET, Field

from rlcourse.authoring.notebooks import student_notebook
from rlcourse.grading import Options, grade
from rlcourse.grading.books.gradebook import Course, load_source
from rlcourse.grading.handing_in.submission import parse, rebuild
from rlcourse.grading.judging.judge import LessonExam
from rlcourse.grading.running.conversation import Conversation
from rlcourse.grading.running.library import write_library
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Account, Sandbox
from rlcourse.grading.running.steps import Cell

KINDS = ("neighbors", "exhausting", "clocks")
BUSY = [Cell("busy", "while True: pass")]
MOST, MOST_OF_HOGS = 1.2, 1.5
A_TWENTIETH = Limits(step=1.5, grace=0.1, submission=9.0)
STUDENTS, HOGS = 20, 5


class Ground:
    """A sandbox, the steps of an honest submission, and those of every attack."""

    def __init__(self, course: Path, root: Path):
        opened = Course.open(course)
        source = load_source(opened, room.LESSON)
        self.release = student_notebook(source, room.LESSON, course / "nbgrader_config.py")
        self.exam = LessonExam(self.release, SECRET, LIMITS)
        outside, secret = root / "outside", root / "secret"
        outside.mkdir()
        secret.write_text("HIDDEN-TREASURE")
        self.field = Field(course, room.released(course), room.solved(course), outside, secret, 9)
        write_library(root / "library", self.exam.exercises.values())
        cells = [s.source for s in self.exam.steps(self.release) if isinstance(s, Cell)]
        self.sandbox = Sandbox(root / "library", root / "server", cells, memory=MEMORY)
        self.honest = self.steps(room.json.dumps(self.field.perfect).encode())

    def steps(self, data: bytes) -> Sequence:
        return self.exam.steps(rebuild(self.release, parse(data)))

    def steps_of(self, attack) -> Sequence:
        attack.write(self.field, "attacker")
        path = self.field.course / "submitted/attacker" / room.LESSON / f"{room.LESSON}.ipynb"
        return self.steps(path.read_bytes())

    def cost(self, steps: Sequence) -> tuple[float, float]:
        """(seconds on the clock, processor seconds) of a submission."""
        start = time.perf_counter()
        with self.sandbox.line() as line:
            account = Account(line, LIMITS)
            Conversation(account).run(steps)
            seconds = time.perf_counter() - start
        return seconds, account.used

    def beside(self, other: Sequence, times: int) -> list[tuple[float, float]]:
        """What honest submissions cost while `other` runs again and again."""
        stop = threading.Event()

        def run() -> None:
            while not stop.is_set():
                with self.sandbox.line() as line:
                    lines.append(line)
                    Conversation(Account(line, LIMITS)).run(other)

        lines: list[socket.socket] = []
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run)
            while not lines and not running.done():
                time.sleep(0.01)
            try:
                return [self.cost(self.honest) for _ in range(times)]
            finally:
                stop.set()
                for line in lines[-1:]:
                    line.shutdown(socket.SHUT_WR)


def neighbors(course: Path, root: Path, kinds: Sequence[str], rounds: int) -> int:
    """How many attacks cost their neighbors more than they may, in processor seconds."""
    ground, wrong = Ground(course, root), 0
    print(f"{'kind':10} {'attack':55} {'clock':>6} {'processor':>9}   beside it, beside a loop = 1")
    with ground.sandbox:
        ground.cost(ground.honest)
        for attack in [a for a in ATTACKS if a.kind in kinds]:
            steps, found = ground.steps_of(attack), {"attack": [], "loop": []}
            for number in range(rounds):
                turns = [("attack", steps), ("loop", BUSY)]
                for name, other in turns[:: -1 if number % 2 else 1]:
                    found[name] += ground.beside(other, 2)
            clock, processor = (
                statistics.median(cost[i] for cost in found["attack"])
                / statistics.median(cost[i] for cost in found["loop"])
                for i in (0, 1)
            )
            wrong += processor > MOST
            line = f"{attack.kind:10} {attack.name[:55]:55} {clock:6.2f} {processor:9.2f}"
            print(line + "   more than it may" * (processor > MOST), flush=True)
    return wrong


def hogs(course: Path) -> int:
    """1 where hogs take more than they may or cost somebody points, else 0."""
    deaf = room.released(course)
    for _ in range(6):
        deaf = room.with_code(deaf, attacks_by_clock.DEAF)
    # A name that is missing, for a second run
    missing = "def score_function(logits, action):\n    return not_there(logits)"
    twice = room.with_answers(deaf, score_function=missing)
    threads = room.with_code(
        deaf,
        "import threading\nfor _ in range(8):\n"
        "    threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start()",
    )
    kinds = [deaf, twice, threads]
    for number in range(STUDENTS):
        hog = number % (STUDENTS // HOGS) == 0
        notebook = kinds[number // (STUDENTS // HOGS) % len(kinds)] if hog else room.solved(course)
        room.submit(course, f"{'hog' if hog else 'honest'}{number:02}", notebook)
    spent, start = spent_by_submissions(), time.perf_counter()
    report = grade("02", course=course, options=Options(limits=A_TWENTIETH))
    clock = time.perf_counter() - start
    honest = [row for row in report.rows if row.student.startswith("honest")]
    full = sum(row.score == row.possible for row in honest)
    for row in report.rows:
        if row not in honest:
            print(f"{row.student}: {'; '.join(row.incidents)}")
    processor = sorted(spent.values())
    ratio = sum(processor[-HOGS:]) / (HOGS * A_TWENTIETH.submission)
    print(f"hogs: {full} of {len(honest)} honest ones have all points; {clock:.0f} s on the clock")
    print(f"processor seconds: honest {sum(processor[:-HOGS]):.1f}, hogs "
          f"{', '.join(f'{seconds:.1f}' for seconds in processor[-HOGS:])}: {ratio:.2f} of "
          f"what they may take, at most {MOST_OF_HOGS} is wanted")  # fmt: skip
    return int(ratio > MOST_OF_HOGS or full < len(honest))


def spent_by_submissions() -> dict[int, float]:
    """{account: processor seconds of all its processes}, filled in as accounts are closed."""
    spent: dict[int, float] = {}
    close = Account.close

    def closing(account: Account, number: int, more: float = 0.0) -> None:
        close(account, number, more)
        spent[id(account)] = account._used
        kept.append(account)  # or another one gets its number

    kept: list[Account] = []
    Account.close = closing
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=KINDS, help="kinds of attacks, or `hogs`")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="bench-neighbors-") as name:
        root = Path(name)
        root.chmod(0o755)
        course = room.make_course(root / "repository")
        if args.kinds != ["hogs"]:
            wrong += neighbors(course, root, args.kinds, args.rounds)
        if args.kinds in (KINDS, ["hogs"]):
            wrong += hogs(course)
    print(f"cores {len(os.sched_getaffinity(0))}, load {os.getloadavg()[0]:.1f}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
