"""What a students' edition takes and refuses, tried here as if this copy of the course were one.

``test_student_edition.py`` tries the same in an environment that has an edition's wheel.
"""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from building import LESSONS, ROOT
from small_courses import write_course
from typer.testing import CliRunner

from rlcourse import edition, exercises
from rlcourse.cli import GROUPS, app
from rlcourse.commands import FOR_EVERYBODY, OF_THE_WHOLE_COURSE
from rlcourse.courses import course_at, current, finding, shipped
from rlcourse.courses.declared import load_exercise
from rlcourse.errors import UserError

LESSON = '# 02 · Ours\n\n```python exercise="reinforce_loss"\n```\n'
REFUSED = "students' edition of the course.*: {} with the instructor's installation$"


@pytest.fixture
def as_edition(monkeypatch):
    monkeypatch.delenv(finding.VARIABLE, raising=False)
    monkeypatch.setattr(edition, "EDITION", True)
    monkeypatch.setattr(edition, "OPEN", tuple(LESSONS[:2]))
    monkeypatch.setattr(edition, "WITHHELD", tuple(LESSONS[2:]))


@pytest.fixture
def installed(monkeypatch, tmp_path, request) -> Path:
    """The course of an edition that is installed in a folder of packages."""
    package = tmp_path / "site-packages" / "rlcourse"
    course = write_course(package / "course", {"02_ours": LESSON})
    request.getfixturevalue("as_edition")
    monkeypatch.setattr(finding, "PACKAGE", package)
    return course


def test_an_edition_is_its_own_course_wherever_it_runs(installed, monkeypatch):
    for place in (ROOT, ROOT / "notebooks" / LESSONS[3], ROOT / "course" / "lessons", installed):
        assert current(place).directory == installed
    assert course_at(installed / "lessons" / "02_ours").directory == installed
    with pytest.raises(UserError, match="there is no course in"):
        course_at(ROOT / "course")
    monkeypatch.setenv(finding.VARIABLE, str(ROOT / "course"))
    with pytest.raises(UserError, match=r"course is another copy of the course: a students' ed"):
        current()
    monkeypatch.setenv(finding.VARIABLE, str(installed))
    assert current(ROOT).directory == installed


def test_a_course_of_somebody_s_own_takes_the_edition_s_lessons(installed, tmp_path):
    own = write_course(tmp_path / "own", {"02_ours": None})  # rlcourse:02_ours
    assert current(own).directory == installed  # not a package, so a copy of ours
    (own / "__init__.py").touch()
    assert current(own).directory == own
    assert current(own).lessons[0].home == installed


def test_the_whole_course_is_that_of_its_clone():
    assert current(ROOT / "notebooks").directory == ROOT / "course" == shipped().directory


def test_a_blank_function_is_no_reference(monkeypatch):
    """Else an answer that is not written would agree with it."""
    course, name = shipped(), "reinforce_loss"
    reference = exercises.get(name, course).reference
    monkeypatch.setattr(edition, "BLANK", (f"{reference.__module__}.{name}",))
    with pytest.raises(UserError, match="does not have reinforce_loss, since its lesson is not"):
        load_exercise(course, course.exercises[name], name)
    other = "score_function"
    assert load_exercise(course, course.exercises[other], other).name == other


def test_grading_is_refused_before_anything_else(as_edition, monkeypatch, tmp_path):
    from nbgrader.converters.base import NbGraderException

    from rlcourse.grading import __main__ as of_the_plugin
    from rlcourse.grading import grade
    from rlcourse.grading.gradescope.archive import write_archive
    from rlcourse.grading.gradescope.grading import grade as grade_there
    from rlcourse.grading.gradescope.preparing import prepare
    from rlcourse.grading.nbgrader_plugin import IsolatedAutograde

    absent = tmp_path / "absent"
    for act in (
        lambda: grade("no lesson", course=absent),
        lambda: prepare(absent, absent),
        lambda: grade_there(absent, absent),
    ):
        with pytest.raises(UserError, match=REFUSED.format("grade")):
            act()
    with pytest.raises(UserError, match=REFUSED.format("make an autograder")):
        write_archive("no lesson", absent, absent)
    with pytest.raises(NbGraderException, match=REFUSED.format("grade")):
        IsolatedAutograde().start()
    job = {"lesson": "02", "student": "*", "force": True, "course": {"root": str(absent)}}
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(job)))
    monkeypatch.setattr(sys, "stderr", said)
    assert of_the_plugin.main() == 1
    assert re.search(REFUSED.format("grade"), said.getvalue().strip())
    assert not list(tmp_path.iterdir())


def test_commands_for_instructors_are_refused_in_one_sentence_and_not_listed(as_edition):
    assert set(OF_THE_WHOLE_COURSE) <= set(GROUPS)
    listing = CliRunner().invoke(app, ["--help"]).output
    for group, commands in GROUPS.items():
        for command in commands:
            name = command.__name__.replace("_", "-")
            listed = re.search(rf"^  {name} ", listing, re.MULTILINE)
            if name != "demo" and (group not in OF_THE_WHOLE_COURSE or name in FOR_EVERYBODY):
                assert listed, name
                continue
            assert not listed, name
            for words in ([name], [name, "--help"], [name, "02", "--no-such-option"]):
                done = CliRunner().invoke(app, words)
                assert isinstance(done.exception, UserError) and not done.output, words
                assert re.search(REFUSED.format(f"run `rlcourse {name}`"), str(done.exception))


def test_the_doctor_names_nothing_that_only_grading_needs(as_edition):
    from rlcourse.doctor import examine

    said = "\n".join(f"{one.group} {one.name} {one.advice}" for one in examine())
    assert "torch" in said and "isolation" not in said
    assert "[grade]" not in said and "sphinx" not in said and "nbgrader" not in said


def test_the_doctor_says_which_lessons_are_open(as_edition, monkeypatch):
    from rlcourse.doctor import _course

    (found,) = _course()
    assert found.state == "ok"
    assert "students' edition; open: 00, 01; not open yet: 02, 03, " in found.found
    monkeypatch.setattr(edition, "OPEN", ())
    assert "open: no lesson;" in next(_course()).found
    monkeypatch.setattr(edition, "EDITION", False)
    assert not list(_course())
