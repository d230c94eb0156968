"""The course as a package: built, installed into a fresh environment, used outside of a clone.

No network: what it is built with, and what it needs, are taken from this environment. The new one
sees this one's packages, but not this clone.
"""

import zipfile
from pathlib import Path

import nbformat
import pytest
from building import LESSONS, ROOT, environment, run

import rlcourse

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(archives, tmp_path_factory):
    """The interpreter of a fresh environment that has the wheel."""
    place = tmp_path_factory.mktemp("fresh")
    python, _ = environment(place / "environment")
    words = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    run(python, *words, "--disable-pip-version-check", archives[1], cwd=place)
    return python


@pytest.fixture(scope="module")
def outside(python, tmp_path_factory):
    """``outside(command…)`` runs rlcourse from the wheel in a folder that is no clone."""
    place = tmp_path_factory.mktemp("elsewhere")

    def outside(*words) -> str:
        home = {"HOME": str(place / "home"), "RLCOURSE_HOME": str(place / "home" / ".rlcourse")}
        return run(python, "-m", "rlcourse", *words, cwd=place, **home)

    outside.python, outside.place = python, place
    return outside


def test_the_wheel_holds_every_lesson_as_it_is_here_and_no_solution(archives):
    with zipfile.ZipFile(archives[1]) as wheel:
        names = wheel.namelist()
        notebooks = [name for name in names if name.endswith(".ipynb")]
        assert notebooks == [f"rlcourse/notebooks/{n}/{n}.ipynb" for n in LESSONS]
        for name in LESSONS:
            original = ROOT / "notebooks" / name / f"{name}.ipynb"
            content = wheel.read(f"rlcourse/notebooks/{name}/{name}.ipynb")
            assert content == original.read_bytes()
    assert not [name for name in names if name.split("/")[0] in ("tests", "course", "solutions")]


def test_the_wheel_holds_every_file_of_the_package(archives):
    with zipfile.ZipFile(archives[1]) as wheel:
        packed = set(wheel.namelist())
    files = (path.relative_to(ROOT) for path in (ROOT / "rlcourse").rglob("*") if path.is_file())
    skipped = ("__pycache__", ".ruff_cache", ".mypy_cache", ".ipynb_checkpoints")
    here = {path.as_posix() for path in files if not set(path.parts) & set(skipped)}
    assert here - packed <= {"rlcourse/algorithms/ruff.toml"}


def test_the_package_is_the_wheel_s_and_knows_its_version(outside):
    code = "import rlcourse, importlib.metadata as m; print(rlcourse.__file__);"
    code += "print(rlcourse.__version__, m.version('rlcourse'))"
    where, versions = run(outside.python, "-c", code, cwd=outside.place).splitlines()
    assert Path(where).is_relative_to(outside.python.parents[1])
    assert versions.split() == [rlcourse.__version__] * 2


def test_lessons_are_copied_out_and_lesson_00_is_solved_and_passes(outside):
    assert f"{len(LESSONS)} lessons copied" in outside("lab", "--copy-only")
    mine = outside.place / "rlcourse-lessons"
    assert sorted(path.stem for path in mine.glob("*/*.ipynb")) == LESSONS
    path = mine / "00_start_here" / "00_start_here.ipynb"
    node = nbformat.read(path, as_version=4)
    cell = next(cell for cell in node.cells if cell.id == "mean_reward")
    assert cell.source.endswith("raise NotImplementedError")
    cell.source = cell.source.replace("raise NotImplementedError", "return rewards.mean()")
    nbformat.write(node, path)
    assert "passed" in outside("check", path)
    before = path.read_bytes()
    assert "up to date" in outside("lab", "--copy-only")
    assert path.read_bytes() == before


def test_the_doctor_finds_nothing_missing(outside):
    assert "✗" not in outside("doctor")


@pytest.mark.weekly
def test_a_model_trains_and_a_sample_submission_is_judged(outside):
    """What ``rlcourse demo`` does, with one step in place of its hundred."""
    outside("train", "grpo", "steps=1", "warm_start=null", "eval_problems=0", "--out", "run")
    assert (outside.place / "run" / "report.html").is_file()
    code = "from rlcourse.authoring.sample import write_sample_submission as w; w('sample.ipynb')"
    run(outside.python, "-c", code, cwd=outside.place)
    said = outside("check", "sample.ipynb")
    assert said.count("passed") == 3 and "a mean over all" in said
