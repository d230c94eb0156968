"""The archive for Gradescope, unpacked as Gradescope does it, and what its two scripts do."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import classroom as room
import memory
import pytest

from rlcourse.grading.engine import grade
from rlcourse.grading.gradescope import results
from rlcourse.grading.gradescope.archive import write_archive

MEBIBYTE = 2**20
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
linux = pytest.mark.skipif(sys.platform != "linux", reason="Gradescope's containers are Linux")


@dataclass
class Container:
    """Gradescope's directories below `root`, and its image after ``setup.sh``."""

    root: Path

    @property
    def autograder(self) -> Path:
        return self.root / "autograder"

    def run(self, script: Path, measure=lambda process: process.wait()) -> str:
        """What a script prints; without capabilities, as root in a container, and on one core."""
        places = {
            "RLCOURSE_SOURCE": str(self.autograder / "source"),
            "RLCOURSE_HOME_IN_IMAGE": str(self.root / "image"),
            "RLCOURSE_AUTOGRADER": str(self.autograder),
        }
        words = WITHOUT_CAPABILITIES if os.getuid() == 0 and shutil.which("setpriv") else ()
        core = min(os.sched_getaffinity(0))
        with (self.root / "printed").open("w+") as printed:
            process = subprocess.Popen(
                [*words, str(script)],
                cwd=self.autograder,
                env={**os.environ, **places},
                stdout=printed,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
            measure(process)
            printed.seek(0)
            said = printed.read()
        assert process.wait() == 0, said
        return said

    def grade(self, files: dict[str, str], **measuring) -> dict:
        """The results for a submission of these files."""
        for folder in ("submission", "results"):
            shutil.rmtree(self.autograder / folder, ignore_errors=True)
            (self.autograder / folder).mkdir()
        for name, text in files.items():
            (self.autograder / "submission" / name).write_text(text)
        self.run(self.autograder / "run_autograder", **measuring)
        return json.loads((self.autograder / "results" / "results.json").read_text())


@pytest.fixture(scope="module")
def container(template, tmp_path_factory):
    """The archive unpacked; this environment stands for the one that setup.sh would install."""
    root = tmp_path_factory.mktemp("gradescope")
    for place in (root, *root.parents):
        if place.stat().st_uid == os.getuid() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o711)
    write_archive(room.LESSON, template, root / "autograder.zip")
    assert (root / "autograder.zip").stat().st_mode & 0o077 == 0
    found = Container(root)
    with zipfile.ZipFile(root / "autograder.zip") as archive:
        archive.extractall(found.autograder / "source")
    for name in ("setup.sh", "run_autograder"):
        (found.autograder / "source" / name).chmod(0o755)
    shutil.copy2(found.autograder / "source" / "run_autograder", found.autograder)
    python = root / "image" / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    found.run(found.autograder / "source" / "setup.sh")
    return found


def mistaken_spy(course, container) -> str:
    """A sign is flipped; and it opens the archive's files, and says which it could read."""
    name = "monte_carlo_policy_gradient"
    source = room.solution(name).replace("return (", "return -(")
    places = [str(container.autograder), str(container.root / "image" / "private")]
    spying = f"""
import os, pathlib
for place in {places}:
    for name in ("source/secret", "source/release.ipynb", "secret",
                 "submission/my homework.ipynb", "results/results.json"):
        try:
            open(os.path.join(place, name), "rb").read(1)
            raise SystemExit("READ " + name)
        except OSError:
            pass
"""
    notebook = room.with_answers(room.solved(course), **{name: source})
    return json.dumps(room.with_code(notebook, spying))


@pytest.mark.slow
@linux
def test_gradescope_s_results_are_those_of_rlcourse_grade_and_nothing_is_read(container, course):
    notebook = mistaken_spy(course, container)
    found = container.grade({"my homework.ipynb": notebook, "notes.txt": "hello"})
    assert "READ" not in json.dumps(found)
    path = course / "submitted" / "ada" / room.LESSON / f"{room.LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebook)
    # the same secret draws the same cases
    (course / ".grading-secret").write_bytes(
        (container.autograder / "source" / "secret").read_bytes()
    )
    row = grade(room.LESSON, course=course).rows[0]
    tests = {test["name"]: test for test in found["tests"]}
    for name, mark in row.exercises.items():
        assert tests[name]["output"] == mark["message"]
        assert tests[name]["score"] == pytest.approx(mark["points"], abs=1e-4)
        assert tests[name]["max_score"] == mark["possible"]
        assert tests[name]["status"] == ("passed" if mark["state"] == "right" else "failed")
    assert "its sign flipped" in tests["monte_carlo_policy_gradient"]["output"]
    assert "score" not in tests["applause"] and "handed in" in tests["applause"]["output"]
    assert sum(test.get("score", 0) for test in tests.values()) == pytest.approx(
        row.score, abs=1e-3
    )


@pytest.mark.weekly
@linux
def test_a_right_submission_is_graded_within_a_default_container_s_memory(container, template):
    """All processes together, each page that is shared counted once; 539 MiB where written."""
    peak = None

    def measure(process):
        nonlocal peak
        with memory.watched(process.pid) as peak:
            process.wait()

    found = container.grade({"any.ipynb": json.dumps(room.solved(template))}, measure=measure)
    assert sum(test.get("score", 0) for test in found["tests"]) == sum(room.POINTS.values())
    assert 100 * MEBIBYTE < peak.bytes < 700 * MEBIBYTE


SETTINGS = {"lesson": "02_x", "exercises": {"one": 2.0, "two": 3.0}, "questions": {"why": 2.0}}
RELEASE = {"cells": [{"metadata": {"nbgrader": {"grade_id": "why"}}, "source": ["blank", "?"]}]}


@pytest.mark.parametrize(
    ("source", "said"), [("blank?", "you left it as it was"), ("Because.", "was handed in")]
)
def test_a_question_has_no_score_and_says_whether_it_is_answered(source, said):
    cell = {"metadata": {"nbgrader": {"grade_id": "why"}}, "source": source}
    incident = {"status": "timed out", "where": "cell x", "detail": "killed"}
    notebook = json.dumps({"cells": [cell]})
    found = {"marks": {}, "incidents": [incident], "notebook": notebook}
    graded = results.of_graded(found, RELEASE, SETTINGS)
    (test,) = graded["tests"]
    assert test["name"] == "why" and "score" not in test and said in test["output"]
    assert "timed out (cell x: killed)" in graded["output"]
    assert graded["output"].endswith("2 more are given by a person, who reads your answers.")
