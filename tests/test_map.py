"""course/map.md: its coefficients are those of the losses, and it leaves no method out."""

import re
from pathlib import Path

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.courses import shipped

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "course" / "map.md").read_text()
CLIP, HIGHER, BETA, LONGEST, CAP = 0.2, 0.28, 0.04, 9, 1.3


@pytest.fixture
def batch():
    """(6, 5) log-probs whose ratios fall into all four corners and between them."""
    generator = torch.Generator().manual_seed(0)
    logprobs, ref = -3 * torch.rand(2, 6, 5, generator=generator, dtype=torch.float64)
    old = logprobs - torch.linspace(-0.6, 0.6, 30, dtype=torch.float64).view(5, 6).T
    advantages = torch.tensor([1.2, -0.7, 0.4, -1.5, 0.9, -0.3], dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([5, 3, 4, 5, 2, 5])[:, None]
    return logprobs.requires_grad_(), old, ref, advantages, mask


def clipped(ratio, advantages, upper=CLIP):
    return ((ratio > 1 + upper) & (advantages > 0)) | ((ratio < 1 - CLIP) & (advantages < 0))


def by_the_map(method, logprobs, old, ref, advantages, mask):
    """c / Z for each token, as the table of the page has them."""
    N, tokens, lengths = len(mask), mask.sum(), mask.sum(1, keepdim=True)
    rho, A_ = (logprobs - old).exp(), advantages[:, None].expand_as(logprobs)
    if method == "sft":
        return torch.ones_like(rho) / tokens
    if method in ("reinforce", "rloo"):
        return A_ / N
    if method == "cispo":
        return rho.clamp(max=CAP) * A_ / tokens
    if method == "gspo":
        rho = (rho.log() * mask).sum(1, keepdim=True).div(lengths).exp().expand_as(rho)
    c = (rho * A_).masked_fill(clipped(rho, A_, HIGHER if method == "dapo" else CLIP), 0)
    if method == "grpo":
        c = c + BETA * ((ref - logprobs).exp() - 1)
    divisor = {"ppo": tokens, "dapo": tokens, "dr_grpo": N * LONGEST}
    return c / divisor.get(method, N * lengths)


LOSSES = {
    "sft": lambda lp, old, ref, A_, m: A.sft_loss(lp, m),
    "reinforce": lambda lp, old, ref, A_, m: A.reinforce_loss(lp, A_, m),
    "rloo": lambda lp, old, ref, A_, m: A.reinforce_loss(lp, A_, m),
    "ppo": lambda lp, old, ref, A_, m: A.ppo_clip_loss(lp, old, A_, m, CLIP)[0],
    "grpo": lambda lp, old, ref, A_, m: A.grpo_loss(lp, old, ref, A_, m, CLIP, BETA),
    "dr_grpo": lambda lp, old, ref, A_, m: A.dr_grpo_loss(lp, old, A_, m, LONGEST, CLIP),
    "dapo": lambda lp, old, ref, A_, m: A.dapo_loss(lp, old, A_, m, CLIP, HIGHER),
    "cispo": lambda lp, old, ref, A_, m: A.cispo_loss(lp, old, A_, m, CAP),
    "gspo": lambda lp, old, ref, A_, m: A.gspo_loss(lp, old, A_, m, CLIP),
}


@pytest.mark.parametrize("method", LOSSES)
def test_the_coefficient_of_each_token_is_the_gradient_of_the_loss(method, batch):
    logprobs, old, ref, advantages, mask = batch
    (gradient,) = torch.autograd.grad(LOSSES[method](*batch), logprobs)
    expected = by_the_map(method, logprobs.detach(), old, ref, advantages, mask) * mask
    torch.testing.assert_close(-gradient, expected, rtol=1e-9, atol=1e-12)


def test_the_coefficient_of_dpo():
    sums = torch.tensor([[-3.0, -4.0], [-2.0, -1.0], [-2.5, -3.5], [-2.2, -1.5]]).double()
    sums.requires_grad_()
    loss = A.dpo_loss(*sums, beta=0.1)[0]
    (gradient,) = torch.autograd.grad(loss, sums)
    delta = 0.1 * ((sums[0] - sums[2]) - (sums[1] - sums[3])).detach()
    weight = 0.1 * torch.sigmoid(-delta) / 2
    torch.testing.assert_close(-gradient[:2], torch.stack([weight, -weight]))


def test_every_lesson_named_exists():
    family = MAP.split("## One notation")[0]
    lessons = {lesson.number for lesson in shipped().lessons}
    named = {
        n for row in re.findall(r"\|([^|\n]*)\|$", MAP, re.M) for n in re.findall(r"\d\d", row)
    }
    named |= set(re.findall(r"\b(\d\d)$", family, re.M))
    assert named <= lessons and len(named) >= 9
