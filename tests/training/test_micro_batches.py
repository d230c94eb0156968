"""Micro-batches change memory and nothing else, whatever the loss."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from echo import by_length, echo_policy, echo_recipe, echo_task, having

from rlcourse.algorithms import group_normalized_advantages
from rlcourse.machine import is_out_of_memory
from rlcourse.training import Pair, train, write_pairs
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.online.objective import Objective
from rlcourse.training.recipes.methods import METHODS

GROUP_LOSSES = ["reinforce", "grpo", "dr_grpo", "dapo", "gspo", "cispo"]


@pytest.fixture
def exact():
    """A policy in float64, so that equal means equal."""
    return echo_policy().double()


@pytest.fixture
def batch(exact):
    """Eight completions, two of each of four prompts, some padded, some without a signal."""
    generator = torch.Generator().manual_seed(3)
    rollouts = exact.sample(["1?", "7 7?", "3 3 3?", "12?"], 2, 9, generator=generator)
    # Cut by hand: one draw in eighty has no row that ends early by itself.
    lengths = torch.tensor([9, 4, 7, 9, 2, 9, 5, 1])
    early = torch.arange(rollouts.mask.shape[1]) < lengths[:, None]
    rollouts = replace(rollouts, mask=rollouts.mask & early)
    assert not rollouts.mask.all() and not rollouts.prompt_mask.all()
    rewards = torch.tensor([1.0, 0, 1, 1, 0, 1, 0, 0], dtype=torch.float64)
    advantages = group_normalized_advantages(rewards, 2)
    moved = rollouts.old_logprobs + 0.3 * torch.randn(rollouts.mask.shape, generator=generator)
    return replace(rollouts, advantages=advantages, old_logprobs=moved, ref_logprobs=moved - 0.1)


def gradient(policy):
    return torch.cat([p.grad.flatten() for p in policy.parameters()])


def loss_on(batch, algorithm="grpo", **settings):
    recipe = echo_recipe(algorithm, **settings)
    return partial(Objective(METHODS[algorithm], recipe).loss, batch=batch)


def learned(policy, batch, algorithm, size, beta=0.0, fresh=False):
    """Loss, log-probs, clip fraction and gradient of one update, read `size` rows at a time."""
    loss_of = loss_on(batch, algorithm, **having(algorithm, beta=beta))
    read = partial(shared_prompt_logprobs, policy)
    found = MicroBatches(policy, size).backward(read, batch, loss_of, fresh)
    return found.loss, found.values, *found.others, gradient(policy)


@pytest.mark.parametrize("algorithm", GROUP_LOSSES)
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("size", [1, 3])
def test_eight_rows_equal_eight_times_one(exact, batch, algorithm, beta, size):
    whole = learned(exact, batch, algorithm, None, beta)
    pieces = learned(exact, batch, algorithm, size, beta)
    assert whole[3].norm() > 1e-3
    for one, other in zip(whole, pieces, strict=True):
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-8)


class Cramped:
    """Reads at most `room` rows at once, and says about more what a GPU would."""

    def __init__(self, policy, room, error=torch.OutOfMemoryError):
        self.policy, self.room, self.error, self.sizes = policy, room, error, []

    def __call__(self, piece):
        self.sizes.append(len(piece))
        if len(piece) > self.room:
            raise self.error("CUDA out of memory. Tried to allocate 2 GiB")
        return self.policy.logprobs(piece)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError])
def test_out_of_memory_halves_the_rows_until_they_fit_and_says_so(exact, batch, capsys, error):
    loss_of = loss_on(batch)
    MicroBatches(exact).backward(exact.logprobs, batch, loss_of)
    expected = gradient(exact)
    learning, read = MicroBatches(exact), Cramped(exact, 2, error)
    learning.backward(read, batch, loss_of)
    torch.testing.assert_close(gradient(exact), expected, rtol=1e-6, atol=1e-9)
    assert read.sizes[:3] == [8, 4, 2] and learning.rows == 2
    said = capsys.readouterr().err
    assert "out of memory with 8 rows at once; continuing with 4" in said
    read.sizes.clear()
    learning.backward(read, batch, loss_of)
    assert max(read.sizes) == 2  # what was learned about the memory is kept


def test_where_not_even_one_row_fits_the_error_goes_on(exact, batch):
    read = Cramped(exact, 0)
    with pytest.raises(torch.OutOfMemoryError):
        MicroBatches(exact).read(read, batch)
    assert read.sizes == [8, 4, 2, 1]


def test_other_errors_are_not_taken_for_a_lack_of_memory(exact, batch):
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        MicroBatches(exact, 4).read(
            Cramped(exact, 0, lambda text: RuntimeError("shape mismatch")), batch
        )


def weights(run):
    module = run.policy or run.reward_model.reader
    return torch.cat([p.detach().flatten() for p in module.parameters()])


PAIRS = [Pair(str(n), f"#### {n}", f"#### {(n + 1) % 10}{n}") for n in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sorted(METHODS))
def test_every_algorithm_trains_alike_with_any_micro_batch(algorithm, tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", PAIRS)
    settings = {"num_iterations": 2, "beta": 0.1, "eval_problems": 0, "lr": 1e-3, "minibatches": 2}
    if METHODS[algorithm].compares_pairs:
        settings["pairs"] = str(tmp_path / "pairs.jsonl")
    start, ends = echo_policy().double(), []
    for size in (None, 3):
        recipe = echo_recipe(algorithm, micro_batch=size, steps=3, **having(algorithm, **settings))
        options = {"task": echo_task(), "reward": by_length, "progress": False}
        if algorithm == "distill":
            options["teacher"] = echo_policy(1).double()
        run = train(recipe, policy=start, **options)
        ends.append(weights(run))
    if run.policy:
        assert (ends[0] - torch.cat([p.flatten() for p in start.parameters()])).norm() > 1e-3
    torch.testing.assert_close(ends[1], ends[0], rtol=1e-5, atol=1e-6)


def test_pieces_report_what_was_read_and_not_what_was_taken_for_granted(exact, batch):
    """The gap between sampler and trainer is to be seen in pieces, too."""
    seen = learned(exact, batch, "reinforce", 3, fresh=True)[1]
    read = batch.mask & (batch.advantages != 0)[:, None]
    expected = exact.logprobs(batch).detach()
    torch.testing.assert_close(seen[read], expected[read])
    assert (batch.old_logprobs - expected)[read].abs().max() > 0.1
