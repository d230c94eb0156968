"""Lesson 12: its worked numbers, what a gap shows and does not, and what bfloat16 loses."""

from dataclasses import replace

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import Policy
from rlcourse.tasks import load_task

TRAINER = torch.tensor([[0.6, 0.3, 0.1]], dtype=torch.float64)
SAMPLER = torch.tensor([[0.1, 0.3, 0.6]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("cap", "mode", "weights", "mean"),
    [
        (9.0, "truncate", [6, 1, 1 / 6], 1.0),
        (2.0, "truncate", [2, 1, 1 / 6], 0.6),
        (2.0, "mask", [0, 1, 1 / 6], 0.4),
    ],
)
def test_the_three_tokens_of_section_2(cap, mode, weights, mean):
    found = A.truncated_weights(TRAINER.log(), SAMPLER.log(), torch.ones(1, 3), cap, mode)
    assert found[0].tolist() == pytest.approx(weights)
    assert (found * SAMPLER).sum().item() == pytest.approx(mean)


def test_there_is_a_best_cap_between_its_ends_where_policies_are_far_apart():
    """Section 2's exact errors: 1.5 has its least at 10, .145 for .168 at 100 and .304 at 1."""
    g, caps = torch.Generator().manual_seed(0), (1.0, 10.0, 100.0)
    errors = torch.zeros(3)
    for _ in range(200):
        logits = 2 * torch.randn(1, 50, generator=g)
        sampler = logits.log_softmax(1)
        trainer = (logits + 1.5 * torch.randn(1, 50, generator=g)).log_softmax(1)
        f = (torch.arange(50) < 25).float()
        for i, cap in enumerate(caps):
            w = A.truncated_weights(trainer, sampler, torch.ones(1, 50), cap)[0]
            p = sampler.exp()[0]
            mean, square = p @ (w * f), p @ (w * f) ** 2
            errors[i] += (mean - trainer.exp()[0] @ f) ** 2 + (square - mean**2) / 64
    assert errors[1] < 0.9 * errors[2] < 0.9 * errors[0]  # .75 and .30 of it


@pytest.fixture(scope="module")
def policy():
    return Policy.load("tiny", device="cpu")


def test_a_gap_shows_precision_and_temperature_and_is_blind_to_filters(policy):
    prompts = [policy.format_prompt(p.question) for p in load_task("word_problems").train[:8]]
    rounded = policy.clone()
    rounded.model.bfloat16()

    def gap(sampler, **options):
        generator = torch.Generator().manual_seed(0)
        rollouts = sampler.sample(prompts, group_size=4, generator=generator, **options)
        with torch.no_grad():
            scored = policy.logprobs(replace(rollouts, temperature=1.0))
        log_ratio = scored - rollouts.old_logprobs.float()
        return log_ratio[rollouts.mask].abs().mean().item()

    # Prints 2e-7 and less, .003 and .05: a factor of ten and more between any two of them.
    assert gap(policy) < 1e-5 and gap(policy, top_p=0.9) < 1e-5
    assert 1e-4 < gap(rounded) < gap(policy, temperature=0.8) / 3


def test_a_thousandth_is_lost_next_to_one_and_neighbors_are_where_the_text_has_them():
    one = torch.ones(1).bfloat16()
    assert torch.equal(one + 0.003, one)
    between = torch.arange(1, 2, 1 / 1024).bfloat16().unique()
    assert len(between) - 1 == 128  # 2 itself is among them, by rounding
    near = torch.tensor(0.02).bfloat16()
    assert torch.nextafter(near, torch.tensor(1.0).bfloat16()) - near == 2**-13
    assert round(2**-14 / 1e-6) == 61


def test_the_share_that_one_step_changes_follows_from_the_weights(policy):
    """AdamW's first step is lr for every weight: those move whose neighbor is nearer than 2 lr."""
    lr, student = 3e-5, policy.clone()
    student.model.bfloat16()
    before = [w.detach().clone() for w in student.parameters()]
    for w in student.parameters():
        w.grad = torch.ones_like(w)
    torch.optim.AdamW(student.parameters(), lr=lr, weight_decay=0.0).step()
    weights = torch.cat([w.detach().flatten() for w in policy.parameters()]).abs()
    spacing = 2.0 ** (weights.clamp(min=1e-30).log2().floor() - 7)
    predicted = (spacing < 2 * lr).float().mean().item()
    found = A.changed_share(before, student.parameters())
    assert found == pytest.approx(predicted, abs=0.01) and 0.03 < found < 0.2
