"""Be the grader: tests of PPO's clipped loss, written by the student."""

from pathlib import Path

import torch

from rlcourse import exercises
from rlcourse.checks.judging.testing import Suspects
from rlcourse.courses import course_at
from rlcourse.courses.modules import beside

judged = beside(__file__, "ppo_clip_loss.py")


def test_ppo_clip_loss(ppo_clip_loss):
    """A test of `ppo_clip_loss`: called with an implementation, it fails with `assert`
    where that one is wrong, and does nothing where it is right.

    Any other exception counts as a failure, too. The implementation may be called as
    often as you like, and differentiated.
    Source: Wrenn and Krishnamurthi 2019 (Examplar), for tests that are tested.
    """
    ratios = torch.tensor([[1.1, 1.5, 0.5], [0.5, 1.5, 3.0]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]]).bool()
    logprobs = (ratios.log() - 4).requires_grad_()
    old_logprobs = torch.full_like(ratios, -4.0).requires_grad_()
    advantages = torch.tensor([1.0, -2.0], dtype=torch.float64).requires_grad_()

    # By hand: 1.1, 1.2 (stopped), 0.5; -1.6 (stopped), -3.0; the sixth is padding.
    loss, stopped = ppo_clip_loss(logprobs, old_logprobs, advantages, mask)
    assert abs(loss - 0.36) < 1e-6
    assert abs(stopped - 0.4) < 1e-6
    loss.backward()
    expected = torch.tensor([[-0.22, 0.0, -0.1], [0.0, 0.6, 0.0]])
    assert torch.allclose(logprobs.grad, expected.double())
    for constant in (old_logprobs, advantages):
        assert constant.grad is None or not constant.grad.any()

    # A wider band stops nothing here; a blamed token is charged in full.
    loss, stopped = ppo_clip_loss(logprobs, old_logprobs, advantages, mask, clip=0.6)
    assert abs(loss - 0.18) < 1e-6 and stopped == 0
    far, one = torch.tensor([[50.0]]).log(), torch.ones(1, 1)
    assert abs(ppo_clip_loss(far, 0 * one, -one[0], one)[0] - 50) < 1e-3


def _two_tokens(ppo_clip_loss, advantages, gradient=False):
    """Two tokens without padding, their ratios 0.5 and 1.5: only what a first try looks at."""
    logprobs = torch.tensor([[0.5], [1.5]], dtype=torch.float64).log().requires_grad_()
    given = torch.tensor(advantages, dtype=torch.float64)
    zeros, mask = torch.zeros(2, 1).double(), torch.ones(2, 1) > 0
    loss, stopped = ppo_clip_loss(logprobs, zeros, given, mask)
    objective = [
        min(r * a, min(max(r, 0.8), 1.2) * a) for r, a in zip((0.5, 1.5), advantages, strict=True)
    ]
    assert abs(loss + sum(objective) / 2) < 1e-6
    return loss, stopped, logprobs


def only_praised(ppo_clip_loss):
    _two_tokens(ppo_clip_loss, (1.0, 1.0))


def only_the_value(ppo_clip_loss):
    _two_tokens(ppo_clip_loss, (1.0, 1.0))
    _two_tokens(ppo_clip_loss, (-2.0, -2.0))
    _two_tokens(ppo_clip_loss, (1.0, -2.0))


def only_that_it_runs(ppo_clip_loss):
    logprobs = torch.zeros(2, 3).double()
    loss, _ = ppo_clip_loss(logprobs, logprobs, torch.ones(2).double(), torch.ones(2, 3) > 0)
    assert loss.isfinite()


def by_a_second_writing(ppo_clip_loss):
    """Against an independent implementation, on random numbers, in value and gradient."""
    generator = torch.Generator().manual_seed(0)
    for clip, advantage_dims in ((0.2, 1), (0.05, 1), (0.4, 2)):
        old = -3 * torch.rand(4, 6, generator=generator, dtype=torch.float64)
        new = old + torch.randn(4, 6, generator=generator, dtype=torch.float64)
        mask = torch.arange(6) < torch.tensor([6, 3, 4, 1])[:, None]
        shape = (4, 6)[:advantage_dims]
        advantages = torch.randn(shape, generator=generator, dtype=torch.float64)
        results = []
        for fn in (ppo_clip_loss, judged.by_sign):
            leaves = [t.clone().requires_grad_() for t in (new, old, advantages)]
            loss, stopped = fn(*leaves, mask, clip)
            found = torch.autograd.grad(loss, leaves, allow_unused=True)
            zeros = torch.zeros(())
            results.append([loss, stopped, *(zeros if g is None else g.sum(-1) for g in found)])
        for mine, theirs in zip(*results, strict=True):
            assert ((mine - theirs).abs() < 1e-6).all()


judged_exercise = exercises.get("ppo_clip_loss", course_at(Path(__file__).parent))
suspects = Suspects(
    exercise=judged_exercise,
    right=(
        {
            "token by token, in a loop": judged.by_loop,
            "the lesson's own": judged_exercise.reference,
            "the larger of two losses": judged.by_loss_terms,
        },
        {
            "the larger of two losses": judged.by_loss_terms,
            "a bound by the sign of A, without a min": judged.by_sign,
            "token by token, in a loop": judged.by_loop,
        },
    ),
    wrong=(
        (
            "the larger of the two terms",
            "the clipped term alone",
            "A · min(ratio, clip(ratio))",
            "a ratio upside down",
            "a clip from above only",
            "an ε of 0.2 whatever the argument says",
            "the objective, not the loss: the sign is missing",
            "a mean in which padding takes part",
            "a mean that counts padding as tokens",
            "advantages laid along the tokens",
            "a loss through which gradient flows into the old log-probs",
            "a clip fraction that counts every token outside the band",
        ),
        (
            "the unclipped objective",
            "a loss that drops every token outside the band",
            "the logarithm of the ratio in its place",
            "a ratio that no gradient passes through",
            "a clip that changes the value but not the gradient",
            "a band from 1/(1+ε) to 1+ε",
            "A · min(ratio, clip(ratio))",
            "an ε of 0.2 whatever the argument says",
            "the mean of each completion's mean",
            "a sum over tokens and a mean over completions",
            "a loss through which gradient flows into the advantages",
            "a clip fraction in which padding is counted",
        ),
    ),
)


alternatives = (by_a_second_writing,)
cases = suspects.cases
