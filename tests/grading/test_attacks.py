"""Every attack earns what it deserves and nothing more, and harms nobody.

All of them are graded in one batch, every third followed by an honest neighbor. The class is graded
once; the tests look at what is left of it.
"""

import csv
import hashlib
import io
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path

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
import pytest
from attacks import ATTACKS, LIMITS, MEMORY, SECRET, TOTAL, Field

from rlcourse.grading.books.grades import read_grades
from rlcourse.grading.engine import Options, grade
from rlcourse.grading.platforms.exporting import plain_table

pytestmark = pytest.mark.slow

STUDENTS = {f"s{number:03}-attack": attack for number, attack in enumerate(ATTACKS)}
NEIGHBORS = [student.replace("attack", "honest") for student in list(STUDENTS)[::3]]
SOLVED = room.NAMES[:2]  # what an honest neighbor has solved
EARNED = sum(room.POINTS[name] for name in SOLVED)


def snapshot(root: Path) -> dict[str, str]:
    """Every file below `root` with a fingerprint of its content, links and pipes by their kind."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            found[str(path)] = "other"
        elif "__pycache__" not in path.parts:
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


class Listener:
    """Counts who connects."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.calls = self.socket.getsockname()[1], 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                self.socket.accept()[0].close()
            except OSError:
                return
            self.calls += 1


class Battle:
    """The batch, and what was there before and after it."""

    def __init__(self, template: Path, root: Path):
        shutil.copytree(template.parent, root / "repository")
        self.course = root / "repository" / "course"
        self.outside = root / "outside"
        self.outside.mkdir()
        for path in (root, self.outside):
            path.chmod(0o777)
        (self.course / ".grading-secret").write_bytes(SECRET)
        secret = self.course / "treasure.txt"
        secret.write_text("HIDDEN-TREASURE")
        self.listener = Listener()
        blank, perfect = room.released(self.course), room.solved(self.course)
        field = Field(self.course, blank, perfect, self.outside, secret, self.listener.port)
        for student, attack in STUDENTS.items():
            attack.write(field, student)
        honest = room.solved(self.course, SOLVED)
        for student in NEIGHBORS:
            room.submit(self.course, student, honest)
        self.before = self._state()
        # Many of them only wait until their time on the clock is up.
        options = Options(limits=LIMITS, memory=MEMORY, jobs=4)
        self.warnings: list[str] = []
        warn = self.warnings.append
        with room.servers_watched() as servers:
            self.report = grade("02", course=self.course, options=options, on_warning=warn)
            self.running_after = servers()
            self.left_over = list(Path(tempfile.gettempdir()).glob("rlcourse-*"))
        self.rows = {row.student: row for row in self.report.rows}
        self.after = self._state()

    def _state(self) -> dict[str, str]:
        made = ("gradebook.db", "autograded", ".grading-secret")
        package = room.REPOSITORY / "rlcourse" / "grading"
        found = snapshot(self.course) | snapshot(self.outside) | snapshot(package)
        return {
            path: what
            for path, what in found.items()
            if not any(path.startswith(str(self.course / name)) for name in made)
        }

    def text_of(self, student: str) -> str:
        folder = self.course / "autograded" / student / room.LESSON
        return (folder / f"{room.LESSON}.ipynb").read_text()


@pytest.fixture(scope="module")
def battle(template, tmp_path_factory):
    fought = Battle(template, tmp_path_factory.mktemp("battle"))
    if any(word in warning for warning in fought.warnings for word in ("mount", "landlock")):
        pytest.skip(f"this machine cannot isolate student code: {fought.warnings}")
    yield fought
    fought.listener.socket.close()


@pytest.mark.parametrize("student", STUDENTS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_earns_what_it_deserves(battle, student):
    attack, row = STUDENTS[student], battle.rows[student]
    deserved = pytest.approx(attack.deserved)
    assert row.score == deserved, (row, battle.text_of(student)[-3000:])
    in_gradebook = room.grades(battle.course, student)
    assert sum(score or 0 for score in in_gradebook.values()) == deserved
    assert not attack.missed(row), row.incidents


@pytest.mark.parametrize("name", ["sleep", "exit", "a crash in C", "the pipe closed", "noise"])
def test_a_fatal_cell_is_blamed_for_itself_and_nothing_else(battle, name):
    (student,) = [s for s, attack in STUDENTS.items() if attack.name == name]
    (incident,) = battle.rows[student].incidents
    assert "(cell added-" in incident


def test_there_are_attacks_of_every_kind():
    kinds = {attack.kind for attack in ATTACKS}
    assert kinds == {
        "patching", "lying", "spying", "writing", "forging", "exhausting", "signaling", "files",
        "metadata", "html", "honest", "claiming", "copies", "parts", "pages",
        "names", "notes", "clocks", "exports", "neighbors", "second runs", "messages",
        "calls", "written",
    }  # fmt: skip
    assert len(ATTACKS) == len({attack.name for attack in ATTACKS}) >= 150


def test_every_honest_neighbor_gets_the_points_earned(battle):
    harmed = {s: (battle.rows[s].score, battle.rows[s].incidents) for s in NEIGHBORS
              if battle.rows[s].score != EARNED or battle.rows[s].status != "graded"}  # fmt: skip
    assert harmed == {}


def test_directories_with_strange_names_are_refused_and_named(battle):
    honest = {student.replace("attack", "honest") for student in STUDENTS}
    ours = {*STUDENTS, *honest, "a-neighbor"}
    others = [row for row in battle.report.rows if row.student not in ours]
    assert len(others) >= 15
    assert {(row.status, row.score, row.needs_person) for row in others} == {("refused", 0.0, True)}
    known = {row[0] for row in room.query(battle.course, "select id from student")}
    assert known <= ours
    lines = battle.report.described().split("\n")
    assert len(lines) == len(battle.report.rows) + 2 and all(map(str.isprintable, lines))


def test_no_export_holds_what_a_spreadsheet_would_run(battle):
    table = plain_table(read_grades(battle.course))
    for row in csv.reader(io.StringIO(table.text()), strict=True):
        assert not any(field.startswith(("=", "+", "@", "\t", "＝")) for field in row)


def test_nothing_was_written_or_removed_outside(battle):
    assert battle.after == battle.before


def test_nothing_is_left_running_or_lying_about(battle):
    assert battle.running_after == set()
    assert battle.left_over == []
    assert list(battle.outside.iterdir()) == []


def test_nobody_saw_what_is_hidden(battle):
    for student in STUDENTS:
        text = battle.text_of(student)
        assert "HIDDEN-TREASURE" not in text, student
        printed = [
            output.get("text") or output.get("data", {}).get("text/plain", "")
            for cell in room.autograded(battle.course, student).cells
            if cell.cell_type == "code"
            for output in cell.outputs
        ]
        found = [w for w in room.words_of_a_leak() if any(w in text for text in printed)]
        assert not found, (student, printed)


def test_nobody_reached_the_network(battle):
    assert battle.listener.calls == 0


def test_no_raw_html_and_no_hidden_test_in_any_notebook(battle):
    for student in STUDENTS:
        notebook = room.autograded(battle.course, student)
        nbformat.validate(notebook)
        added = [c for c in notebook.cells if c.metadata.get("rlcourse", {}).get("added")]
        added += [c for c in notebook.cells if c.get("id") in ("applause", "grading-status")]
        for cell in added:
            assert cell.cell_type == "code" or not any(
                tag in cell.source for tag in ("<script", "<img", "<iframe", "<svg", "javascript:")
            ), cell.source
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                assert set(output.get("data", {"text/plain": ""})) == {"text/plain"}
        assert "hidden=True" not in battle.text_of(student)
        assert "HIDDEN TESTS" not in battle.text_of(student)


def test_pages_and_links_beside_a_notebook_go_nowhere(battle):
    (student,) = [s for s, a in STUDENTS.items() if a.name == "links and pages beside the notebook"]
    folder = battle.course / "autograded" / student / room.LESSON
    assert os.listdir(folder) == [f"{room.LESSON}.ipynb"]


def test_nobody_changed_the_points_of_the_exercises(battle):
    total = room.query(battle.course, "select sum(max_score) from grade_cells")[0][0]
    assert total == TOTAL + 2  # and the question that a person grades
