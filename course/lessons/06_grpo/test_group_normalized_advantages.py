"""Be the grader: tests of group-normalized advantages, written by the student."""

from pathlib import Path

import torch

from rlcourse import exercises
from rlcourse.checks.judging.testing import Suspects
from rlcourse.courses import course_at
from rlcourse.courses.modules import beside

judged = beside(__file__, "group_normalized_advantages.py")


def test_group_normalized_advantages(group_normalized_advantages):
    """A test of `group_normalized_advantages`: called with an implementation, it fails
    with `assert` where that one is wrong, and does nothing where it is right.

    Any other exception counts as a failure, too. The implementation may be called as
    often as you like.
    Source: Wrenn and Krishnamurthi 2019 (Examplar), for tests that are tested.
    """
    rewards = torch.tensor([1.0, 0, 0, 1, 5, 1, 3, 3], dtype=torch.float64)
    deviations = torch.tensor([0.5, -0.5, -0.5, 0.5, 2, -2, 0, 0], dtype=torch.float64)
    std = torch.tensor([1 / 3, 8 / 3], dtype=torch.float64).sqrt()
    for eps in (1e-4, 1.0):
        advantages = group_normalized_advantages(rewards, 4, eps)
        expected = deviations / (std.repeat_interleave(4) + eps)
        assert advantages.shape == (8,)
        assert torch.allclose(advantages, expected)

    # Nothing to learn: a group of equal rewards, and groups of one.
    for group_size in (4, 1):
        advantages = group_normalized_advantages(torch.ones(4), group_size)
        assert not advantages.any()


def properties(group_normalized_advantages):
    """What must hold for any rewards, without a number worked out by hand."""
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(12, generator=generator, dtype=torch.float64)
    small = group_normalized_advantages(rewards, 4, eps=1e-12)
    assert small.shape == rewards.shape
    rows = small.view(3, 4)
    assert (rows.mean(1).abs() < 1e-6).all() and (rows.std(1) - 1).abs().max() < 1e-6
    assert (rows.argsort(1) == rewards.view(3, 4).argsort(1)).all()
    # The advantage is the deviation over std + eps, for every eps.
    for eps in (1e-4, 0.7):
        found = group_normalized_advantages(rewards, 4, eps=eps).view(3, 4)
        std = rewards.view(3, 4).std(1, keepdim=True)
        assert torch.allclose(found * (std + eps), rows * std)
    assert not group_normalized_advantages(torch.full((6,), 0.5), 3).any()
    assert not group_normalized_advantages(rewards, 1).any()


def one_group(group_normalized_advantages):
    rewards = torch.tensor([1.0, 0, 0, 1], dtype=torch.float64)
    expected = (rewards - 0.5) / ((1 / 3) ** 0.5 + 1e-4)
    assert torch.allclose(group_normalized_advantages(rewards, 4), expected)


def only_the_mean(group_normalized_advantages):
    """Every group's mean is 0: so say many wrong ones, too."""
    rewards = torch.tensor([1.0, 0, 0, 1, 5, 1, 3, 3], dtype=torch.float64)
    found = group_normalized_advantages(rewards, 4).reshape(2, 4)
    assert (found.mean(1).abs() < 1e-6).all()


judged_exercise = exercises.get("group_normalized_advantages", course_at(Path(__file__).parent))
suspects = Suspects(
    exercise=judged_exercise,
    right=(
        {
            "the lesson's own": judged_exercise.reference,
            "group by group, in a loop": judged.by_loop,
        },
        {
            "with repeated means and squares": judged.by_repeating,
        },
    ),
    wrong=(
        (
            "the population standard deviation, which divides by G",
            "the standard deviation of the whole batch",
            "the mean of the whole batch",
            "eps inside the root",
            "a division without eps",
            "an eps of 1e-4 whatever the argument says",
            "groups of every B-th row",
            "rewards minus the group's mean, not divided by anything",
            "advantages with their sign flipped",
            "rewards minus the mean of the others",
            "a standard deviation that is NaN for a group of one",
            "advantages left in the shape (B, G)",
        ),
        (
            "the population standard deviation, which divides by G",
            "rewards normalized over the whole batch",
            "the standard deviation of the whole batch",
            "a standard deviation that is at least eps",
            "a division by the variance",
            "rewards divided by the standard deviation, but not centered",
            "a division by the mean absolute deviation",
            "the reward itself for a group of one",
            "the groups laid out as columns, but compared along the rows",
            "rewards scaled to the range of their group",
            "a division without eps",
            "groups of every B-th row",
        ),
    ),
)


alternatives = (properties,)
cases = suspects.cases
