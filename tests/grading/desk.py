"""An instructor's account, with a class of many kinds, for test_guide.py.

Most hand in on Canvas or by mail, two through nbgrader's exchange, one never does. Canvas knows
them by number, the roster by login.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
import zipfile
from contextlib import contextmanager
from pathlib import Path

import classroom as room
import mixed_class

DIES = "import os\ndef reinforce_loss(logprobs, advantages, mask):\n    os._exit(3)"
# Each of them takes a second of every grading; an endless loop would take many
KINDS = {who: mixed_class.ANSWERS[who] for who in ("ada", "bob", "dan", "hal", "kim", "leo")}
KINDS |= {"ida": {"reinforce_loss": DIES}}
ME = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
BY_MAIL, ABSENT = "ada", "uma"
BY_EXCHANGE = (ME, "tom")
HALF = room.NAMES[:2]
# Whom `rlcourse collect` has nothing of, and why
NOT_COLLECTED = {"qin": "2 different notebooks", "rob": "an archive inside the archive"}
ON_CANVAS = [*list(KINDS)[1:], "mia", "ned", "oda", "pia", *NOT_COLLECTED]
CLASS = [BY_MAIL, *ON_CANVAS, *BY_EXCHANGE, ABSENT]
NUMBER = {student: 101 + i for i, student in enumerate(CLASS)}  # Canvas's
PARTICIPANT = {student: n + 7000 for student, n in NUMBER.items()}  # Moodle's, in this assignment
LATE = "ned"
ON_MOODLE = (LATE, "pia")  # whose right answers are the same as on Canvas
WORKSHEET = "Identifier,Full name,Username,Grade,Feedback comments,Last modified (submission)\n"


class Desk:
    """A home directory with a course, an exchange, and an inbox of what the platforms export."""

    def __init__(self, template: Path, root: Path, path: str):
        self.clean = template.parent  # what a new clone has
        shutil.copytree(self.clean, root / "repository")
        self.root, self.course = root, root / "repository" / "course"
        self.exchange, self.inbox = root / "exchange", root / "inbox"
        self.exchange.mkdir()
        self.exchange.chmod(0o777)
        self.inbox.mkdir()
        self.environment = os.environ | {
            "PATH": path,
            "HOME": str(root),
            "JUPYTER_CONFIG_DIR": str(root / "jupyter"),
            "OMP_NUM_THREADS": "1",
        }
        (self.inbox / "ada.ipynb").write_text(json.dumps(room.solved(self.course)))
        with zipfile.ZipFile(self.inbox / "submissions.zip", "w") as archive:
            for name, content in self._files():
                archive.writestr(name, content)
        with zipfile.ZipFile(self.inbox / "moodle-submissions.zip", "w") as archive:
            for student in ON_MOODLE:
                name = f"{student.title()} Of_{PARTICIPANT[student]}_assignsubmission_file"
                content = json.dumps(room.solved(self.course))
                archive.writestr(f"{name}/{room.LESSON}.ipynb", content)
        (self.inbox / "canvas-export.csv").write_text(self._canvas())
        (self.inbox / "worksheet-02.csv").write_text(self._worksheet())

    def _files(self):
        """The members of Canvas's archive: what people uploaded."""

        def name(student: str, file: str, late: str = "") -> str:
            return f"{student}{late}_{NUMBER[student]}_{5000 + NUMBER[student]}_{file}"

        lesson, solved = f"{room.LESSON}.ipynb", room.solved(self.course)
        for student, answers in list(KINDS.items())[1:]:
            notebook = json.dumps(room.with_answers(solved, **answers))
            notebook = json.dumps(room.released(self.course)) if student == "kim" else notebook
            yield name(student, lesson), "not a notebook" if student == "leo" else notebook
        half = json.dumps(room.solved(self.course, HALF))
        other = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        yield name("mia", "my homework.ipynb"), half
        yield name(LATE, lesson, "_LATE"), json.dumps(solved)
        yield name("oda", "report.ipynb"), other
        yield name("pia", lesson), half
        yield name("pia", f"{room.LESSON}-1.ipynb"), json.dumps(solved)
        yield name("qin", "old.ipynb"), half
        yield name("qin", "new.ipynb"), json.dumps(solved)
        yield name("rob", "all my files.zip"), "PK"

    def _canvas(self) -> str:
        rows = "".join(f'"Of, {s.title()}",{n},{s},,\n' for s, n in NUMBER.items())
        possible = "Points Possible,,,,\n"
        return f"Student,ID,SIS Login ID,Section,{room.LESSON} (5)\n{possible}{rows}"

    def _worksheet(self) -> str:
        early, late = "Monday, 1 June 2026, 10:00 AM", "Friday, 2 October 2026, 8:00 AM"
        return WORKSHEET + "".join(
            f'Participant {n},{s.title()} Of,{s},,,"{late if s == LATE else early}"\n'
            for s, n in PARTICIPANT.items()
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

    def hand_in_by_exchange(self) -> None:
        """Two students' part: fetch, solve, submit. The other one has no account of their own here,
        so theirs is put beside the first, under their name."""
        place = self.root / "student"
        place.mkdir()
        options = "--course rlcourse --Exchange.root=/srv/nbgrader/exchange"
        self.run(f"nbgrader fetch_assignment {room.LESSON} {options}", place)
        notebook = place / room.LESSON / f"{room.LESSON}.ipynb"
        notebook.write_text(json.dumps(room.solved(self.course, room.NAMES[:1])))
        self.run(f"nbgrader submit {room.LESSON} {options}", place)
        (mine,) = (self.exchange / "rlcourse" / "inbound").iterdir()
        theirs = mine.with_name(mine.name.replace(f"{ME}+", f"{BY_EXCHANGE[1]}+", 1))
        shutil.copytree(mine, theirs)
        (theirs / "submission_secret.txt").write_text("ab" * 64)  # it names their page
        notebook = theirs / f"{room.LESSON}.ipynb"
        notebook.write_text(json.dumps(room.solved(self.course)))

    def hand_in_again(self, student: str) -> None:
        room.submit(self.course, student, room.solved(self.course))

    @contextmanager
    def formgrader(self):
        """JupyterLab as the guide starts it; gives a function that asks Formgrader's API."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        line = f"exec jupyter lab --no-browser --port={port} --IdentityProvider.token=t"
        server = subprocess.Popen(
            ["bash", "-c", f"{line} --allow-root"],
            cwd=self.course,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        base = f"http://127.0.0.1:{port}/formgrader"

        def ask(what: str, method: str = "GET", **body):
            request = urllib.request.Request(
                f"{base}/api/{what}",
                method=method,
                data=json.dumps(body).encode() if body else None,
                headers={"Authorization": "token t"},
            )
            with urllib.request.urlopen(request, timeout=900) as answer:
                return json.load(answer)

        try:
            deadline = time.monotonic() + 900
            while True:
                try:
                    urllib.request.urlopen(f"{base}?token=t", timeout=60).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline and server.poll() is None
                    time.sleep(0.3)
            yield ask
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()

    def grade_by_hand(self, ask) -> dict[str, int]:
        """One point for every written answer that waits; who got how many."""
        notebooks = ask(f"submitted_notebooks/{room.LESSON}/{room.LESSON}")
        given = {notebook["student"]: 0 for notebook in notebooks}
        for notebook in notebooks:
            for grade in ask(f"grades?submission_id={notebook['id']}"):
                if grade["needs_manual_grade"] and grade["cell_type"] == "markdown":
                    ask(f"grade/{grade['id']}", "PUT", manual_score=1.0)
                    given[notebook["student"]] += 1
        return given
