"""The students' edition in a fresh environment: what it lacks, what its checks say, what it trains.

It is made once, with all lessons from 02 on withheld and one drawing of each exercise's cases.
"""

import ast
import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from building import LESSONS, ROOT, environment, run
from shared import made_once

from rlcourse import exercises
from rlcourse.authoring.stubs import solution, source_of, stub
from rlcourse.courses import shipped
from rlcourse.courses.declared import load_exercise
from rlcourse.errors import UserError
from rlcourse.grading import grade
from rlcourse.grading.edition import building
from rlcourse.grading.edition.blanking import reachable, without_answers
from rlcourse.grading.edition.building import write_edition

slow = pytest.mark.slow
OPEN = LESSONS[:2]
WITHHELD = [e for e in exercises.all(contests=True) if e.lesson not in OPEN]
LESSON = "02_policy_gradient"
WRONG = ("-(advantages.detach()", "(advantages.detach()")  # of reinforce_loss: the sign


@pytest.fixture(scope="session")
def edition(tmp_path_factory):
    """Where it was written, the wheel's files, and ``run`` in an environment that has it."""

    def make(root):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(building, "DRAWINGS", 1)
            made = write_edition(root / "edition", ["00", "01"])
        (root / "said").write_text(str(made))
        python, _ = environment(root / "environment")
        words = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
        run(python, *words, "--disable-pip-version-check", made.wheel, cwd=root)

    root = made_once(tmp_path_factory, "student-edition", make)
    (wheel,) = (root / "edition").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    python = next((root / "environment").glob("[bS]*/python*"))  # bin, or Scripts

    def student(*words, folder: Path) -> str:
        folder.mkdir(exist_ok=True)
        kept = {"HOME": str(folder), "RLCOURSE_HOME": str(folder / "record")}
        return run(python, *words, cwd=folder, **kept)

    said = (root / "said").read_text()
    return SimpleNamespace(folder=root / "edition", files=files, run=student, said=said)


def bodies(text: str) -> set[str]:
    """Every function's body in a Python text, as the same text whatever its layout."""
    nodes = ast.walk(ast.parse(text))
    return {body_of(node) for node in nodes if isinstance(node, ast.FunctionDef)}


def body_of(node: ast.FunctionDef) -> str:
    documented = ast.get_docstring(node) is not None
    return "\n".join(map(ast.unparse, node.body[documented:]))


@slow
def test_no_right_answer_is_in_the_wheel(edition):
    modules = {n: content.decode() for n, content in edition.files.items() if n.endswith(".py")}
    there = set().union(*map(bodies, modules.values()))
    everything = "\n".join(
        content.decode("utf-8", "replace")
        for name, content in edition.files.items()
        if not name.endswith(".recorded")
    )
    for exercise in WITHHELD:
        for answer in (exercise.reference, *exercise.alternatives):
            whole = ast.parse(source_of(answer)).body[0]
            assert not isinstance(whole, ast.FunctionDef) or body_of(whole) not in there, (
                exercise.name
            )
        lines = source_of(exercise.reference).rpartition('"""')[2].strip()
        assert len(lines) < 60 or lines not in everything, exercise.name


@slow
def test_nothing_of_a_withheld_lesson_is_there_but_its_text_and_recorded_cases(edition):
    place = "rlcourse/course/lessons/"
    for lesson in LESSONS:
        names = {n.rpartition("/")[2] for n in edition.files if n.startswith(f"{place}{lesson}/")}
        if lesson in OPEN:
            assert any(name.endswith(".py") for name in names)
            continue
        asked = [e.name for e in exercises.all(contests=True) if e.lesson == lesson]
        assert names == {"lesson.md", *(f"{name}.recorded" for name in asked)}
        text = edition.files[f"{place}{lesson}/lesson.md"].decode()
        assert "region answer=" not in text and "region rubric=" not in text
    course = [name for name in edition.files if not name.startswith("rlcourse/teaching/")]
    assert not [n for n in course if "/site/" in n or "solutions/" in n or "teaching/" in n]
    assert sorted(p.stem for p in (edition.folder / "solutions").iterdir()) == OPEN
    assert sorted(p.name for p in (edition.folder / "notebooks").iterdir()) == LESSONS
    for path in (edition.folder / "notebooks").glob("*/*.ipynb"):
        assert "BEGIN SOLUTION" not in path.read_text()


@slow
def test_the_command_says_what_is_open_withheld_packed_and_judged_later(edition):
    assert f"open: {OPEN[0]}, {OPEN[1]}\n" in edition.said
    assert f"({len(WITHHELD)} exercises)" in edition.said
    assert re.search("anyone who unpacks the wheel can read them: .*kl_estimates", edition.said)
    assert "reinforce_loss" not in edition.said
    assert re.search("Judged only when handed in: .*test_ppo_clip_loss", edition.said)


def answers(names, change=lambda name, text: text) -> str:
    """The text of the named functions, with the imports that they need."""
    return "".join(
        f"\n\n{change(name, solution(exercises.get(name).reference, marks=False))}"
        for name in names
    )


IMPORTS = """\
import torch, torch.nn.functional as F
from torch import Tensor
from rlcourse import borrow, check, ready
from rlcourse.algorithms import group_mean_advantages, importance_weights, kl_estimates, masked_mean
from rlcourse.training import load_recipe, train
"""


@slow
def test_a_right_answer_passes_a_wrong_one_is_named_and_both_train(edition, tmp_path):
    (tmp_path / "right.py").write_text(
        IMPORTS
        + stub(exercises.get("reinforce_loss").reference)
        + "\n\nassert not ready(reinforce_loss)"
        + "\nassert check(reinforce_loss).unwritten"
        + answers(["reinforce_loss"], lambda name, text: text.replace(*WRONG))
        + "\n\nwrong = check(reinforce_loss)\nassert not wrong.passed\nprint(wrong.message)"
        + answers(["reinforce_loss"])
        + "\n\nassert check(reinforce_loss).passed and ready(reinforce_loss)"
        + "\nrecipe = load_recipe('reinforce', steps=1, device='cpu', eval_problems=0)"
        + "\ntrain(recipe, functions=[reinforce_loss], progress=False)"
    )
    said = edition.run(tmp_path / "right.py", folder=tmp_path / "home")
    declared = exercises.get("reinforce_loss").mistakes
    assert any(f"Your numbers are those of {m.name}" in said for m in declared), said
    # what passed is what later lessons run on, each in a process of its own
    earlier = ["group_mean_advantages", "importance_weights", "kl_estimates"]
    (tmp_path / "earlier.py").write_text(
        IMPORTS
        + answers(earlier)
        + "\n\n"
        + "\n".join(f"assert check({n}).passed" for n in earlier)
    )
    edition.run(tmp_path / "earlier.py", folder=tmp_path / "home")
    (tmp_path / "later.py").write_text(
        IMPORTS
        + answers(["group_normalized_advantages", "grpo_loss"])
        + "\n\nassert check(group_normalized_advantages).passed and check(grpo_loss).passed"
        + "\nfor name in ('reinforce', 'grpo'):"
        + "\n    recipe = load_recipe(name, steps=1, device='cpu', eval_problems=0)"
        + "\n    train(recipe, progress=False)"
    )
    edition.run(tmp_path / "later.py", folder=tmp_path / "home")


@slow
def test_what_is_not_written_is_asked_for(edition, tmp_path):
    (tmp_path / "none.py").write_text(
        IMPORTS
        + "from rlcourse.errors import UserError\n"
        + "from rlcourse.algorithms import reinforce_loss\n"
        + "for act in (lambda: train(load_recipe('reinforce', steps=1, device='cpu',"
        + " eval_problems=0), progress=False), lambda: borrow('reinforce_loss')):\n"
        + "    try:\n        act()\n    except UserError as error:\n        print(error)\n"
        + "assert not check(reinforce_loss).passed\n"
        + "print(check(importance_weights).headline)\n"
    )
    said = edition.run(tmp_path / "none.py", folder=tmp_path / "home")
    assert "finish reinforce_loss first" in said
    assert "does not have reinforce_loss: its lesson is not due" in said
    assert "the library's own function: write yours" in said  # packed, and no answer either


@slow
def test_points_are_those_of_the_full_course(edition, tmp_path, monkeypatch):
    """A notebook that was written in the edition, as its own check and as the grader see it."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "grading")
    import classroom as room

    course = room.make_course(tmp_path)
    notebook = nbformat.read(
        edition.folder / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4
    )
    names = [e.name for e in exercises.all() if e.lesson == LESSON]
    for name in names[:-1]:
        room.cell_of(notebook, name).source = room.solution(name)
    wrong = room.cell_of(notebook, "reinforce_loss")
    assert WRONG[0] in wrong.source
    wrong.source = wrong.source.replace(*WRONG)
    text = nbformat.writes(notebook)
    (tmp_path / "mine.ipynb").write_text(text)
    said = edition.run(
        "-m", "rlcourse", "check", tmp_path / "mine.ipynb", "--json", folder=tmp_path / "home"
    )
    seen = {row["exercise"]: row for row in json.loads(said)["exercises"]}
    path = course / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    row = grade(LESSON, course=course).rows[0]
    for name in names:
        graded = row.exercises[name]
        assert seen[name]["points"] == pytest.approx(graded["points"]), name
        assert seen[name]["mistake"] == graded["mistake"], name
    assert seen["reinforce_loss"]["mistake"]


COMMAND = """
import sys
from rlcourse.cli import main
sys.stderr = sys.stdout
for words in {words}:
    sys.argv = ["rlcourse", *words.split()]
    try:
        main()
    except SystemExit as end:
        print("exit code", end.code)
"""


@slow
def test_within_a_clone_of_the_whole_course_an_edition_is_still_one(edition, tmp_path):
    """Where a blank answer would agree with the clone's exercises, whose references are blank."""
    copy, name, made = tmp_path / "clone", LESSONS[3], ("site", "source", "gradebook.db")
    shutil.copytree(ROOT / "course", copy / "course", ignore=shutil.ignore_patterns(*made))
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / "rlcourse").mkdir()
    source = copy / "course" / "source" / LESSON / f"{LESSON}.ipynb"
    source.parent.mkdir(parents=True)
    source.touch()
    work = copy / "work"
    work.mkdir()
    shutil.copy(edition.folder / "notebooks" / name / f"{name}.ipynb", work)
    said = edition.run("-m", "rlcourse", "check", f"{name}.ipynb", "--json", folder=work)
    report = json.loads(said)
    assert report["points"] == 0 and report["exercises"]
    assert {row["status"] for row in report["exercises"]} == {"not written yet"}
    words = ["grade 02 --force --student ada", "teaching-notes 02", "teaching-pack pack", "doctor"]
    said = edition.run("-c", COMMAND.format(words=words), folder=work)
    refusal = r"^rlcourse: this is a students' edition .* run `(.*)` with the .*\nexit code 1$"
    refusals = re.findall(refusal, said, re.MULTILINE)
    assert refusals == ["rlcourse grade", "rlcourse teaching-notes", "rlcourse teaching-pack"]
    assert re.search(r"\+students\.\d+ is a students' edition; open: 00, 01; not open", said)
    assert not (work / "pack").exists() and not (copy / "course" / "gradebook.db").exists()


@slow
def test_grading_and_building_with_an_edition_are_refused_in_one_sentence(edition, tmp_path):
    code = (
        "from rlcourse import exercises\nfrom rlcourse.checks.exam import Exam\n"
        "from rlcourse.errors import UserError\n"
        "try:\n    Exam(exercises.get('grpo_loss'))\nexcept UserError as error:\n    print(error)"
    )
    assert "instructor's installation" in edition.run("-c", code, folder=tmp_path / "home")


# without an edition


def test_lessons_are_opened_by_due_dates_and_by_name_and_only_from_the_first_on():
    from datetime import UTC, datetime, timedelta

    now = datetime(2026, 10, 1, tzinfo=UTC)
    early, late = now - timedelta(days=1), now + timedelta(days=1)
    course = replace(shipped(), due={LESSONS[0]: early, LESSONS[1]: late})
    why = (
        "00 is open: it was due 2026-09-30 00:00 UTC, "
        "and no extension entered here is still running"
    )
    assert building._opened(course, [], now, {}) == ((LESSONS[0],), (why,))
    assert building._opened(course, ["01"], now, {}) == (tuple(LESSONS[:2]), (why,))
    assert building._opened(course, ["00", "01"], now, {})[1] == ()
    with pytest.raises(UserError, match="add --open 01, or wait with 02"):
        building._opened(course, ["02"], now, {})


def test_a_lesson_stays_closed_until_its_last_extension_has_passed():
    from datetime import UTC, datetime, timedelta

    now = datetime(2026, 10, 10, 12, tzinfo=UTC)
    due = dict.fromkeys(LESSONS[:4], now - timedelta(days=2))
    course = replace(shipped(), due=due)
    given = {
        LESSONS[0]: {"ada": "2026-10-09 12:00:00 UTC"},
        LESSONS[2]: {"ada": "2026-10-09 12:00:00 UTC", "bob": "2026-10-11 23:59:00 UTC"},
    }
    opened, why = building._opened(course, [], now, given)
    assert opened == tuple(LESSONS[:2])
    assert [line[:10] for line in why[:2]] == ["00 is open", "01 is open"]
    assert why[2:] == (
        "02 stays closed: an extension runs until 2026-10-11 23:59 UTC",
        "03 stays closed: its answers hold those of 02",
    )
    assert building._opened(course, ["02"], now, given)[0] == tuple(LESSONS[:4])
    after = datetime(2026, 10, 11, 23, 59, tzinfo=UTC)
    opened, why = building._opened(course, [], after, given)
    assert opened == tuple(LESSONS[:4]) and not any("stays closed" in line for line in why)


def test_the_command_reads_the_extensions_that_extend_wrote(tmp_path, monkeypatch):
    """Up to what is opened: to write an edition takes long."""

    class Enough(Exception):
        pass

    given = {}

    def opened(course, wanted, now, extensions):
        given.update(extensions)
        raise Enough

    text = '{"02_policy_gradient": {"ada": "2026-10-11 23:59:00 UTC"}}'
    (tmp_path / "extensions.json").write_text(text)
    monkeypatch.setattr(building, "_opened", opened)
    with pytest.raises(Enough):
        write_edition(tmp_path / "out", gradebook=tmp_path)
    assert given == {LESSON: {"ada": "2026-10-11 23:59:00 UTC"}}
    with pytest.raises(UserError, match="no course directory"):
        write_edition(tmp_path / "out", gradebook=tmp_path / "elsewhere")
    assert not (tmp_path / "out").exists()


@slow
def test_students_get_a_page_that_names_the_file_to_install(edition):
    (wheel,) = edition.folder.glob("*.whl")
    page = (edition.folder / "INSTALL.md").read_text("utf-8")
    assert page.count(f'pip install "{wheel.name}[lab]"') == 3 and "WHEEL" not in page
    assert "INSTALL.md" in edition.said


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UserError, match=r"thesis\.tex, which is of no edition"):
        write_edition(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_notebooks_that_show_other_points_than_the_course_gives_are_refused(tmp_path, monkeypatch):
    changed = replace(shipped(), points={"reinforce_loss": 7})
    monkeypatch.setattr(building, "current", lambda: changed)
    with pytest.raises(
        UserError, match=r"02_policy_gradient\.ipynb is out of date: run `rlcourse build 02`"
    ):
        write_edition(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_model_answers_are_cut_out_of_every_lesson():
    for lesson in shipped().lessons:
        text = lesson.text.read_text("utf-8")
        left = without_answers(text)
        assert "#region answer=" not in left and "#region rubric=" not in left
        assert left.count("question=") == text.count("question=")
        assert left.count("exercise=") == text.count("exercise=")
        assert left.count("#region") == left.count("#endregion")


def test_of_a_module_only_what_the_statistic_uses_is_taken(tmp_path):
    text = (
        "import math, os\nA = 2\ndef right(x):\n    return x\ndef observe(case, x):\n    return A\n"
    )
    assert "right" not in reachable(text, "observe")
    assert "os" not in reachable("import os\nobserve = len\n", "observe")
    for exercise in exercises.all():
        if exercise.observe and not exercise.suspects:
            path = shipped().directory / "lessons" / exercise.lesson / f"{exercise.name}.py"
            kept = reachable(path.read_text("utf-8"), "observe")
            assert not bodies(kept) & bodies(source_of(exercise.reference))
            for other in exercise.alternatives:
                assert f"def {other.__name__}(" not in kept


def test_this_copy_of_the_course_lacks_nothing():
    from rlcourse import edition

    assert not (edition.EDITION or edition.WITHHELD or edition.BLANK or edition.PACKED)
    assert not list(ROOT.glob("course/lessons/*/*.recorded"))
    assert load_exercise(shipped(), shipped().exercises["grpo_loss"], "grpo_loss").alternatives
