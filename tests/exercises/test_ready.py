"""``ready`` in a notebook: a cell whose makings are missing says so, and the notebook goes on."""

import subprocess
import sys

import pytest

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


def test_after_a_training_that_was_stopped_the_next_cells_say_what_to_run(said):
    stopped = MAKES.format(make="1 / 0")
    lines = "\n".join(
        said(stopped, USES, MAKES.format(make="range(3)"), USES.replace(".steps", ""))
    )
    _, _, rest = lines.partition("RAISED")  # the one that was stopped, and no other
    assert "RAISED" not in rest
    assert "There is no `trained` yet" in rest.partition("made")[0]
    assert "mean range(0, 3) [0, 1]" in rest
