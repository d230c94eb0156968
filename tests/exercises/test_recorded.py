"""An exercise known by recorded cases judges answers like the exercise itself."""

import json
import zipfile

import pytest
from shared import one_in

from rlcourse import exercises
from rlcourse.authoring.stubs import source_of
from rlcourse.checks import recorded
from rlcourse.checks.calling import call_all, describe
from rlcourse.checks.exam import Exam
from rlcourse.checks.naming import find_mistake
from rlcourse.checks.recorded import RecordedExam, exam_of, read, record
from rlcourse.errors import UserError

SEED = 5
CHEAP = ("reinforce_loss", "score_function", "group_normalized_advantages")
OTHERS = [e for e in exercises.all() if e.name not in CHEAP and not e.suspects]


def pair(name, tmp_path) -> tuple[Exam, RecordedExam]:
    """Two exams on the same cases: by the exercise, and by what was recorded of it."""
    exercise = exercises.get(name)
    path = tmp_path / f"{name}{recorded.SUFFIX}"
    observe = ""
    if exercise.observe:  # a module with the same function, as the edition makes one
        home, function = exercise.observe.__module__, exercise.observe.__name__
        observe = f"import sys\nobserve = sys.modules[{home!r}].{function}\n"
    path.write_bytes(record(exercise, [SEED], observe))
    return Exam(exercise, SEED), exam_of(read(path))


def verdict(exam, fn):
    """What decides over points and names; with no time spent on what else could be said."""
    outcomes = call_all(fn, exam.cases)
    failed = exam.examine(describe(fn), outcomes)
    named = find_mistake(exam, failed) if failed.failing else None
    return failed.failing, named and [part.name for part in named.parts]


def unwritten(**arguments):
    raise NotImplementedError


def agrees_on_everything(name, tmp_path):
    full, known = pair(name, tmp_path)
    exercise = full.exercise
    assert verdict(full, exercise.reference) == verdict(known, exercise.reference) == ([], None)
    for fn in (unwritten, *exercise.alternatives):
        assert verdict(full, fn)[0] == verdict(known, fn)[0]
    for mistake in exercise.mistakes:
        failing, named = verdict(full, mistake.implementation)
        assert verdict(known, mistake.implementation) == (failing, named), mistake.name
        assert failing, mistake.name


@pytest.mark.parametrize("name", CHEAP)
def test_stub_right_answers_and_every_mistake_get_the_same_verdict(name, tmp_path):
    agrees_on_everything(name, tmp_path)


@pytest.mark.parametrize("exercise", one_in(5, OTHERS))
def test_the_same_holds_for_every_other_exercise(exercise, tmp_path):
    agrees_on_everything(exercise.name, tmp_path)


def test_points_and_message_are_the_same_too(tmp_path):
    full, known = pair("reinforce_loss", tmp_path)
    mistake = full.exercise.mistakes[0].implementation
    for fn in (full.exercise.reference, mistake, unwritten):
        one, other = (exam.judge(describe(fn), call_all(fn, exam.cases)) for exam in (full, known))
        assert one.as_json() == other.as_json()


@pytest.mark.parametrize("name", CHEAP)
def test_nothing_in_the_file_is_code_of_an_answer_that_no_hint_gives(name, tmp_path):
    pair(name, tmp_path)
    exercise = exercises.get(name)
    with zipfile.ZipFile(tmp_path / f"{name}{recorded.SUFFIX}") as archive:
        told = json.loads(archive.read("exercise.json"))
        content = b"".join(map(archive.read, archive.namelist())).decode("latin-1")
    assert told["observe"] == ""
    lines = map(str.strip, source_of(exercise.reference).rpartition('"""')[2].splitlines())
    for line in filter(None, lines):
        assert line not in content or line in "".join(exercise.hints)


def test_tests_that_students_write_are_left_for_grading(tmp_path):
    exercise = exercises.get("test_ppo_clip_loss")
    path = tmp_path / f"test_ppo_clip_loss{recorded.SUFFIX}"
    path.write_bytes(record(exercise, [SEED]))
    result = exam_of(read(path)).judge(describe(unwritten), [])
    assert result.later and not result.passed and "when you hand it in" in result.message


def test_a_recorded_exercise_is_nothing_to_grade_with(tmp_path):
    _, known = pair("score_function", tmp_path)
    with pytest.raises(UserError, match="students' edition"):
        Exam(known.exercise, SEED)


def test_a_broken_file_is_one_sentence(tmp_path):
    (tmp_path / "f.recorded").write_bytes(b"no archive")
    with pytest.raises(UserError, match="install the course again"):
        read(tmp_path / "f.recorded")
