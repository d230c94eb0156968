"""A completion file cannot be changed once it is signed, and nobody else can sign it."""

import json
import os
import stat

import pytest
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.grading.books.completion import (
    PRIVATE,
    PUBLIC,
    completion,
    described,
    private_key,
    signed,
    verified,
)
from rlcourse.grading.books.grades import ClassGrades, LessonGrade
from rlcourse.grading.books.people import Student

LESSONS = ("02_policy_gradient", "03_baselines", "04_importance_sampling")
GRADES = ClassGrades(
    {"ada": Student("ada", "Lovelace", "Ada"), "bob": Student("bob")},
    LESSONS,
    {
        ("ada", LESSONS[0]): LessonGrade(LESSONS[0], 9.0, 8.5),
        ("ada", LESSONS[1]): LessonGrade(LESSONS[1], 10.0, 6.0, penalty=1.5),
        ("ada", LESSONS[2]): LessonGrade(LESSONS[2], 10.0, missing=True),
        **{("bob", lesson): LessonGrade(lesson, 9.0, 9.0, waiting=True) for lesson in LESSONS},
    },
)


@pytest.fixture
def given(tmp_path):
    """(the file that ada gets, the public key, the course's directory)"""
    course = tmp_path / "course"
    course.mkdir()
    path = tmp_path / "ada.json"
    path.write_text(json.dumps(signed(completion(GRADES, "ada"), private_key(course)), indent=1))
    return path, course / PUBLIC, course


def test_what_was_signed_is_verified_and_says_what_was_passed(given):
    path, public, _ = given
    claim = verified(path, public)
    passed = {row["lesson"]: row["passed"] for row in claim["lessons"]}
    assert passed == dict(zip(LESSONS, (True, False, False), strict=True))  # 4.5 of 10 is less
    text = described(claim)
    assert text.startswith("Ada Lovelace (ada): 1 of 3 lessons passed, at 50% of the points")
    assert claim["key"] in text


def test_the_layout_of_the_file_does_not_matter(given):
    path, public, _ = given
    claim = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(claim.items()))))
    assert verified(path, public)["student"] == "ada"


@pytest.mark.parametrize(
    "change",
    [
        lambda claim: claim.update(name="Somebody Else"),
        lambda claim: claim["lessons"][1].update(passed=True),
        lambda claim: claim["lessons"][0].update(points=9.0),
        lambda claim: claim.update(issued="2020-01-01"),
        lambda claim: claim.update(passes_at=0.1),
        lambda claim: claim["lessons"].pop(),
        lambda claim: claim.update(more=True),
    ],
)
def test_whatever_a_student_changes_is_found_out(given, change):
    path, public, _ = given
    claim = json.loads(path.read_text())
    change(claim)
    path.write_text(json.dumps(claim))
    with pytest.raises(UserError, match="NOT VERIFIED"):
        verified(path, public)


def test_a_key_of_one_s_own_signs_nothing_that_counts(given, tmp_path):
    path, public, _ = given
    forger = tmp_path / "forger"
    forger.mkdir()
    forged = signed(completion(GRADES, "ada"), private_key(forger))
    for named in (forged["key"], json.loads(path.read_text())["key"]):  # theirs, or the true one
        path.write_text(json.dumps({**forged, "key": named}))
        with pytest.raises(UserError, match="NOT VERIFIED"):
            verified(path, public)


DEEP = "[" * 100_000, '{"signature": "no", "key": ' + "[" * 900 + "]" * 900 + "}"
NONE = "", "[]", "{}", '{"signature": 5}', '{"signature": "no"}', "\ufeff{}", *DEEP


@pytest.mark.parametrize("content", NONE, ids=range(len(NONE)))
def test_what_is_no_such_file_is_said_to_be_none(given, content):
    path, public, _ = given
    path.write_text(content)
    with pytest.raises(UserError, match="not a completion file"):
        verified(path, public)


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_the_private_key_is_the_owner_s_alone_and_is_made_once(given):
    _, public, course = given
    assert stat.S_IMODE((course / PRIVATE).stat().st_mode) == 0o600
    before = (course / PRIVATE).read_bytes(), public.read_bytes()
    private_key(course)
    assert ((course / PRIVATE).read_bytes(), public.read_bytes()) == before
    assert b"PRIVATE" not in public.read_bytes()


def test_nothing_is_signed_while_points_by_hand_are_to_come():
    with pytest.raises(UserError, match="bob still has answers to be graded by hand"):
        completion(GRADES, "bob")
    with pytest.raises(UserError, match="not in the gradebook"):
        completion(GRADES, "eve")


def test_the_command_fails_on_a_changed_file(given):
    path, public, _ = given
    words = ["verify", str(path), "--key", str(public)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "Ada Lovelace" in done.output
    path.write_text(path.read_text().replace("Lovelace", "Forger"))
    assert isinstance(CliRunner().invoke(app, words).exception, UserError)
