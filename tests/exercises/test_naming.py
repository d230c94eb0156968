"""The name of a wrong answer that has several faults, or numbers that are not quite known."""

import pytest
import torch

from rlcourse import check


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def test_ordinary_cases_speak_first_and_a_crash_on_an_extreme_one_after():
    def weighted_scores(logits):
        if logits.max() > 100:
            raise RuntimeError("no")
        return logits.softmax(0).square().diag().exp()

    message = check(weighted_scores, seed=0).message
    assert "The values differ" in message and "Also, it raises RuntimeError" in message
    assert message.index("The values differ") < message.index("Also, it raises")


@pytest.mark.parametrize("eps", [0.0, 1e-8, 1e-4])
def test_division_by_the_spread_is_named_with_any_small_constant(eps):
    def group_mean_advantages(rewards, group_size):
        x = rewards.view(-1, group_size)
        spread = x.std(1, keepdim=True) + eps
        return ((x - x.mean(1, keepdim=True)) / spread).flatten()

    result = check(group_mean_advantages, seed=0)
    assert result.mistake == "the advantage divided by the group's standard deviation"


def test_loss_is_named_though_the_clip_fraction_was_made_from_the_same_mistake():
    from rlcourse.algorithms import importance_weights, masked_mean

    def ppo_clip_loss(logprobs, old_logprobs, advantages, mask, clip=0.2):
        r = importance_weights(logprobs, old_logprobs, mask)
        a = (advantages[:, None] if advantages.dim() == 1 else advantages).detach()
        c = r.clamp(1 - clip, 1 + clip)
        share = masked_mean((c < r).to(r.dtype), mask)
        return -masked_mean(torch.minimum(r, c) * a, mask), share

    result = check(ppo_clip_loss, seed=0)
    assert result.mistake == "A · min(ratio, clip(ratio))"
    assert "Your first result is that of" in result.message


def test_gradients_left_behind_are_called_so():
    def fisher_vector_product(kl_fn, parameters, vector, damping=0.0):
        parameters = list(parameters)
        kl_fn().backward(create_graph=True)
        flat = torch.cat([p.grad.flatten() for p in parameters])
        products = torch.autograd.grad(flat @ vector, parameters)
        for p in parameters:
            p.grad = torch.ones_like(p)
        return torch.cat([product.flatten() for product in products]) + damping * vector

    result = check(fisher_vector_product, seed=0)
    assert not result.passed and "leaves gradients behind in `.grad`" in result.message


def half_known(x, mask, dim=None):
    """Without `dim` padding counts; with it something is wrong that nobody declared."""
    if dim is None:
        return (x * mask).mean()
    kept = (x * mask).sum(dim)
    return kept / mask.sum(dim).clamp(min=1) + 0.01 * kept.detach().cos()


def test_a_mistake_that_explains_some_cases_is_named_for_these_and_no_others():
    result = check(half_known, "masked_mean", seed=0)
    first, then, *_ = result.sentences
    assert result.mistake is None and result.half
    assert f"of the {result.cases - result.agreeing} cases that fail, your numbers are" in first
    assert result.half in first and "The others, such as" in then
    assert "dim" in result.example.case.arguments and "values differ" not in result.message
