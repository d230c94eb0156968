"""Advantages against the mean of the others of the group."""

from functools import partial

import torch

from rlcourse.algorithms.baselines import group_mean_advantages, leave_one_out_advantages
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.baselines.group_mean_advantages import ANY_EPSILON, cases, grouped, spread


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


def line_by_line(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    others = groups.sum(1, keepdim=True) - groups
    baseline = others / max(group_size - 1, 1)
    advantages = groups - baseline
    return advantages.flatten()


def best_of_others(groups):
    size = groups.shape[1]
    own = torch.eye(size, dtype=torch.bool)
    others = groups[:, None, :].expand(-1, size, -1).masked_fill(own, -torch.inf)
    return others.amax(2) if size > 1 else torch.zeros_like(groups)


_edit = Sketch(line_by_line, best_of_others, spread).edit
_baseline = partial(_edit, "the baseline: of what", "others / max(group_size - 1, 1)")


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
            _baseline("groups.mean(1, keepdim=True)"),
            "A baseline must not depend on the completion it judges: take its own reward out of "
            "the mean.",
        ),
        Mistake(
            "the sum of the others divided by G in place of G − 1",
            _edit("the baseline: its divisor", "max(group_size - 1, 1)", "group_size"),
            "There are only G − 1 others.",
        ),
        Mistake(
            "the sum of the whole group divided by G − 1",
            _edit(
                "the baseline: the others",
                "groups.sum(1, keepdim=True) - groups",
                "groups.sum(1, keepdim=True)",
            ),
            "Take the completion's own reward out of the sum before you divide.",
        ),
        Mistake(
            "a mean of nobody, NaN, where the group has one completion",
            _edit("the baseline: its divisor", "max(group_size - 1, 1)", "(group_size - 1)"),
            "With G = 1 there are no others and 0/0 is not a number: the baseline is then 0 and "
            "the advantage the reward itself.",
            telling=2,
        ),
        Mistake(
            "an advantage of 0 for a completion that is alone in its group",
            _edit(
                "groups of one", "= groups - baseline", "= (groups - baseline) * (group_size > 1)"
            ),
            "Without others nothing is known about the question, and the baseline is 0: what "
            "remains is plain REINFORCE.",
            telling=2,
        ),
        Mistake(
            "the group-mean advantage scaled by (G − 1)/G in place of G/(G − 1)",
            _edit(
                "the baseline: of what",
                "groups - baseline",
                "(groups - groups.mean(1, keepdim=True)) * (group_size - 1) / group_size",
            ),
            "Leaving the own reward out makes the advantage larger, not smaller: the own reward "
            "had been pulling its baseline along.",
        ),
        Mistake(
            "the reward minus the mean of all other rewards of the batch",
            _edit(
                "the groups",
                "rewards.reshape(-1, group_size)",
                "rewards.reshape(1, -1)",
                "group_size - 1, 1",
                "len(rewards) - 1, 1",
            ),
            "Only completions of the same question say how hard this question is.",
        ),
        Mistake(
            "leave-one-out with the groups interleaved",
            _edit(
                "the groups",
                "rewards.reshape(-1, group_size)",
                "rewards.reshape(group_size, -1).T",
                "advantages.flatten()",
                "advantages.T.flatten()",
            ),
            "The completions of a question stand next to each other: a row of "
            "`rewards.reshape(-1, group_size)` is a group.",
        ),
        Mistake(
            "group sums laid out with `repeat`",
            _edit(
                "the baseline: its layout",
                "groups.sum(1, keepdim=True)",
                "groups.sum(1).repeat(group_size).reshape(-1, group_size)",
            ),
            "`repeat` puts all groups one after another again and again; every completion of a "
            "group needs the sum of its own: `repeat_interleave`, or keep the dimension.",
        ),
        Mistake(
            "the advantage divided by the group's standard deviation",
            _edit("no divisor", "= groups - baseline", "= (groups - baseline) / spread(groups, 1)"),
            "The published leave-one-out estimator does not divide; that comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "the advantage divided by the group's population standard deviation",
            _edit("no divisor", "= groups - baseline", "= (groups - baseline) / spread(groups, 0)"),
            "The published leave-one-out estimator does not divide; that comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "groups whose number is `group_size`",
            _edit(
                "the groups", "rewards.reshape(-1, group_size)", "rewards.reshape(group_size, -1)"
            ),
            "`group_size` is how many completions a question has, not how many questions there "
            "are: it is the last dimension of the reshape.",
        ),
        Mistake(
            "the advantage with its sign turned",
            _edit("the sign", "return ", "return -"),
            "A completion better than the others must be pushed up: reward minus baseline.",
        ),
        Mistake(
            "the baseline itself",
            _edit("the difference", "groups - baseline", "baseline.expand_as(groups)"),
            "Return what is left of the reward after the mean of the others is subtracted.",
        ),
        Mistake(
            "the reward minus that of one neighbour",
            _baseline("groups.roll(-1, dims=1) * (group_size > 1)"),
            "One other completion is a fair baseline and a very noisy one: take the mean of all "
            "G − 1.",
        ),
        Mistake(
            "the reward minus the best of the others",
            _baseline("best_of_others(groups)"),
            "The baseline is what the question earns on average, not at best.",
        ),
        Mistake(
            "an advantage that is never negative",
            _edit("the negative side", ".flatten()", ".clamp(min=0).flatten()"),
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
            _edit("the shape of the result", ".flatten()", ""),
            "One advantage a row of the batch, (N,): end with `.flatten()`.",
        ),
    ),
    alternatives=(_loo_by_loop, _loo_by_scaling, _loo_by_matrix, line_by_line),
    hints=(
        "The mean of the others is a sum that you can get without a loop.",
        "The sum of the others is the sum of the group minus the completion's own reward, and "
        "there are G − 1 of them. What if G is 1?",
        "With `groups` of shape (B, G):\n\n"
        "    others = groups.sum(dim=1, keepdim=True) - ...\n"
        "    return (groups - others / max(..., 1)).flatten()",
    ),
)
