"""The example that is shown is the smallest that shows the fault, and the same one every time."""

import pytest
import torch

from rlcourse import check
from rlcourse.algorithms import grpo_loss
from rlcourse.checks.asking.calling import call_all
from rlcourse.checks.telling import cutting, shrinking
from rlcourse.checks.telling.show import size_of
from rlcourse.exercises import get


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def mistake(exercise, words):
    return next(m for m in get(exercise).mistakes if words in m.name)


@pytest.mark.parametrize(
    ("exercise", "words", "most"),
    [
        ("ppo_clip_loss", "the mean of each completion's mean", 16),
        ("ppo_clip_loss", "gradient flows into the advantages", 5),
        ("grpo_loss", "gradient flows into the old log-probs", 5),
        ("gae", "runs through the padding", 6),
        ("group_normalized_advantages", "the mean of the whole batch", 9),
    ],
)
def test_the_example_is_small_and_shows_the_same_fault(exercise, words, most):
    made = mistake(exercise, words)
    result = check(made.implementation, exercise=exercise, seed=0)
    assert result.mistake == made.name
    case = result.example.case
    assert result.example.smaller and f"cut down from “{case.label}”" in result.message
    assert size_of(case.arguments) <= most
    reference = get(exercise).reference
    outcomes = [call_all(fn, (case,))[0] for fn in (reference, made.implementation)]
    kinds = {d.kind for d in result.example.differences}
    if "value" in kinds:
        assert str(outcomes[0].value) != str(outcomes[1].value)
    else:
        assert kinds == {"leak"}
        assert outcomes[0].gradients.keys() == outcomes[1].gradients.keys()


def test_the_search_ends_after_so_many_tries():
    calls = 0

    def slightly_wrong(**arguments):
        nonlocal calls
        calls += 1
        loss = grpo_loss(**arguments)
        return loss if arguments["mask"].all() else loss + 1e-3 * torch.rand(()).item() + 1e-3

    check(slightly_wrong, exercise="grpo_loss", seed=0)
    cases = len(get("grpo_loss").draw_cases(0))
    assert calls <= 2 * cases + shrinking.MOST_TRIES + 1


def test_a_row_that_has_tokens_keeps_one_and_a_distribution_stays_one():
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]) > 0
    probabilities = torch.tensor([[0.5, 0.2, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
    arguments = {"mask": mask, "x": torch.ones(2, 4)}
    cuts = list(cutting.cuts(arguments))
    assert cuts and all(cut["mask"].any(1).all() for cut in cuts)
    assert {cut["mask"].shape for cut in cuts} == {(1, 4), (2, 2), (2, 3)}
    for cut in cutting.cuts({"p": probabilities}):
        assert cutting._is_distribution(cut["p"])
