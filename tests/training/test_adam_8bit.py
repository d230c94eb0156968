"""AdamW with averages in 8 bits: it trains, resumes to the last bit, and takes what a plan says."""

import pytest
import torch
from echo import weights

from rlcourse.planning.memory import average_bytes
from rlcourse.planning.work import work_of
from rlcourse.policy import Policy
from rlcourse.training import Recipe
from rlcourse.training.networks.optimizer import adamw

SIZE = {"steps": 4, "prompts_per_step": 4, "group_size": 4, "max_tokens": 12, "warmup": 0}
SIZE |= {"eval_problems": 0, "checkpoint_every": 2, "optimizer": "adamw_8bit"}


def recipe(**changes):
    return Recipe.of({"algorithm": "grpo"} | SIZE | changes)


@pytest.fixture(scope="module")
def start():
    pytest.importorskip("bitsandbytes")
    return Policy.load("tiny", device="cpu")


def test_a_step_is_nearly_that_of_exact_averages(start):
    moves = []
    for optimizer in ("adamw", "adamw_8bit"):
        policy = start.clone()
        taken = adamw(recipe(optimizer=optimizer, lr=1e-3), policy)
        generator = torch.Generator().manual_seed(0)
        for _ in range(5):
            for parameter in policy.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=generator)
            taken.step()
        moves.append(weights(policy) - weights(start))
    exact, rounded = moves
    similarity = torch.nn.functional.cosine_similarity(exact, rounded, dim=0)
    assert 0.95 < similarity < 1  # .99


def test_a_plan_counts_what_the_averages_take(start):
    policy = start.clone()
    optimizer = adamw(recipe(), policy)
    large = [p for p in policy.parameters() if p.numel() >= 4096]
    for parameter in policy.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    # The table of the 256 values is one for all.
    found = sum(
        optimizer.state[p][name].nbytes
        for p in large
        for name in ("state1", "state2", "absmax1", "absmax2")
    )
    numbers = sum(p.numel() for p in large)
    assert found == pytest.approx(2 * average_bytes(work_of(recipe())) * numbers, rel=0.01)
    assert numbers > 0.9 * sum(p.numel() for p in policy.parameters())
