"""A whole class, by the commands of the instructor's guide, in the order of a term.

What a person does between two commands, such as handing in, is done before the second. desk.py has
the class, and tests/test_first_page.py the sample class of the guide's first page.
"""

import csv
import json
import re
import shutil
import subprocess

import classroom as room
import desk as at
import pytest
from shared import GUIDE, PATHS, blocks, commands

pytestmark = pytest.mark.slow

PAGES = (*PATHS, "grading", "in_class", "own_course", "jupyterhub_reference")
SAMPLE_ONLY = ("class.csv", "../", "{ada", "rm -r")  # lines that the class of many kinds skips
ORDER = (  # of a term: how its commands begin
    *("rlcourse doctor", "rlcourse roster ~/inbox/worksheet", "rlcourse roster ~/inbox/canvas"),
    *("rlcourse build", "nbgrader generate_assignment"),
    *("nbgrader release_assignment", "rlcourse collect", "mkdir", "cp", "nbgrader collect"),
    *("rlcourse grade 02", "nbgrader autograde", "rlcourse insight", "jupyter lab"),
    *("nbgrader generate_feedback", "nbgrader release_feedback", "rlcourse grades", "(umask 077"),
    *("rlcourse extend", "echo", "tar -x"),
)
LAST = "rlcourse grade 02 --student ada --force"  # it enters the time that `echo` has written
STARTS_A_SERVER = "jupyter lab"
ALL, QUESTION = sum(room.POINTS.values()), 2.0
RIGHT = {"ada", "pia", at.LATE, at.BY_EXCHANGE[1]}
# What the report counts for `at.KINDS`; "other" is one that died
STATES = {"named": 1, "unnamed": 1, "syntax": 1, "other": 1}


def place(line: str) -> int:
    """Where in a term a command stands."""
    (found,) = [i for i, start in enumerate(ORDER) if line.startswith(start)]
    return len(ORDER) if line == LAST else found


def term() -> list[str]:
    """The commands of all pages, each once, in the order of a term."""
    lines = [line for page in PAGES for line in commands(page)]
    mine = [line for line in lines if not any(part in line for part in SAMPLE_ONLY)]
    return sorted(dict.fromkeys(mine), key=place)


@pytest.fixture(scope="module")
def desk(template, tmp_path_factory, warm):
    """The desk after all commands, with what they printed, and what was handed out in between."""
    desk = at.Desk(template, tmp_path_factory.mktemp("guide"), warm)
    desk.said = {}
    (due,) = blocks("late", "toml")
    with (desk.course / "course.toml").open("a") as settings:
        settings.write(f"\n{due}")
    for line in term():
        if line.startswith("nbgrader collect"):
            desk.hand_in_by_exchange()
        if line.startswith("rlcourse extend"):
            penalty = next(x for x in commands("late", "python") if "penalty_method" in x)
            with (desk.course / "nbgrader_config.py").open("a") as settings:
                settings.write(f"\n{penalty}\n")
        if line == STARTS_A_SERVER:
            with desk.formgrader() as ask:
                autograde = f"submission/{room.LESSON}/mia/autograde"
                desk.pressed = ask(autograde, "POST")
                desk.by_hand = desk.grade_by_hand(ask)
        elif not line.startswith("tar -x"):  # in a new clone, below
            desk.said[line] = desk.run(line)
    return desk


@pytest.fixture(scope="module")
def regraded(desk):
    """The desk after a student handed in again and everybody was graded again."""
    desk.hand_in_again("bob")
    for line in ("rlcourse grade 02 --force", "rlcourse grades --out grades-again.csv"):
        desk.said[f"again: {line}"] = desk.run(line)
    return desk


def exported(desk, name: str) -> dict[str, str]:
    """A table's lines by the login in them."""
    lines = (desk.course / name).read_text().splitlines()
    return {s: x for s in at.CLASS for x in lines if re.search(rf"(^|,){s}(,|$)", x)}


def test_an_archive_is_collected_by_the_names_of_the_roster(desk):
    said = desk.said["rlcourse collect 02 ~/inbox/submissions.zip"]
    for student, reason in at.NOT_COLLECTED.items():
        assert re.search(rf"^{student} .*{reason}", said, re.M), said
    collected = set(at.ON_CANVAS) - {*at.NOT_COLLECTED}
    assert all(re.search(rf"^{student} .*\bcollected", said, re.M) for student in collected)
    assert f"{len(collected)} collected" in said
    assert re.search(rf"^{at.LATE} .*\bcollected, late", said, re.M)
    times = next(said for line, said in desk.said.items() if "--worksheet" in line)
    assert re.search(rf"^{at.LATE} .*\bcollected, handed in 2026-10-02 06:00 UTC", times, re.M)
    assert len(re.findall(r"handed in 2026", times)) == len(at.ON_MOODLE)


def test_submissions_of_all_ways_are_graded(desk):
    first = desk.said["rlcourse grade 02"]
    for student in RIGHT:
        assert re.search(rf"^{student} .* {ALL:.2f} / {ALL:g}  graded", first, re.M), first
    half = sum(room.POINTS[name] for name in at.HALF)
    assert re.search(rf"^mia .* {half:.2f} / {ALL:g}  graded", first, re.M), first
    one = room.POINTS[room.NAMES[0]]
    assert re.search(rf"^{at.ME} .* {one:.2f} / {ALL:g}  graded", first, re.M), first
    for student, status in {
        "leo": "unreadable file",
        "oda": "wrong notebook",
        "ida": "died",
    }.items():
        assert re.search(rf"^{student} .*{status}", first, re.M), first
    never = sorted({at.ABSENT, *at.NOT_COLLECTED})
    called = (f"{student} ({student.title()} Of)" for student in never)
    assert first.rstrip().endswith(f"nothing from {len(never)}: {', '.join(called)}")
    assert "Traceback" not in first


def test_the_button_of_formgrader_is_the_same_grader(desk):
    half = sum(room.POINTS[name] for name in at.HALF)
    assert desk.pressed["success"], desk.pressed
    assert f"mia: {half:g} of {ALL:g} points, graded" in desk.pressed["log"]


def test_every_waiting_answer_gets_its_points_in_formgrader(desk):
    wrote = {s for s, given in desk.by_hand.items() if given}
    assert wrote >= RIGHT | {"mia", at.ME, "bob"} and "kim" not in wrote
    waiting = room.query(desk.course, f"{room.GRADES} where base_cell.name = 'applause'")
    found = {row[0]: row[3] for row in waiting}
    assert {s for s, manual in found.items() if manual == 1.0} == wrote


def test_the_report_counts_every_kind(desk):
    found = json.loads(desk.run("rlcourse insight 02 --json"))
    (loss,) = [e for e in found["exercises"] if e["exercise"] == "reinforce_loss"]
    for state, count in STATES.items():
        assert loss["counts"][state] == count, loss["counts"]
    assert found["nothing_graded"] == len({at.ABSENT, *at.NOT_COLLECTED})


def test_feedback_and_export_stand_where_the_guide_says(desk):
    for student in (at.BY_MAIL, "bob", *at.BY_EXCHANGE):
        page = desk.course / "feedback" / student / room.LESSON / f"{room.LESSON}.html"
        assert page.is_file(), student
    assert len(list((desk.exchange / "rlcourse" / "feedback").glob("*.html"))) == 2
    canvas, moodle = exported(desk, "grades-canvas-02.csv"), exported(desk, "grades-moodle-02.csv")
    whole = f"{ALL + 1:g}"
    for student in RIGHT:
        assert canvas[student].endswith(f",{whole}"), canvas[student]
        assert f",{student},{whole}," in moodle[student]
    for student in {at.ABSENT, *at.NOT_COLLECTED}:
        assert canvas[student].endswith(",") and f",{student},,," in moodle[student]


def test_late_counts_unless_there_is_an_extension_and_points_by_hand_outlive_a_regrade(regraded):
    said = regraded.said["again: rlcourse grade 02 --force"]
    assert re.search(rf"^bob .* {ALL:.2f} / {ALL:g}  graded", said, re.M), said
    with (regraded.course / "grades-again.csv").open() as table:
        rows = {row["student"]: row for row in csv.DictReader(table)}
    whole = f"{ALL + 1:g}"
    assert rows["ada"]["points"] == whole and not rows["ada"]["late"], "there is an extension"
    assert rows["bob"]["points"] == whole, "the point by hand stays, since the answer is the same"
    late = rows[at.LATE]
    assert (late["late"], late["points"], late["penalty"]) == ("yes", "0", whole)


def test_a_new_clone_goes_on_with_what_was_backed_up(desk, tmp_path):
    """Nothing is graded again, nothing waits that did not, and every grade is the same."""
    before = desk.run("rlcourse grades --out grades-now.csv && cat grades-now.csv")
    saved, *restored = commands("backup")
    desk.run(saved)
    assert not (desk.root / "rlcourse-backup.tar.gz").stat().st_mode & 0o077
    clone = tmp_path / "repository"
    shutil.copytree(desk.clean, clone)
    for name in ("course.toml", "nbgrader_config.py"):  # what was changed in the old one
        shutil.copy(desk.course / name, clone / "course")
    course = clone / "course"
    for line in restored:
        said = desk.run(line, course)  # at last, of rlcourse grade
    waits = re.compile(r"^(\w+) .*a written answer waits", re.M)
    assert "ada" not in waits.findall(said), said
    assert desk.run("rlcourse grades --out grades-now.csv && cat grades-now.csv", course) == before


def test_git_ignores_whatever_the_guide_makes(desk):
    """Students' work, grades and the secret must not be one `git add` away from being public."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "course"], cwd=room.REPOSITORY, capture_output=True, text=True
    )
    if listing.returncode != 0:
        pytest.skip("needs a git checkout: it asks git")
    tracked = set(listing.stdout.split("\0"))
    repository = desk.course.parent
    found = (p.relative_to(repository).as_posix() for p in desk.course.rglob("*") if p.is_file())
    made = sorted(name for name in found if name not in tracked and "__pycache__" not in name)
    assert {"course/.grading-secret", "course/grades.csv"} <= set(made)
    ignored = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=room.REPOSITORY,
        input="\n".join(made),
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert sorted(ignored) == made


def test_every_status_of_the_guide_exists_and_every_status_is_in_the_guide():
    from rlcourse.grading import rejected
    from rlcourse.grading.handing_in import student_folder
    from rlcourse.grading.running import steps

    known = {steps.GRADED, steps.TIMED_OUT, steps.DIED, steps.OVER_MEMORY, steps.IMPORTED}
    known |= {student_folder.UNTIMED}
    known |= {rejected.UNREADABLE, rejected.MISSING, rejected.REFUSED, rejected.WRONG}
    table = (GUIDE / "grading.md").read_text("utf-8").split("| status |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| ([a-z ]+?) \|", table, flags=re.MULTILINE)) == known
