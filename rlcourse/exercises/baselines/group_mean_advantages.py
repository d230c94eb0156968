"""Advantages against the mean of the group."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import group_mean_advantages
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, group_size: int) -> Case:
        return Case(label, {"rewards": rewards, "group_size": group_size})

    yield case("worked: two questions, two completions each", tensor([1.0, 0, 4, 2]), 2)
    yield case("worked: 9 of 10 right", tensor([1.0] * 9 + [0.0]), 10)
    yield case("worked: 15 of 16 right", tensor([1.0] * 15 + [0.0]), 16)
    yield case("worked: 1 of 16 right", tensor([1.0] + [0.0] * 15), 16)
    few, many = draw.size(2, 3), draw.size(4, 5)
    yield case("fewer groups than completions", draw.rewards(few * many), many)
    yield case("more groups than completions", draw.rewards(few * many), few)
    side = draw.size(3, 4)
    yield case("as many groups as completions in each", draw.rewards(side * side), side)
    yield case("one question", draw.rewards(many), many)
    yield case("rewards of 0 and 1", draw.binary_rewards(3 * many), many)
    equal = draw.rewards(few).repeat_interleave(many)
    yield case("equal rewards within each group", equal, many)
    yield case("rewards far from 0", 100 + draw.rewards(2 * many), many)
    yield case("groups of one", draw.rewards(few + 1), 1)
    yield case("one group of one", draw.rewards(1), 1)
    yield case("float32", draw.rewards(2 * many, torch.float32), many)


# Students put 1e-8 to 1e-4 beside the standard deviation, or nothing.
ANY_EPSILON = 1e-2


def grouped(rewards: Tensor, group_size: int) -> Tensor:
    return rewards.reshape(-1, group_size)


def _in_place(rewards, group_size):
    groups = rewards.view(-1, group_size)
    groups -= groups.mean(1, keepdim=True)
    return rewards.clone()


def _group_by_loop(rewards, group_size):
    advantages = []
    for i, reward in enumerate(rewards):
        start = i - i % group_size
        advantages.append(reward - sum(rewards[start : start + group_size]) / group_size)
    return torch.stack(advantages)


def _group_by_projection(rewards, group_size):
    centre = torch.eye(group_size, dtype=rewards.dtype) - 1 / group_size
    return torch.einsum("bg,gh->bh", grouped(rewards, group_size), centre).reshape(-1)


def _group_by_repeat(rewards, group_size):
    means = rewards.double().unflatten(0, (-1, group_size)).mean(1)
    return (rewards.double() - means.repeat_interleave(group_size)).to(rewards.dtype)


def line_by_line(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    baseline = groups.mean(1, keepdim=True)
    advantages = groups - baseline
    return advantages.flatten()


def spread(groups, correction):
    """The standard deviation of each group, with a small constant; that alone for a small one."""
    if groups.shape[1] <= correction:
        return 1e-6
    return groups.std(1, correction=correction, keepdim=True) + 1e-6


_edit = Sketch(line_by_line, spread).edit
_baseline = partial(_edit, "the baseline: of what", "groups.mean(1, keepdim=True)")


EXERCISE = Exercise(
    reference=group_mean_advantages,
    lesson="03_baselines",
    section="The group supplies the baseline",
    points=2,
    difficulty=1,
    minutes=6,
    cases=cases,
    mistakes=(
        Mistake(
            "the reward minus the mean of the whole batch",
            _baseline("rewards.mean()"),
            "Each question has its own difficulty: against the batch's mean an easy question is "
            "applauded and a hard one scolded, whatever was answered.",
        ),
        Mistake(
            "the group mean with the groups interleaved",
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
            "a mean over the questions in place of the completions",
            _edit("the baseline: its layout", "mean(1, keepdim=True)", "mean(0)"),
            "After `reshape(-1, group_size)` the rows are questions: the mean runs along dim=1.",
        ),
        Mistake(
            "group means laid out with `repeat` in place of `repeat_interleave`",
            _edit(
                "the baseline: its layout",
                "groups.mean(1, keepdim=True)",
                "groups.mean(1).repeat(group_size).reshape(-1, group_size)",
            ),
            "`repeat` writes a, b, a, b, where the rows are a, a, b, b: the means end up at "
            "other questions' completions.",
        ),
        Mistake(
            "one mean a group where one a completion is needed",
            _edit("the baseline: its layout", "groups - baseline", "rewards - groups.mean(1)"),
            "(N,) minus (B,) does not line up: give each completion its group's mean, for "
            "instance by subtracting in the shape (B, G).",
        ),
        Mistake(
            "group means laid along the completions, for want of `keepdim`",
            _edit("the baseline: its layout", "mean(1, keepdim=True)", "mean(1)"),
            "(B, G) minus (B,) lines the means up with the *columns*: `keepdim=True` makes them "
            "(B, 1), one a row.",
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
            "the advantage divided by the group's standard deviation",
            _edit("no divisor", "= groups - baseline", "= (groups - baseline) / spread(groups, 1)"),
            "Dividing by the spread is another choice, with consequences: it comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "the advantage divided by the group's population standard deviation",
            _edit("no divisor", "= groups - baseline", "= (groups - baseline) / spread(groups, 0)"),
            "Dividing by the spread is another choice, with consequences: it comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "the leave-one-out advantage",
            _baseline("(groups.sum(1, keepdim=True) - groups) / max(group_size - 1, 1)"),
            "This mean is that of the *whole* group, the completion itself included; leaving it "
            "out is the next exercise.",
        ),
        Mistake(
            "the reward minus the sum of its group",
            _baseline("groups.sum(1, keepdim=True)"),
            "What a completion must beat is its group's average reward: divide the sum by G.",
        ),
        Mistake(
            "the advantage with its sign turned",
            _edit("the sign", "return ", "return -"),
            "A completion better than its group must be pushed up: reward minus baseline.",
        ),
        Mistake(
            "the baseline itself",
            _edit("the difference", "groups - baseline", "baseline.expand_as(groups)"),
            "Return what is left of the reward after the baseline is subtracted.",
        ),
        Mistake(
            "the reward minus the group's share of positive rewards",
            _baseline("(groups > 0).to(groups.dtype).mean(1, keepdim=True)"),
            "That is the mean only where rewards are 0 and 1; use the rewards themselves.",
        ),
        Mistake(
            "the reward minus the group's median",
            _baseline("groups.median(1, keepdim=True).values"),
            "With 15 of 16 right the median is 1, and the fifteen would get nothing: the baseline "
            "is the mean.",
        ),
        Mistake(
            "an advantage that is never negative",
            _edit("the negative side", ".flatten()", ".clamp(min=0).flatten()"),
            "The negative side is what a baseline brings: it makes the worse completions less "
            "likely.",
        ),
        Mistake(
            "advantages written over the rewards",
            _in_place,
            "`-=` on a view changes the caller's tensor: whoever reads the rewards afterwards "
            "finds advantages; write `groups - mean`, a new tensor.",
        ),
        Mistake(
            "advantages still in the shape (B, G)",
            _edit("the shape of the result", ".flatten()", ""),
            "One advantage a row of the batch, (N,): end with `.flatten()`.",
        ),
    ),
    alternatives=(_group_by_loop, _group_by_projection, _group_by_repeat, line_by_line),
    hints=(
        "The rewards of a question stand next to each other. Which shape would give each question "
        "a row?",
        "`rewards.reshape(-1, group_size)` is (B, G). Subtract each row's mean, keeping a "
        "dimension for it so that it broadcasts, and go back to (N,).",
        "Three steps:\n\n"
        "    groups = rewards.reshape(-1, group_size)\n"
        "    centered = groups - groups.mean(dim=..., keepdim=True)\n"
        "    return centered....",
    ),
)
