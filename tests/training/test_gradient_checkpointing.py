"""Gradient checkpointing keeps less and computes the same."""

import pytest
import torch
from echo import echo_policy, echo_recipe, echo_task

from rlcourse.errors import UserError
from rlcourse.training import train
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.gradient_checkpointing import (
    enable_gradient_checkpointing,
    uses_gradient_checkpointing,
)


def kept_bytes(policy, rollouts):
    """Bytes that the graph of a forward pass holds on to, weights not counted."""
    own = {p.data_ptr() for p in policy.parameters()}
    kept = {}

    def pack(tensor):
        if tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logprobs = shared_prompt_logprobs(policy, rollouts)
    logprobs.sum().backward()
    return sum(kept.values()), torch.cat([p.grad.flatten() for p in policy.parameters()])


@pytest.fixture
def rollouts(policy):
    return policy.sample(["1 2 3?", "7?"], 8, 20, generator=torch.Generator().manual_seed(0))


def test_less_is_kept_and_the_gradient_is_the_same(policy, rollouts):
    plain, expected = kept_bytes(policy, rollouts)
    policy.zero_grad()
    enable_gradient_checkpointing(policy.model)
    lean, found = kept_bytes(policy, rollouts)
    assert lean < 0.7 * plain
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_dropout_stays_off(policy, rollouts):
    policy.model.config.attention_dropout = 0.5
    for layer in policy.model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    enable_gradient_checkpointing(policy.model)
    one, other = (shared_prompt_logprobs(policy, rollouts) for _ in range(2))
    torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert not any(module.training for module in policy.model.modules())


def test_without_gradient_nothing_is_recomputed_and_sampling_has_its_cache(policy, rollouts):
    enable_gradient_checkpointing(policy.model)
    assert uses_gradient_checkpointing(policy.model)
    with torch.no_grad():
        assert not uses_gradient_checkpointing(policy.model)
    again = policy.sample(["1 2 3?", "7?"], 8, 20, generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.tokens, rollouts.tokens)


@pytest.mark.parametrize("recompute", [False, True])
def test_no_rounded_copies_of_all_weights_undo_what_it_saves(recompute, monkeypatch):
    kept = []

    def reading(policy, batch):
        kept.append(torch.is_autocast_cache_enabled())
        return shared_prompt_logprobs(policy, batch)

    monkeypatch.setattr("rlcourse.training.online.objective.shared_prompt_logprobs", reading)
    settings = {"gradient_checkpointing": recompute, "dtype": "bfloat16", "eval_problems": 0}
    options = {"policy": echo_policy(), "task": echo_task(), "progress": False}
    train(echo_recipe("grpo", **settings), **options)
    assert kept and all(k != recompute for k in kept)


def test_a_model_that_cannot_recompute_is_refused():
    with pytest.raises(UserError, match="gradient_checkpointing=false"):
        enable_gradient_checkpointing(torch.nn.Linear(2, 2))
