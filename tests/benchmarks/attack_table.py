"""The table of attacks: what each deserves, and what `rlcourse grade` gives.

    make attacks                    # some minutes
    make attacks ARGS=patching      # one kind

All are graded in one batch. Ends with 1 if one gets anything but what it deserves, lets anything be
seen, or has another status than is due.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))

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

from rlcourse.grading.engine import Options, grade


def prepare(root: Path) -> Field:
    """A course, and a secret to be found."""
    course = room.make_course(root / "repository")
    (course / ".grading-secret").write_bytes(SECRET)
    outside, secret = root / "outside", course / "treasure.txt"
    outside.mkdir()
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
    missed = [
        f", {said}" if (said := a.missed(r)) else "" for a, r in zip(attacks, rows, strict=True)
    ]
    return [(r.score, said + more) for r, said, more in zip(rows, told, missed, strict=True)]


def _leaked(root: Path) -> bool:
    shown = [str(cell.get("outputs")) for cell in _cells(root)]
    return any(word in output for output in shown for word in room.words_of_a_leak())


def _cells(root: Path):
    for path in root.rglob("*.ipynb"):
        with contextlib.suppress(Exception):
            yield from nbformat.read(path, as_version=4).cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", help="kinds of attacks [default: all]")
    parser.add_argument("--jobs", type=int, help="submissions at a time [default: one per core]")
    args = parser.parse_args()
    attacks = [a for a in ATTACKS if not args.kinds or a.kind in args.kinds]
    with tempfile.TemporaryDirectory(prefix="attacks-") as root:
        Path(root).chmod(0o755)
        ours, wrong = attack_ours(prepare(Path(root)), attacks, args.jobs), 0
        print(f"{'kind':10} {'attack':60} {'due':>5} {'given':>5}   of {TOTAL:g} points")
        for attack, (points, remarks) in zip(attacks, ours, strict=True):
            told_wrong = remarks.startswith("leaked") or ", not " in remarks
            wrong += told_wrong or abs(points - attack.deserved) > 1e-6
            named = f"{attack.kind:10} {attack.name[:60]:60}"
            print(f"{named} {attack.deserved:5.2f} {points:5.2f}   {remarks}", flush=True)
    print(f"{len(attacks)} attacks; other points than due, or leaks: {wrong}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
