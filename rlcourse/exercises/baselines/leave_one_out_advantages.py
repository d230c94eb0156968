"""Advantages against the mean of the others of the group."""

import torch

from rlcourse.algorithms.baselines import group_mean_advantages, leave_one_out_advantages
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.exercises.baselines.group_mean_advantages import (
    ANY_EPSILON,
    baseline_of,
    cases,
    clamped,
    grouped,
    interleaved,
    negative_of,
    over_std,
    unflattened,
)


def _loo_over_g(rewards, group_size):
    groups = grouped(rewards, group_size)
    return (groups - (groups.sum(1, keepdim=True) - groups) / group_size).flatten()


def _loo_keeps_itself(rewards, group_size):
    groups = grouped(rewards, group_size)
    return (groups - groups.sum(1, keepdim=True) / max(group_size - 1, 1)).flatten()


def _loo_nan(rewards, group_size):
    groups = grouped(rewards, group_size)
    return (groups - (groups.sum(1, keepdim=True) - groups) / (group_size - 1)).flatten()


def _loo_zero_alone(rewards, group_size):
    return group_mean_advantages(rewards, group_size) * group_size / max(group_size - 1, 1)


def _loo_upside_down(rewards, group_size):
    return group_mean_advantages(rewards, group_size) * (group_size - 1) / group_size


def _loo_neighbour(rewards, group_size):
    groups = grouped(rewards, group_size)
    return (groups - groups.roll(-1, dims=1) * (group_size > 1)).flatten()


def _loo_regrouped(rewards, group_size):
    groups = rewards.reshape(group_size, -1)
    others = groups.sum(1, keepdim=True) - groups
    return (groups - others / max(group_size - 1, 1)).flatten()


def _loo_best_of_others(rewards, group_size):
    groups = grouped(rewards, group_size)
    if group_size == 1:
        return rewards.clone()
    own = torch.eye(group_size, dtype=torch.bool)
    others = groups[:, None, :].expand(-1, group_size, -1).masked_fill(own, -torch.inf)
    return (groups - others.amax(2)).flatten()


def _loo_in_place(rewards, group_size):
    rewards.copy_(leave_one_out_advantages(rewards, group_size))
    return rewards.clone()


def _loo_by_loop(rewards, group_size):
    values, advantages = rewards.tolist(), []
    for i, reward in enumerate(values):
        start = i - i % group_size
        others = values[start:i] + values[i + 1 : start + group_size]
        advantages.append(reward - (sum(others) / len(others) if others else 0.0))
    return torch.tensor(advantages, dtype=rewards.dtype)


def _loo_by_scaling(rewards, group_size):
    if group_size == 1:
        return rewards.clone()
    return group_mean_advantages(rewards, group_size) * group_size / (group_size - 1)


def _loo_by_matrix(rewards, group_size):
    others = 1 - torch.eye(group_size, dtype=rewards.dtype)
    weights = others / others.sum(1, keepdim=True).clamp(min=1)
    return rewards - (grouped(rewards, group_size) @ weights.T).reshape(-1)


def _repeated(rewards, group_size):
    sums = rewards.reshape(-1, group_size).sum(1).repeat(group_size)
    return rewards - (sums - rewards) / max(group_size - 1, 1)


EXERCISE = Exercise(
    reference=leave_one_out_advantages,
    lesson="03_baselines",
    section="Leave one out",
    points=3,
    difficulty=2,
    minutes=8,
    cases=cases,
    mistakes=(
        Mistake(
            "the group-mean advantage, whose baseline contains the completion itself",
            group_mean_advantages,
            "A baseline must not depend on the completion it judges: take its own reward out of "
            "the mean.",
        ),
        Mistake(
            "the sum of the others divided by G in place of G − 1",
            _loo_over_g,
            "There are only G − 1 others.",
        ),
        Mistake(
            "the sum of the whole group divided by G − 1",
            _loo_keeps_itself,
            "Take the completion's own reward out of the sum before you divide.",
        ),
        Mistake(
            "a mean of nobody, NaN, where the group has one completion",
            _loo_nan,
            "With G = 1 there are no others and 0/0 is not a number: the baseline is then 0 and "
            "the advantage the reward itself.",
            telling=2,
        ),
        Mistake(
            "an advantage of 0 for a completion that is alone in its group",
            _loo_zero_alone,
            "Without others nothing is known about the question, and the baseline is 0: what "
            "remains is plain REINFORCE.",
            telling=2,
        ),
        Mistake(
            "the group-mean advantage scaled by (G − 1)/G in place of G/(G − 1)",
            _loo_upside_down,
            "Leaving the own reward out makes the advantage larger, not smaller: the own reward "
            "had been pulling its baseline along.",
        ),
        Mistake(
            "the reward minus the mean of all other rewards of the batch",
            lambda rewards, group_size: leave_one_out_advantages(rewards, len(rewards)),
            "Only completions of the same question say how hard this question is.",
        ),
        Mistake(
            "leave-one-out with the groups interleaved",
            interleaved(leave_one_out_advantages),
            "The completions of a question stand next to each other: a row of "
            "`rewards.reshape(-1, group_size)` is a group.",
        ),
        Mistake(
            "group sums laid out with `repeat`",
            _repeated,
            "`repeat` puts all groups one after another again and again; every completion of a "
            "group needs the sum of its own: `repeat_interleave`, or keep the dimension.",
        ),
        Mistake(
            "the advantage divided by the group's standard deviation",
            over_std(leave_one_out_advantages, 1),
            "The published leave-one-out estimator does not divide; that comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "the advantage divided by the group's population standard deviation",
            over_std(leave_one_out_advantages, 0),
            "The published leave-one-out estimator does not divide; that comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "groups whose number is `group_size`",
            _loo_regrouped,
            "`group_size` is how many completions a question has, not how many questions there "
            "are: it is the last dimension of the reshape.",
        ),
        Mistake(
            "the advantage with its sign turned",
            negative_of(leave_one_out_advantages),
            "A completion better than the others must be pushed up: reward minus baseline.",
        ),
        Mistake(
            "the baseline itself",
            baseline_of(leave_one_out_advantages),
            "Return what is left of the reward after the mean of the others is subtracted.",
        ),
        Mistake(
            "the reward minus that of one neighbour",
            _loo_neighbour,
            "One other completion is a fair baseline and a very noisy one: take the mean of all "
            "G − 1.",
        ),
        Mistake(
            "the reward minus the best of the others",
            _loo_best_of_others,
            "The baseline is what the question earns on average, not at best.",
        ),
        Mistake(
            "an advantage that is never negative",
            clamped(leave_one_out_advantages),
            "The negative side is what a baseline brings: it makes the worse completions less "
            "likely.",
        ),
        Mistake(
            "advantages written over the rewards",
            _loo_in_place,
            "The caller's tensor is not yours to change: whoever reads the rewards afterwards "
            "finds advantages.",
        ),
        Mistake(
            "advantages still in the shape (B, G)",
            unflattened(leave_one_out_advantages),
            "One advantage a row of the batch, (N,): end with `.flatten()`.",
        ),
    ),
    alternatives=(_loo_by_loop, _loo_by_scaling, _loo_by_matrix),
    hints=(
        "The mean of the others is a sum that you can get without a loop.",
        "The sum of the others is the sum of the group minus the completion's own reward, and "
        "there are G − 1 of them. What if G is 1?",
        "With `groups` of shape (B, G):\n\n"
        "    others = groups.sum(dim=1, keepdim=True) - ...\n"
        "    return (groups - others / max(..., 1)).flatten()",
    ),
)
