"""Lesson 10: its probes, and the runs that it shows and grades with."""

import json
from collections import Counter

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.courses import shipped
from rlcourse.tasks.recorded import SHOWN, recorded_runs
from rlcourse.training.faults.catalog import FAULTS

HIDDEN = shipped().lesson("10").directory / "hidden_runs.json"
FILES = {"shown": SHOWN, "hidden": HIDDEN}
ALL = [pair for path in FILES.values() for pair in recorded_runs(path)]
ALIKE = ("masked_eos", "padding_counted", "wrong_grouping", "dropout", "kl_sign")


def test_a_row_that_ends_has_three_tokens():
    tokens = torch.tensor([[7, 9, 2, 0]])
    for counted, wanted in (([1, 1, 1, 0], (0, 0)), ([1, 1, 0, 0], (1, 0)), ([1, 1, 1, 1], (0, 1))):
        weights = torch.tensor([counted]).double()
        found = A.probe_mask(lambda x, w=weights: (w * x).sum(), tokens, 2)
        assert tuple(count.item() for count in found) == wanted


@pytest.mark.parametrize(
    "estimator",
    [A.group_normalized_advantages, A.group_mean_advantages, A.leave_one_out_advantages],
)
def test_estimators_of_the_course_pass_the_probe(estimator):
    assert A.probe_equal_rewards(estimator, 16, 8) == 0


@pytest.mark.parametrize("name", FILES)
def test_every_recorded_run_is_diagnosed(name):
    for run, cause in recorded_runs(FILES[name]):
        assert A.diagnose(run) == cause


def test_recorded_runs_are_few_enough_and_no_two_files_share_one():
    kinds = {
        name: Counter(cause for _, cause in recorded_runs(path)) for name, path in FILES.items()
    }
    assert kinds["shown"].keys() == kinds["hidden"].keys() == {"healthy", *kinds["shown"]}
    assert kinds["shown"].keys() - {"healthy"} <= FAULTS.keys()
    assert all(kinds["hidden"][cause] >= count for cause, count in kinds["shown"].items())
    seeds = {
        name: {run["seed"] for run in json.loads(path.read_text("utf-8"))}
        for name, path in FILES.items()
    }
    assert not seeds["shown"] & seeds["hidden"]
    assert sum(path.stat().st_size for path in FILES.values()) < 500_000


def test_a_setting_is_no_clue():
    """A healthy run has the settings of each broken one, but a max_tokens that is the fault."""
    names = ("temperature", "group_size", "num_iterations", "lr", "beta", "clip")
    settings = [({name: run[name] for name in names}, cause) for run, cause in ALL]
    healthy = [setting for setting, cause in settings if cause == "healthy"]
    assert all(setting in healthy for setting, cause in settings)


def test_five_broken_runs_reach_what_the_healthy_one_reaches():
    last = {cause: run["reward/mean"][-6:].mean() for run, cause in reversed(recorded_runs())}
    first = {cause: run["reward/mean"][:3].mean() for run, cause in reversed(recorded_runs())}
    for cause in ALIKE:
        assert last[cause] > first[cause] + 0.2
        assert abs(last[cause] - last["healthy"]) < 0.15  # dropout .08, the others .02


def test_exact_signals_are_exact_in_every_healthy_run():
    for run, cause in ALL:
        if cause == "healthy":
            assert (run["loss_tokens"].nan_to_num(1.0) == 1).all()
            assert run["advantages/equal_rewards"].max() == 0
            assert run["gap/mean"].max() < 1e-5 and run["weights_changed"].min() > 0.9


def test_a_single_large_number_occurs_in_healthy_runs():
    largest = [run["ratio/max"].max() for run, cause in ALL if cause == "healthy"]
    assert max(largest) > 2 and min(largest) < 1.01
