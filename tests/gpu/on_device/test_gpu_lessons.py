"""Every cell of every solved lesson, policies on the device. See ../test_on_a_gpu.py.

Which device a tensor is on does not depend on how many rows it has: training runs are cut to two
steps of a few short completions, loops of cells that sample to three rounds, three seeds to two.
What a cell says of a run's success is then not true, so an AssertionError is no failure here, nor
is an audit that finds no right text; what mixes devices, or is not there on a GPU, raises others.
"""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("[0-9]*.ipynb"))
AT_MOST = {
    "steps": 2,
    "eval_problems": 2,
    "questions": 16,
    "eval_samples": 8,
    "eval_every": 2,
    "max_tokens": 20,
    "prompts_per_step": 2,
    "num_iterations": 2,
    "sampler_staleness": 1,
}
# A warm start learns a little, so that some completions earn more than others.
OF_A_WARM_START = AT_MOST | {"steps": 60, "prompts_per_step": 8, "eval_every": 20}
# Problems: lesson 15 takes those from the 65th on, lesson 17 some of each kind.
HELD_OUT = {"15_judges": 72, "17_costs": 72}
FEW = 8  # in all other lessons
SAMPLES_FROM_A_MODEL = re.compile(r"\.sample\((prompts|\[)")
LOOP = re.compile(r"^( *for \w+ in range)\((\w+)\):$", re.M)


@pytest.fixture
def short_runs_on_the_device(lesson, monkeypatch, tmp_path):
    from rlcourse.policy import loading
    from rlcourse.tasks.problem import Task
    from rlcourse.training.recipes.settings import Recipe

    made, fill = Recipe.of, Task.__init__

    def cut(values):
        whole = made(values)
        limits = OF_A_WARM_START if whole.method.imitates else AT_MOST
        return made(values | {k: min(v, limits[k]) for k, v in whole if k in limits})

    def few(self, name, train, evaluation, *rest, **options):
        fill(self, name, train, evaluation[: HELD_OUT.get(lesson, FEW)], *rest, **options)

    monkeypatch.setattr(Recipe, "of", staticmethod(cut))
    monkeypatch.setattr(Task, "__init__", few)
    monkeypatch.setattr(loading, "is_small", lambda model: False)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)


def shortened(cell: str) -> str:
    """The cell with two seeds of three, and with three rounds of a loop that samples."""
    cell = cell.replace("(0, 1, 2)", "(0, 1)").replace("seed in range(3)", "seed in range(2)")
    return LOOP.sub(r"\1(min(\2, 3)):", cell) if SAMPLES_FROM_A_MODEL.search(cell) else cell


def of_a_short_run(error: BaseException) -> bool:
    return isinstance(error, AssertionError) or "right texts and wrong ones" in str(error)


@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson(lesson, short_runs_on_the_device):
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    notebook = json.loads((ROOT / "solutions" / f"{lesson}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    wrong = []
    for cell in map(shortened, cells):
        done = shell.run_cell(cell, silent=True)
        error = done.error_before_exec or done.error_in_exec
        if error is not None and not of_a_short_run(error):
            wrong.append(f"{type(error).__name__}: {error}\nin the cell\n{cell[:400]}")
    assert not wrong, "\n\n".join(wrong)
