"""Every cell of every solved lesson, policies on the device. Long; see ../test_on_a_gpu.py.

Training runs are cut to a few steps of short completions. What a cell says of a run's success is
then not true, so an AssertionError is no failure here; what mixes devices, or is not there on a
GPU, raises others.
"""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("[0-9]*.ipynb"))
AT_MOST = {
    "steps": 3,
    "eval_problems": 4,
    "questions": 16,
    "eval_samples": 8,
    "eval_every": 2,
    "max_tokens": 32,
    "sampler_staleness": 1,
}
TAUGHT = 60  # steps of a warm start, so that some completions earn more than others


@pytest.fixture
def short_runs_on_the_device(monkeypatch, tmp_path):
    from rlcourse.policy import loading
    from rlcourse.training.recipe import Recipe

    finish = Recipe.__post_init__

    def cut(self):
        limits = AT_MOST | ({"steps": TAUGHT} if self.algorithm == "sft" else {})
        for name, most in limits.items():
            object.__setattr__(self, name, min(getattr(self, name), most))
        finish(self)

    monkeypatch.setattr(Recipe, "__post_init__", cut)
    monkeypatch.setattr(loading, "is_small", lambda model: False)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson(lesson, short_runs_on_the_device):
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    notebook = json.loads((ROOT / "solutions" / f"{lesson}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    wrong = []
    for cell in cells:
        done = shell.run_cell(cell, silent=True)
        error = done.error_before_exec or done.error_in_exec
        if error is not None and not isinstance(error, AssertionError):
            wrong.append(f"{type(error).__name__}: {error}\nin the cell\n{cell[:400]}")
    assert not wrong, "\n\n".join(wrong)
