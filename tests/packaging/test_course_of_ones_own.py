"""An instructor's own course, from its first command to a student who passes.

It is made and installed beside rlcourse's wheel, in a fresh environment without a clone or network.
"""

import shutil
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from building import built, environment, run

pytestmark = pytest.mark.weekly

LESSONS = ["03_baselines", "01_critics"]
RIGHT = """\
def explained_variance(values, returns):
    total = returns.var(correction=0)
    share = 1 - (returns - values).var(correction=0) / total
    return torch.where(total > 0, share, torch.zeros_like(total))
"""
WRONG = RIGHT.replace("1 - (returns", "(returns")
MISTAKE = "the share that is not explained"


@pytest.fixture(scope="module")
def course(archives, tmp_path_factory):
    """The instructor's folder, the built wheel of the course, and commands in the environment."""
    place = tmp_path_factory.mktemp("own")
    place.chmod(0o755)
    python, _ = environment(place / "environment")
    home = {"HOME": str(place / "home"), "RLCOURSE_HOME": str(place / "home" / ".rlcourse")}

    def rlcourse(*words, cwd: Path) -> str:
        return run(python, "-m", "rlcourse", *words, cwd=cwd, **home)

    def install(wheel: Path) -> None:
        words = ("install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
        run(python, "-m", "pip", *words, wheel, cwd=place)

    install(archives[1])
    rlcourse("new-course", "ours", cwd=place)
    toml = place / "ours" / "ours" / "course.toml"
    text = toml.read_text("utf-8")
    for old, new in (
        ('    "01_critics",\n    "rlcourse:02_policy_gradient",\n', ""),
        ('    "rlcourse:03_baselines",\n', '    "rlcourse:03_baselines",\n    "01_critics",\n'),
        ("# [points]", "[points]\nexplained_variance = 5\ngradient_variance = 4\n#"),
        ("# [due]", "[due]\n01_critics = 2026-02-01T23:59:00+01:00\n#"),
    ):
        assert old in text
        text = text.replace(old, new)
    toml.write_text(text, "utf-8")
    rlcourse("build", cwd=place / "ours")
    rlcourse("build", "01", "--execute", cwd=place / "ours")
    released = place / "ours" / "ours" / "notebooks" / "03_baselines" / "03_baselines.ipynb"
    shutil.copy(released, place / "ours" / "ours" / "solutions")  # to execute it takes too long
    wheel = built("wheel", place / "ours", place)
    install(wheel)
    student = place / "student"
    student.mkdir()
    return SimpleNamespace(
        root=place / "ours", wheel=wheel, student=student, rlcourse=rlcourse, python=python
    )


def answered(course, answer: str, path: Path) -> Path:
    """The student's notebook of the own lesson with that answer, at `path`."""
    source = course.root / "ours" / "notebooks" / "01_critics" / "01_critics.ipynb"
    notebook = nbformat.read(source, as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.id == "explained_variance"]
    cell.source = answer
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def test_a_student_gets_its_lessons_in_its_order_with_its_points(course):
    said = course.rlcourse("lab", "--copy-only", cwd=course.student)
    mine = course.student / "ours-lessons"
    assert "2 lessons copied" in said
    assert sorted(p.stem for p in mine.glob("*/*.ipynb")) == sorted(LESSONS)
    assert "5 points · ●●○○○ · about 10 minutes" in (
        mine / "01_critics" / "01_critics.ipynb"
    ).read_text("utf-8")
    said = course.rlcourse("progress", cwd=course.student)
    first, second = said.index(" 03 · "), said.index(" 01 · How good is a critic? · due 2026-02-01")
    assert first < second
    assert "0 of 5 points" in said
    assert "gradient_variance  not begun, 4 points" in said
    assert "0 of 6 exercises pass" in said and "grpo_loss" not in said


def test_who_solves_it_passes_and_who_errs_hears_the_mistake(course):
    path = course.student / "ours-lessons" / "01_critics" / "01_critics.ipynb"
    said = course.rlcourse("check", answered(course, WRONG, path), cwd=course.student)
    assert MISTAKE in said.lower()
    assert "passed" not in said
    said = course.rlcourse("check", answered(course, RIGHT, path), cwd=course.student)
    assert "passed" in said and "5" in said
    said = course.rlcourse("progress", cwd=course.student)
    assert "██████████  5 of 5 points" in said
