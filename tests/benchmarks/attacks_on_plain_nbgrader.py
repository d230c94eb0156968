"""The attack suite against plain nbgrader, for comparison: points earned without solving anything.

    python tests/benchmarks/attacks_on_plain_nbgrader.py            # as root, on a machine to spare
    python tests/benchmarks/attacks_on_plain_nbgrader.py patching   # one kind

Plain nbgrader runs student code as the instructor. So each attack gets a throw-away system: mount,
PID and network namespaces, and an overlay in memory over the root directory. Attacks that would
use up the machine are not run.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))

import attacks_by_file  # noqa: F401  (they register themselves)
import attacks_by_force  # noqa: F401
import attacks_on_answers  # noqa: F401
import attacks_on_files  # noqa: F401
import classroom as room
import nbformat
from attacks import ATTACKS, TOTAL, Attack, Field

from rlcourse.authoring import build
from rlcourse.exercises import all as all_exercises

KINDS = (
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
    lesson = course / "lessons" / f"{room.LESSON}.md"
    text = lesson.read_text()  # without what costs every kernel seconds: the trainer, the demos
    text = re.sub(r"\nfrom rlcourse.training import [^\n]*", "", text)
    lesson.write_text(re.sub(r"```python[^\n]*\nif ready\(.*?```\n", "", text, flags=re.DOTALL))
    exercises = [e for e in all_exercises() if e.lesson == room.LESSON]
    build(root=root / "repository", registry=exercises, progress=False)
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


def attack_plain(field: Field, attack: Attack) -> tuple[float | None, str]:
    """(automatic points that plain nbgrader gives, what else happened)."""
    submitted = field.course / "submitted"
    shutil.rmtree(submitted, ignore_errors=True)
    attack.write(field, "student")
    with tempfile.TemporaryDirectory(prefix="plain-") as copy:
        scripts = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "bash", "-c", IN_AN_OVERLAY,
             "bash", str(field.course), sys.executable, "-m", "nbgrader", "autograde", room.LESSON],
            env={"PATH": scripts, "HOME": "/root", "OMP_NUM_THREADS": "1", "COPY": copy,
                 "COURSE": str(field.course), "SECONDS": str(SECONDS)},
            capture_output=True, text=True,
        )  # fmt: skip
        remarks = []
        shown = [str(cell.get("outputs")) for cell in _cells(Path(copy))]
        if any(word in output for output in shown for word in ("HIDDEN-TREASURE", "LEAK")):
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
    kinds = sys.argv[1:] or KINDS
    with tempfile.TemporaryDirectory(prefix="attacks-") as root:
        Path(root).chmod(0o755)
        field = prepare(Path(root))
        print(f"points of {TOTAL:g}   deserved   plain nbgrader")
        for attack in ATTACKS:
            if attack.kind in kinds and attack.name not in ENDLESS:
                points, remarks = attack_plain(field, attack)
                shown = "none" if points is None else f"{points:g}"
                line = (
                    f"{attack.kind:10} {attack.name:52} {attack.deserved:6g} {shown:>8}  {remarks}"
                )
                print(line, flush=True)


if __name__ == "__main__":
    main()
