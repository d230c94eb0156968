"""Be the grader: tests of the DPO loss, written by the student."""

from pathlib import Path

import torch

from rlcourse import exercises
from rlcourse.checks.judging.testing import Suspects
from rlcourse.courses import course_at
from rlcourse.courses.modules import beside

judged = beside(__file__, "dpo_loss.py")


def test_dpo_loss(dpo_loss):
    """A test of `dpo_loss`: called with an implementation, it fails with `assert` where
    that one is wrong, and does nothing where it is right.

    Any other exception counts as a failure, too. The implementation may be called as
    often as you like, and differentiated.
    Source: Wrenn and Krishnamurthi 2019 (Examplar), for tests that are tested.
    """
    numbers = [[-4.0, -10.0], [-6.0, -8.0], [-5.0, -9.0], [-7.0, -6.0]]
    logprobs = torch.tensor(numbers, dtype=torch.float64).requires_grad_()
    right, flipped = torch.tensor([0.0, 0.5]), torch.tensor([0.0, -0.5])  # margins
    for share in (0.0, 0.2):
        loss, chosen, rejected = dpo_loss(*logprobs, beta=0.5, label_smoothing=share)
        per_pair = (1 - share) * (-right).exp().log1p() + share * (-flipped).exp().log1p()
        assert abs(loss - per_pair.mean()) < 1e-6
        assert chosen.tolist() == [0.5, -0.5] and rejected.tolist() == [0.5, -1.0]
        assert not chosen.requires_grad and not rejected.requires_grad

    # More of the chosen text, less of the rejected one, and the reference stays.
    dpo_loss(*logprobs, beta=0.5)[0].backward()
    push = 0.5 * (-right).sigmoid() / 2
    nothing = torch.zeros(2)
    expected = torch.stack([-push, push, nothing, nothing]).double()
    assert torch.allclose(logprobs.grad, expected)

    # A pair that is badly wrong still costs what it should.
    far = torch.tensor([[-30000.0], [0.0], [0.0], [0.0]])
    assert abs(dpo_loss(*far, beta=0.1)[0] - 3000) < 0.1


def properties(dpo_loss):
    """At the start log 2; shifts cancel; and a difference quotient for the gradient."""
    generator = torch.Generator().manual_seed(0)
    policy = -9 * torch.rand(2, 5, generator=generator, dtype=torch.float64)
    reference = policy + torch.randn(2, 5, generator=generator, dtype=torch.float64)
    loss, chosen, rejected = dpo_loss(*policy, *policy)
    assert abs(loss - 0.6931472) < 1e-6 and not chosen.any() and not rejected.any()
    for beta, share in ((0.1, 0.0), (0.7, 0.0), (2.0, 0.3)):
        leaves = [t.clone().requires_grad_() for t in (*policy, *reference)]
        loss, chosen, rejected = dpo_loss(*leaves, beta, share)
        assert torch.allclose(chosen, beta * (policy[0] - reference[0]))
        assert torch.allclose(rejected, beta * (policy[1] - reference[1]))
        assert not chosen.requires_grad
        odds = (chosen - rejected).sigmoid()
        costs = -(1 - share) * odds.log() - share * (1 - odds).log()
        assert abs(loss - costs.mean()) < 1e-6
        loss.backward()
        assert torch.allclose(leaves[0].grad, beta * (odds - 1 + share) / 5)
        assert all(t.grad is None or not t.grad.any() for t in leaves[2:])
    zeros = torch.zeros(1)
    assert abs(dpo_loss(zeros - 5e4, zeros, zeros, zeros)[0] - 5000) < 1


def only_the_start(dpo_loss):
    policy = torch.tensor([[-4.0, -10.0], [-6.0, -8.0]], dtype=torch.float64)
    assert abs(dpo_loss(*policy, *policy)[0] - 0.6931472) < 1e-6


def only_the_default(dpo_loss):
    numbers = [[-4.0, -10.0], [-6.0, -8.0], [-5.0, -9.0], [-7.0, -6.0]]
    logprobs = torch.tensor(numbers, dtype=torch.float64)
    expected = torch.tensor([0.0, -0.1]).exp().log1p().mean()
    assert abs(dpo_loss(*logprobs)[0] - expected) < 1e-6


def wants_a_falling_loss(dpo_loss):
    """Takes the loss of one pair at two margins: it must fall."""
    zero = torch.zeros(1).double()
    before, after = (dpo_loss(zero + gain, zero, zero, zero)[0] for gain in (1.0, 2.0))
    assert after < before


judged_exercise = exercises.get("dpo_loss", course_at(Path(__file__).parent))
suspects = Suspects(
    exercise=judged_exercise,
    right=(
        {
            "the lesson's own": judged_exercise.reference,
            "pair by pair, in a loop": judged._by_loop,
        },
        {
            "as a cross-entropy of two classes": judged._by_cross_entropy,
        },
    ),
    wrong=(
        (
            "a loss without the reference",
            "chosen and rejected swapped in the margin",
            "β outside the sigmoid",
            "each completion against the other one's reference",
            "the two rewards returned in exchanged places",
            "a loss that is infinite for a pair that is badly wrong",
            "a sum over the pairs",
            "one sigmoid of the mean margin",
            "a loss that takes no notice of `label_smoothing`",
            "a loss through which gradient flows into the reference",
            "rewards without β",
            "β = 0.1 whatever is passed",
        ),
        (
            "a loss and rewards without β",
            "a margin without the reference",
            "a margin with the references exchanged",
            "a loss without the minus",
            "a small number inside the logarithm, which keeps it from 0",
            "half of ε for the flipped order",
            "the given order left at full weight under label smoothing",
            "each completion classified by itself",
            "a hinge in place of the sigmoid",
            "the squared loss of IPO",
            "rewards that carry a graph",
            "a loss that no gradient leaves",
        ),
    ),
)


alternatives = (properties,)
cases = suspects.cases
