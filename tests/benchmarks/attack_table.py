"""The table of attacks: what each deserves, what `rlcourse grade` gives, what plain nbgrader gives.

    make attacks                          # ours, some minutes
    make attacks ARGS=--plain             # as root, on a machine to spare: hours
    make attacks ARGS="--plain patching"  # one kind

Ours are graded in one batch. Plain nbgrader runs student code as the instructor, so there each
attack gets a throw-away system: mount, PID and network namespaces, and an overlay in memory over
the root directory. Attacks that would use up the machine are not run by it. Ends with 1 if ours
gives anything but what is deserved, lets anything be seen, or says another status than is due.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))

import attacks_by_archive  # noqa: F401
import attacks_by_clock  # noqa: F401
import attacks_by_file  # noqa: F401  (they register themselves)
import attacks_by_force  # noqa: F401
import attacks_by_name  # noqa: F401
import attacks_in_second_runs  # noqa: F401
import attacks_on_answers  # noqa: F401
import attacks_on_files  # noqa: F401
import attacks_on_parts  # noqa: F401
import classroom as room
import nbformat
from attacks import ATTACKS, LIMITS, MEMORY, SECRET, TOTAL, Attack, Field
from small_courses import write_course

from rlcourse.authoring import build
from rlcourse.grading import Options, grade

BY_PLAIN = (
    "patching",
    "lying",
    "spying",
    "writing",
    "files",
    "metadata",
    "signaling",
    "honest",
    "claiming",
    "copies",
    "parts",
    "owners",
)
ENDLESS = ("a device that never ends", "links and pages beside the notebook", "a named pipe")
SECONDS = 150

IN_AN_OVERLAY = """
ip link set lo up
mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work /mnt/root &&
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root &&
mount -t proc proc /mnt/root/proc && mount --rbind /dev /mnt/root/dev || exit 90
chroot /mnt/root bash -c 'ulimit -v 12000000; cd "$1"; shift; timeout '$SECONDS' "$@"' bash "$@"
status=$?
mkdir -p $COPY && cp /mnt/root/$COURSE/gradebook.db $COPY/
cp -r /mnt/root/$COURSE/autograded $COPY/ 2>/dev/null
exit $status
"""


def prepare(root: Path) -> Field:
    """A course with nbgrader's own settings, the lesson entered, a secret to be found."""
    course = room.make_course(root / "repository")
    (course / ".grading-secret").write_bytes(SECRET)
    write_course(course, {room.LESSON: room.without_demos()})
    build(root=root / "repository", progress=False)
    (course / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'rlcourse'\n"
        "c.ClearSolutions.code_stub = {'python': 'raise NotImplementedError'}\n"
        "c.Execute.timeout = 60\n"
    )
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", room.LESSON],
        cwd=course, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    outside = root / "outside"
    outside.mkdir()
    secret = course / "treasure.txt"
    secret.write_text("HIDDEN-TREASURE")
    return Field(course, room.released(course), room.solved(course), outside, secret, 9)


def attack_ours(
    field: Field, attacks: list[Attack], jobs: int | None = None
) -> list[tuple[float, str]]:
    """(automatic points that `rlcourse grade` gives, what else is said) of each."""
    for number, attack in enumerate(attacks):
        attack.write(field, f"attack{number:03}")
    options = Options(limits=LIMITS, memory=MEMORY, jobs=jobs)
    report = grade("02", course=field.course, options=options)
    found = {row.student: row for row in report.rows}
    rows = [found[f"attack{number:03}"] for number in range(len(attacks))]
    own = {row.student for row in rows} | {"a-neighbor"}
    others = [row.score for row in report.rows if row.student not in own]
    print(f"{len(others)} directories of other names, with {sum(others):g} points")
    folders = [field.course / "autograded" / row.student for row in rows]
    told = [
        ", ".join(["leaked"] * _leaked(f) + [r.status]) for f, r in zip(folders, rows, strict=True)
    ]
    return [
        (row.score, said + f", not {a.status}" * (a.status not in (None, row.status)))
        for a, row, said in zip(attacks, rows, told, strict=True)
    ]


def _leaked(root: Path) -> bool:
    shown = [str(cell.get("outputs")) for cell in _cells(root)]
    return any(word in output for output in shown for word in room.words_of_a_leak())


def attack_plain(field: Field, attack: Attack) -> tuple[float | None, str]:
    """(automatic points that plain nbgrader gives, what else happened)."""
    submitted = field.course / "submitted"
    shutil.rmtree(submitted, ignore_errors=True)
    attack.write(field, "student")
    with tempfile.TemporaryDirectory(prefix="plain-") as copy:
        scripts = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = [
            *("unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child"),
            *("bash", "-c", IN_AN_OVERLAY, "bash", str(field.course)),
            *(sys.executable, "-m", "nbgrader", "autograde", room.LESSON),
        ]
        environment = {"PATH": scripts, "HOME": "/root", "OMP_NUM_THREADS": "1", "COPY": copy}
        environment |= {"COURSE": str(field.course), "SECONDS": str(SECONDS)}
        try:  # an attack may stop the clock in there, too
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=2 * SECONDS
            )
        except subprocess.TimeoutExpired:
            return None, "nbgrader never ended"
        remarks = []
        if _leaked(Path(copy)):
            remarks.append("leaked")
        if done.returncode:
            remarks.append(f"nbgrader ended with {done.returncode}")
        with contextlib.suppress(Exception):
            scores = room.grades(Path(copy), "student")
            return sum(score or 0.0 for score in scores.values()), ", ".join(remarks)
        return None, ", ".join(remarks or ["no gradebook"])


def _cells(root: Path):
    for path in root.rglob("*.ipynb"):
        with contextlib.suppress(Exception):
            yield from nbformat.read(path, as_version=4).cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", help="kinds of attacks [default: all]")
    parser.add_argument("--plain", action="store_true", help="by plain nbgrader, too")
    parser.add_argument("--jobs", type=int, help="submissions at a time [default: one per core]")
    args = parser.parse_args()
    attacks = [a for a in ATTACKS if not args.kinds or a.kind in args.kinds]
    with tempfile.TemporaryDirectory(prefix="attacks-") as root:
        for name in ("", "ours", "plain"):
            Path(root, name).mkdir(exist_ok=True)
            Path(root, name).chmod(0o755)
        ours = attack_ours(prepare(Path(root, "ours")), attacks, args.jobs)
        field = prepare(Path(root, "plain")) if args.plain else None
        print(
            f"{'kind':10} {'attack':60} {'due':>5} {'ours':>5} {'plain':>6}   of {TOTAL:g} points"
        )
        wrong, by_plain = 0, []
        for attack, (points, remarks) in zip(attacks, ours, strict=True):
            told_wrong = remarks.startswith("leaked") or ", not " in remarks
            wrong += told_wrong or abs(points - attack.deserved) > 1e-6
            shown = "-"
            if field and attack.kind in BY_PLAIN and attack.name not in ENDLESS:
                given, more = attack_plain(field, attack)
                by_plain.append(given is None or given > attack.deserved or "leaked" in more)
                shown = "none" if given is None else f"{given:.2f}"
                remarks += f"; plain: {more}" if more else ""
            print(
                f"{attack.kind:10} {attack.name[:60]:60} {attack.deserved:5.2f} {points:5.2f} "
                f"{shown:>6}   {remarks}",
                flush=True,
            )
    print(f"{len(attacks)} attacks; ours gives other points than due, or leaks: {wrong}")
    if by_plain:
        print(
            f"{len(by_plain)} by plain nbgrader; more points, a leak or no grade: {sum(by_plain)}"
        )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
