"""Log-probs of a large vocabulary, computed in pieces: the same values and gradients, less kept."""

import pytest
import torch
from small_models import ARCHITECTURES, left_padded_prompts, small_model, small_tokenizer

from rlcourse.policy import Policy, large_vocabulary


def scored(policy, rollouts, entropy):
    """Values and the gradient of a weighted sum of them."""
    policy.zero_grad()
    found = policy.logprobs_and_entropy(rollouts) if entropy else (policy.logprobs(rollouts),)
    weights = torch.linspace(-1, 1, rollouts.mask.numel(), dtype=found[0].dtype)
    sum((x * weights.view_as(x)).sum() for x in found).backward()
    gradients = [p.grad.flatten().clone() for p in policy.parameters() if p.grad is not None]
    return torch.stack([x.detach() for x in found]), torch.cat(gradients)


@pytest.fixture(autouse=True)
def as_few_as_said(monkeypatch):
    monkeypatch.setattr(large_vocabulary, "most_at_once", lambda head: large_vocabulary.AT_ONCE)


@pytest.fixture
def rollouts_of():
    def sample(policy):
        prompts, mask = left_padded_prompts()
        texts = [
            " ".join(f"w{t}" for t in row[m].tolist()) for row, m in zip(prompts, mask, strict=True)
        ]
        generator = torch.Generator().manual_seed(0)
        return policy.sample(texts, 3, 13, temperature=0.8, generator=generator)

    return sample


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("entropy", [False, True])
@pytest.mark.parametrize("positions", [14, 31])  # a row, two rows
def test_values_and_gradients_are_those_of_all_logits_at_once(
    architecture, entropy, positions, rollouts_of, monkeypatch
):
    policy = Policy(small_model(architecture, dtype=torch.float64), small_tokenizer())
    rollouts = rollouts_of(policy)
    values, gradient = scored(policy, rollouts, entropy)
    monkeypatch.setattr(large_vocabulary, "AT_ONCE", positions * 40)
    in_pieces, its_gradient = scored(policy, rollouts, entropy)
    torch.testing.assert_close(in_pieces, values, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(its_gradient, gradient, rtol=1e-9, atol=1e-12)
    with torch.no_grad():
        without_a_graph = policy.logprobs(rollouts)
    torch.testing.assert_close(without_a_graph, values[0], rtol=1e-12, atol=1e-12)


def test_rounded_weights_add_up_their_gradients_unrounded(rollouts_of, monkeypatch):
    """Under autocast the output layer's gradient is no worse for being made of many pieces."""
    policy = Policy(small_model("llama", tie_word_embeddings=False), small_tokenizer())
    rollouts = rollouts_of(policy)
    head, errors = policy.model.lm_head.weight, []
    with torch.autocast("cpu", torch.bfloat16, enabled=False):
        scored(policy, rollouts, False)
        exact = head.grad.clone()
    for positions in (10**6, 3):
        monkeypatch.setattr(large_vocabulary, "AT_ONCE", positions * 40)
        with torch.autocast("cpu", torch.bfloat16):
            scored(policy, rollouts, False)
        errors.append((head.grad - exact).norm() / exact.norm())
    assert errors[1] < 1.5 * errors[0]  # .02 and .02; with a shared rounded copy more
