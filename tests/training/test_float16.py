"""float16: the loss is scaled so that small gradients survive, and what overflows is left out."""

from functools import partial

import pytest
import torch
from echo import by_length, having, quiet, weights

from rlcourse.errors import UserError
from rlcourse.training import Pair, write_pairs
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.networks.optimizer import autocast, loss_scaler, optimizer_step

CPU = torch.device("cpu")


def gradients(policy):
    return torch.cat([p.grad.flatten() for p in policy.parameters()])


@pytest.fixture
def scaler(recipe):
    return loss_scaler(recipe(dtype="float16"), CPU)


@pytest.fixture
def batch(policy):
    generator = torch.Generator().manual_seed(0)
    return policy.sample(["1?", "22?"], group_size=3, max_tokens=6, generator=generator)


def mean_of(logprobs, mask, factor=1.0):
    return (-factor * (logprobs * mask).sum() / mask.sum(),)


@pytest.mark.parametrize("rows", [None, 2])
def test_a_scaled_gradient_is_the_gradient_times_a_power_of_two(policy, batch, scaler, rows):
    read, loss_of = partial(shared_prompt_logprobs, policy), partial(mean_of, mask=batch.mask)
    plain = MicroBatches(policy, rows).backward(read, batch, loss_of)
    expected = gradients(policy)
    scaled = MicroBatches(policy, rows, scaler).backward(read, batch, loss_of)
    assert torch.equal(gradients(policy), expected * 2**14)
    assert torch.equal(scaled.loss, plain.loss)  # what is reported is not scaled


def test_small_gradients_survive(policy, batch, scaler):
    """Without a scale they are 0 in float16."""
    read = partial(shared_prompt_logprobs, policy)
    loss_of = partial(mean_of, mask=batch.mask, factor=1e-7)
    found = {}
    for name, by in (("plain", None), ("scaled", scaler)):
        with autocast(CPU, "float16"):
            MicroBatches(policy, None, by).backward(read, batch, loss_of)
        found[name] = gradients(policy)
    MicroBatches(policy).backward(read, batch, loss_of)
    exact = gradients(policy)
    # Measured: 1 and .03.
    assert (found["plain"] - exact).norm() > 0.5 * exact.norm()
    assert (found["scaled"] / 2**14 - exact).norm() < 0.1 * exact.norm()


def test_what_overflows_moves_nothing_and_halves_the_scale(policy, recipe, scaler):
    settings = recipe(dtype="float16")
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2, fused=True)
    before, loss = weights(policy), torch.tensor(1.0)

    def with_gradients(value):
        scaler.scale(loss)  # what a backward pass begins with
        for p in policy.parameters():
            p.grad = torch.full_like(p, value)

    with_gradients(torch.inf)
    assert optimizer_step([loss], optimizer, settings, 0, scaler).item() == 0
    assert torch.equal(weights(policy), before) and scaler.get_scale() == 2**13
    with_gradients(2.0**13)
    length = optimizer_step([loss], optimizer, settings, 1, scaler)
    assert length.item() == pytest.approx(len(before) ** 0.5)  # of the gradient, which is 1
    assert not torch.equal(weights(policy), before)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["dpo", "grpo", "ppo", "reward_model", "sft"])
def test_every_kind_of_algorithm_trains_in_float16(algorithm, tmp_path, policy, task, recipe):
    write_pairs(tmp_path / "pairs.jsonl", [Pair(str(n), f"#### {n}", f"### {n}") for n in range(9)])
    own = having(algorithm, beta=0.05, pairs=str(tmp_path / "pairs.jsonl"))
    found = {}
    for dtype in ("float32", "float16"):
        settings = recipe(algorithm, dtype=dtype, steps=3, micro_batch=3, eval_problems=0, **own)
        run = quiet(settings, policy=policy, task=task, reward=by_length)
        found[dtype] = run.metrics[0]
        assert all(torch.tensor(list(m.values())).isfinite().all() for m in run.metrics)
        trained = run.policy or run.reward_model.reader
        assert all(p.isfinite().all() for p in trained.parameters())
        assert all(m["weights_changed"] > 0 for m in run.metrics if "weights_changed" in m)
    if algorithm in ("sft", "dpo", "reward_model"):  # the others' draws may differ by rounding
        for name in ("loss", "grad_norm"):
            assert found["float16"][name] == pytest.approx(found["float32"][name], rel=0.05)


def test_a_step_that_makes_its_own_updates_is_refused(policy, task, recipe):
    with pytest.raises(UserError, match="step= makes its own updates"):
        quiet(recipe(dtype="float16"), policy=policy, task=task, step=lambda policy: 0.0)
