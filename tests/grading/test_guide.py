"""Every command of the instructor's guide, in its order, does what the guide says."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import classroom as room
import pytest
from nbgrader.api import Gradebook

pytestmark = pytest.mark.slow

GUIDE = room.REPOSITORY / "course" / "README.md"
STARTS_A_SERVER = "jupyter lab"


def commands() -> list[str]:
    """The lines of the guide's bash blocks."""
    blocks = re.findall(r"```bash\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


class Desk:
    """An instructor's account: a home directory, a course, an exchange, an inbox."""

    def __init__(self, template: Path, root: Path):
        shutil.copytree(template.parent, root / "repository")
        self.root, self.course = root, root / "repository" / "course"
        self.exchange = root / "exchange"
        self.exchange.mkdir()
        self.exchange.chmod(0o777)
        scripts = str(Path(sys.executable).parent)
        self.environment = os.environ | {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(root),
            "JUPYTER_CONFIG_DIR": str(root / "jupyter"),
            "OMP_NUM_THREADS": "1",
        }
        inbox = root / "inbox"
        inbox.mkdir()
        (inbox / "ada.ipynb").write_text(json.dumps(room.solved(self.course)))
        with zipfile.ZipFile(inbox / "submissions.zip", "w") as archive:
            half = json.dumps(room.solved(self.course, room.NAMES[:2]))
            archive.writestr(f"bob_{room.LESSON}.ipynb", half)
        (inbox / "canvas-export.csv").write_text(
            f"Student,ID,SIS Login ID,Section,{room.LESSON} (5)\nPoints Possible,,,,\n"
            '"Lovelace, Ada",1,ada,,\nBob,2,bob,,\n'
        )
        (inbox / "worksheet.csv").write_text(
            "Identifier,Full name,Username,Grade,Feedback comments,Last modified (submission)\n"
            "Participant 1,Ada,ada,,,-\n"
            'Participant 2,Bob,bob,,,"Monday, 1 June 2026, 10:00 AM"\n'
        )

    def run(self, line: str, cwd: Path | None = None) -> str:
        line = line.replace("/srv/nbgrader/exchange", str(self.exchange))
        done = subprocess.run(
            ["bash", "-euc", line],
            cwd=cwd or self.course,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def hand_in_by_exchange(self) -> str:
        """A student's part: fetch, solve, submit. Returns the name that the exchange gives."""
        place = self.root / "student"
        place.mkdir()
        options = "--course rlcourse --Exchange.root=/srv/nbgrader/exchange"
        self.run(f"nbgrader fetch_assignment {room.LESSON} {options}", place)
        notebook = place / room.LESSON / f"{room.LESSON}.ipynb"
        notebook.write_text(json.dumps(room.solved(self.course, room.NAMES[:1])))
        self.run(f"nbgrader submit {room.LESSON} {options}", place)
        return subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()

    def give_points_by_hand(self) -> list[str]:
        """One point for every open answer that waits for a person."""
        waiting = []
        with Gradebook(f"sqlite:///{self.course}/gradebook.db") as book:
            for student in [s.student.id for s in book.assignment_submissions(room.LESSON)]:
                grade = book.find_grade("applause", room.LESSON, room.LESSON, student)
                if grade.needs_manual_grade:
                    grade.manual_score, grade.needs_manual_grade = 1.0, False
                    waiting.append(student)
            book.db.commit()
        return waiting

    def formgrader_autogrades(self, student: str) -> dict:
        """Start JupyterLab as the guide does, and press Formgrader's button over its API."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        line = (
            f"exec jupyter lab --no-browser --port={port} --IdentityProvider.token=t --allow-root"
        )
        server = subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.course,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        base = f"http://127.0.0.1:{port}/formgrader"
        try:
            deadline = time.monotonic() + 900
            while True:
                try:
                    urllib.request.urlopen(f"{base}?token=t", timeout=60).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline and server.poll() is None
                    time.sleep(0.3)
            url = f"{base}/api/submission/{room.LESSON}/{student}/autograde?token=t"
            request = urllib.request.Request(
                url, method="POST", headers={"Authorization": "token t"}
            )
            with urllib.request.urlopen(request, timeout=900) as answer:
                return json.load(answer)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()


@pytest.fixture(scope="module")
def desk(template, tmp_path_factory):
    desk = Desk(template, tmp_path_factory.mktemp("guide"))
    desk.said = {}
    for line in dict.fromkeys(commands()):
        if line.startswith("nbgrader collect"):
            desk.by_exchange = desk.hand_in_by_exchange()
        if line.startswith("rlcourse grades") and not hasattr(desk, "by_hand"):
            desk.by_hand = desk.give_points_by_hand()
        if line == STARTS_A_SERVER:
            desk.pressed = desk.formgrader_autogrades("bob")
        else:
            desk.said[line] = desk.run(line.replace("cyd", getattr(desk, "by_exchange", "cyd")))
    return desk


def test_the_guide_has_commands_for_every_step():
    text = "\n".join(commands())
    steps = "rlcourse build, generate_assignment, release_assignment, zip_collect, collect 02, "
    steps += "rlcourse roster, rlcourse insight 02, rlcourse extend, rlcourse amend 02, "
    steps += "rlcourse gradescope 02, "
    steps += "--times, --zone, "
    steps += "rlcourse grade, nbgrader autograde, jupyter lab, generate_feedback, "
    steps += "release_feedback, export, --force, --duedate, --student, --json, --strict"
    for step in steps.split(", "):
        assert step in text, step


def test_submissions_of_all_three_ways_are_graded(desk):
    first = desk.said["rlcourse grade 02"]
    assert re.search(r"ada +15.00 / 15  graded", first)
    assert re.search(r"bob +5.00 / 15  graded", first)
    assert re.search(rf"{desk.by_exchange} +2.00 / 15  graded", first)


def test_the_button_of_formgrader_is_the_same_grader(desk):
    assert desk.pressed["success"], desk.pressed
    assert "bob: 5 of 15 points, graded" in desk.pressed["log"]


def test_feedback_and_export_stand_where_the_guide_says(desk):
    for student in ("ada", "bob", desk.by_exchange):
        assert (desk.course / "feedback" / student / room.LESSON / f"{room.LESSON}.html").is_file()
    assert "ada" in (desk.course / "grades.csv").read_text()
    assert re.search(
        r'"Lovelace, Ada",1,ada,,16\n', (desk.course / "grades-canvas.csv").read_text()
    )
    assert 'Bob,bob,6,"6 of ' in (desk.course / "grades-moodle.csv").read_text()
    assert len(list((desk.exchange / "rlcourse" / "feedback").glob("*.html"))) == 1


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
    from rlcourse.grading.handing_in import files, handed_in, submission
    from rlcourse.grading.running import steps

    known = {steps.GRADED, steps.TIMED_OUT, steps.DIED, steps.OVER_MEMORY, steps.IMPORTED}
    known |= {handed_in.STRANGE}
    known |= {files.UNREADABLE, files.MISSING, files.REFUSED, submission.WRONG}
    table = GUIDE.read_text().split("| status |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| ([a-z ]+?) \|", table, flags=re.MULTILINE)) == known
