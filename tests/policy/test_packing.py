"""Rows read one after another have the log-probs and the gradient of rows side by side."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from echo import by_length, quiet, weights
from small_models import left_padded_prompts, small_model, small_tokenizer

from rlcourse.policy import Policy, large_vocabulary, sample_completions
from rlcourse.policy.lora import add_adapters
from rlcourse.training.networks import packing
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.gradient_checkpointing import enable_gradient_checkpointing
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.networks.packing import Texts, can_be_packed, packed_logprobs

KINDS = ["llama", "qwen2", "qwen3", "gpt2", "mistral"]


def sampled(kind, group_size=6, dtype=torch.float64, **changes):
    """A policy, and completions of several lengths."""
    model = small_model(kind, dtype=dtype, initializer_range=0.1, **changes)
    policy = Policy(model, small_tokenizer())
    settings = {"eos_ids": policy.eos_ids, "pad_id": 0, "max_tokens": 40}
    generator = torch.Generator().manual_seed(0)
    batch = sample_completions(
        model, *left_padded_prompts(), group_size=group_size, generator=generator, **settings
    )
    assert len(set(batch.mask.sum(1).tolist())) > 3
    return policy, replace(batch, temperature=0.7)


def gradients(policy, logprobs):
    """Of a sum that weighs every token otherwise."""
    shape = logprobs.shape
    scale = torch.randn(shape, dtype=logprobs.dtype, generator=torch.Generator().manual_seed(1))
    trained = [p for p in policy.parameters() if p.requires_grad]
    found = torch.autograd.grad((scale * logprobs).sum(), trained, allow_unused=True)
    return torch.cat([g.flatten() for g in found if g is not None])


def assert_the_same(policy, batch, atol=1e-5):
    plain, packed = policy.logprobs(batch), packed_logprobs(policy, batch)
    torch.testing.assert_close(packed, plain, rtol=0, atol=atol)
    one, other = gradients(policy, packed), gradients(policy, plain)
    assert (one - other).norm() < 1e-4 * other.norm()  # norms compute in float32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("places", [2048, 60, 1])
def test_neither_logprobs_nor_gradient_change(kind, places, monkeypatch):
    monkeypatch.setattr(packing, "PLACES", places)
    policy, batch = sampled(kind)
    assert can_be_packed(policy)
    assert_the_same(policy, batch)
    order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(1))
    assert_the_same(policy, batch.rows(order[:17]))


@pytest.mark.parametrize("change", ["eager", "checkpointing", "adapters", "pieces of logits"])
def test_nor_do_they_with_other_settings(change, monkeypatch):
    # In float64 the model's own eager attention is NaN on padding.
    policy, batch = sampled("qwen2", dtype=torch.float32 if change == "eager" else torch.float64)
    if change == "eager":
        policy.model.set_attn_implementation("eager")
    if change == "checkpointing":
        enable_gradient_checkpointing(policy.model)
    if change == "adapters":
        pytest.importorskip("peft")
        add_adapters(policy, rank=2, alpha=4)
        policy.double()
    if change == "pieces of logits":
        monkeypatch.setattr(large_vocabulary, "AT_ONCE", 40 * 30)
        policy.model.lm_head.weight.requires_grad_(False)
    assert_the_same(policy, batch)


def test_nothing_is_read_twice_or_in_vain():
    _, batch = sampled("llama")
    texts = Texts.of(batch)
    prompts = sum(mask.sum() for mask in batch.prompt_mask[:: batch.group_size])
    assert texts.tokens.shape == (1, batch.mask.sum() + prompts)
    assert texts.tokens.numel() < 0.8 * (batch.prompt_mask.numel() + batch.mask.numel())
    assert len(texts.row) == batch.mask.sum()


def test_several_texts_are_about_as_long(monkeypatch):
    monkeypatch.setattr(packing, "PLACES", 100)
    _, batch = sampled("llama", group_size=16)
    texts = Texts.of(batch)
    assert len(texts.tokens) > 3
    used = (texts.prompt >= 0).sum(1)
    assert used.max() < 160 and used.sum() > 0.7 * texts.tokens.numel()


@pytest.mark.parametrize("autocast", [False, True])
def test_a_text_sees_nothing_of_the_others(autocast):
    """Other rows may be whatever they like."""
    policy, batch = sampled("qwen2", dtype=torch.float32)
    other = batch.tokens.clone()
    other[1:] = other[1:].roll(3, dims=1).clamp(min=3)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        one = packed_logprobs(policy, batch)
        two = packed_logprobs(policy, replace(batch, tokens=other))
    assert torch.equal(one[0], two[0]) and not torch.equal(one[1:], two[1:])


def test_models_that_cannot_are_read_side_by_side():
    policy, batch = sampled("mistral_sliding")
    policy.packing = True
    assert not can_be_packed(policy)
    found = shared_prompt_logprobs(policy, batch)
    torch.testing.assert_close(found, policy.logprobs(batch), rtol=0, atol=1e-5)
    student, _ = sampled("llama")
    student.token_logprobs = lambda logits, tokens, temperature: None
    assert not can_be_packed(student)


def test_micro_batches_are_packed_each(monkeypatch):
    policy, batch = sampled("llama")
    read = partial(shared_prompt_logprobs, policy)
    scale = torch.randn(batch.mask.shape, generator=torch.Generator().manual_seed(1))
    found = {}
    for packed in (False, True):
        policy.packing = packed
        MicroBatches(policy, 5).backward(read, batch, lambda x: ((x * scale).sum(),))
        found[packed] = torch.cat([p.grad.flatten() for p in policy.parameters()])
    assert (found[True] - found[False]).norm() < 1e-4 * found[False].norm()


def test_a_run_with_packing_is_the_run_without(policy, task, recipe):
    settings, options = recipe(steps=3, eval_problems=0), {"policy": policy, "task": task}
    plain, packed = (
        quiet(settings.but(packing=on), reward=by_length, **options) for on in (False, True)
    )
    assert any(m["grad_norm"] > 0 for m in plain.metrics)
    torch.testing.assert_close(weights(packed.policy), weights(plain.policy), rtol=0, atol=1e-4)
