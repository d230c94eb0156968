"""``ready`` in a notebook: a cell that lacks earlier results says so, and the rest runs."""

import subprocess
import sys

import nbformat
import pytest

from rlcourse.courses import current

CODE = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(user_ns={})
def run(cell):
    result = shell.run_cell(cell, store_history=True)
    print("RAISED" if not result.success else "WENT ON")
run("from rlcourse import ready\\nfrom torch import Tensor, tensor")
run("def mean_reward(rewards):\\n    return rewards.mean()")
for cell in sys.argv[1:]:
    run(cell)
"""
USES = "if ready(mean_reward):\n    print('mean', trained.steps, [x for x in range(2)])"
MAKES = "if ready(mean_reward):\n    trained = {make}\n    print('made', trained)"


@pytest.fixture(scope="module")
def said():
    def said(*cells: str) -> list[str]:
        words = [sys.executable, "-c", CODE, *cells]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[2:]

    return said


@pytest.mark.slow
def test_after_a_training_that_was_stopped_the_next_cells_say_what_to_run(said):
    stopped = MAKES.format(make="1 / 0")
    lines = "\n".join(
        said(stopped, USES, MAKES.format(make="range(3)"), USES.replace(".steps", ""))
    )
    _, _, rest = lines.partition("RAISED")  # the one that was stopped, and no other
    assert "RAISED" not in rest
    assert "There is no `trained` yet" in rest.partition("made")[0]
    assert "mean range(0, 3) [0, 1]" in rest


UNWRITTEN = "def mean_reward(rewards):\n    raise NotImplementedError"
BORROWS = "from rlcourse import borrow; borrow(mean_reward)"
SHOWS = "if ready(mean_reward):\n    print('mean', mean_reward(tensor([1.0, 0.0])).item())"


@pytest.mark.slow
def test_a_function_that_is_not_written_can_be_borrowed_until_it_is(said):
    asked = "from rlcourse import check, progress\nprint(check(mean_reward))\nprogress()"
    first, borrowing, shown, judged, back, again = steps(
        said(UNWRITTEN, SHOWS, BORROWS, SHOWS, asked, UNWRITTEN, SHOWS)
    )[1:]
    assert "Finish mean_reward first" in first and f"`{BORROWS}`" in first
    assert "without points" in borrowing
    assert "mean 0.5" in shown
    assert "the library's own" in judged
    assert back == ""
    assert "Finish mean_reward first" in again


@pytest.mark.slow
def test_what_has_no_version_to_borrow_is_named(said):
    said = "\n".join(said("from rlcourse import borrow; borrow()", "borrow('men_reward')"))
    assert "borrow takes the functions to borrow" in said
    assert "mean_reward" in said.partition("men_reward")[2]  # what was probably meant


@pytest.mark.slow
def test_a_waiting_cell_shows_what_the_course_saw_folded(said):
    lesson = current().lesson("02")
    source = next(
        cell.source
        for cell in nbformat.read(current().solutions / f"{lesson.name}.ipynb", 4).cells
        if "plots.held_out(left, run" in cell.source
    )
    stubs = "\n".join(
        f"def {name}(*args, **options):\n    raise NotImplementedError"
        for name in ("reinforce_loss", "reinforce_step")
    )
    caught = "import rlcourse.student.checking as c; c.show = lambda n: print(n._repr_html_())"
    *_, shown = steps(said(stubs, caught, source))
    assert "Finish reinforce_loss and reinforce_step first" in shown
    folded = shown.partition("What it showed when the course ran it</summary>")[2]
    assert 'class="rlcourse-picture"' in folded
    assert "Use the course&#x27;s version for now</summary>" in folded
    *_, shown = steps(said(stubs, caught, source + "\n    # edited"))
    assert "What it showed" not in shown  # of another cell nothing is known


def steps(lines: list[str]) -> list[str]:
    """What each cell said."""
    return [part.strip() for part in "\n".join(lines).split("WENT ON")[:-1]]


@pytest.mark.slow
def test_after_a_syntax_error_a_check_says_that_it_judges_the_older_definition(said):
    checked = "from rlcourse import check\nprint(check(mean_reward))"
    broken, mended = "def mean_reward(rewards):\n    return rewards.mean(", "x = 1"
    said_of = "\n".join(said(checked, broken, mended, checked))
    first, _, after = said_of.partition("RAISED")
    words = "The cell that defines mean_reward has a syntax error in line 2, so it did not run"
    assert words in after and "syntax error" not in first
