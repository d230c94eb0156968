"""Advantages against the mean of the group."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import group_mean_advantages, leave_one_out_advantages
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


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


def _by_prompt(rewards, group_size):
    groups = grouped(rewards, group_size)
    return (groups - groups.mean(0)).flatten()


def interleaved(advantages_of):
    """The same advantages where row i belongs to question i mod B."""

    def implementation(rewards, group_size):
        interleaved = rewards.reshape(group_size, -1).T.flatten()
        advantages = advantages_of(interleaved, group_size)
        return advantages.reshape(-1, group_size).T.flatten()

    return implementation


def _tiled(rewards, group_size):
    return rewards - grouped(rewards, group_size).mean(1).repeat(group_size)


def _one_mean_a_group(rewards, group_size):
    return rewards - grouped(rewards, group_size).mean(1)


def _without_keepdim(rewards, group_size):
    groups = grouped(rewards, group_size)
    return (groups - groups.mean(1)).flatten()


def _regrouped(rewards, group_size):
    return group_mean_advantages(rewards, len(rewards) // group_size)


def over_std(advantages_of, correction):
    def implementation(rewards, group_size):
        groups = grouped(rewards, group_size)
        deviation = torch.zeros_like(groups[:, :1])
        if group_size > correction:
            deviation = groups.std(1, correction=correction, keepdim=True)
        advantages = advantages_of(rewards, group_size).reshape(-1, group_size)
        return (advantages / (deviation + 1e-6)).flatten()

    return implementation


def _mean_of_rewarded(rewards, group_size):
    groups = grouped(rewards, group_size)
    return (groups - (groups > 0).to(groups.dtype).mean(1, keepdim=True)).flatten()


def _against_median(rewards, group_size):
    medians = grouped(rewards, group_size).median(1).values
    return rewards - medians.repeat_interleave(group_size)


def _in_place(rewards, group_size):
    groups = rewards.view(-1, group_size)
    groups -= groups.mean(1, keepdim=True)
    return rewards.clone()


def baseline_of(advantages_of):
    return lambda rewards, group_size: rewards - advantages_of(rewards, group_size)


def negative_of(advantages_of):
    return lambda rewards, group_size: -advantages_of(rewards, group_size)


def clamped(advantages_of):
    return lambda rewards, group_size: advantages_of(rewards, group_size).clamp(min=0)


def unflattened(advantages_of):
    return lambda rewards, group_size: advantages_of(rewards, group_size).reshape(-1, group_size)


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
            lambda rewards, group_size: rewards - rewards.mean(),
            "Each question has its own difficulty: against the batch's mean an easy question is "
            "applauded and a hard one scolded, whatever was answered.",
        ),
        Mistake(
            "the group mean with the groups interleaved",
            interleaved(group_mean_advantages),
            "The completions of a question stand next to each other: a row of "
            "`rewards.reshape(-1, group_size)` is a group.",
        ),
        Mistake(
            "a mean over the questions in place of the completions",
            _by_prompt,
            "After `reshape(-1, group_size)` the rows are questions: the mean runs along dim=1.",
        ),
        Mistake(
            "group means laid out with `repeat` in place of `repeat_interleave`",
            _tiled,
            "`repeat` writes a, b, a, b, where the rows are a, a, b, b: the means end up at "
            "other questions' completions.",
        ),
        Mistake(
            "one mean a group where one a completion is needed",
            _one_mean_a_group,
            "(N,) minus (B,) does not line up: give each completion its group's mean, for "
            "instance by subtracting in the shape (B, G).",
        ),
        Mistake(
            "group means laid along the completions, for want of `keepdim`",
            _without_keepdim,
            "(B, G) minus (B,) lines the means up with the *columns*: `keepdim=True` makes them "
            "(B, 1), one a row.",
        ),
        Mistake(
            "groups whose number is `group_size`",
            _regrouped,
            "`group_size` is how many completions a question has, not how many questions there "
            "are: it is the last dimension of the reshape.",
        ),
        Mistake(
            "the advantage divided by the group's standard deviation",
            over_std(group_mean_advantages, 1),
            "Dividing by the spread is another choice, with consequences: it comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "the advantage divided by the group's population standard deviation",
            over_std(group_mean_advantages, 0),
            "Dividing by the spread is another choice, with consequences: it comes in lesson 06.",
            atol=ANY_EPSILON,
        ),
        Mistake(
            "the leave-one-out advantage",
            leave_one_out_advantages,
            "This mean is that of the *whole* group, the completion itself included; leaving it "
            "out is the next exercise.",
        ),
        Mistake(
            "the reward minus the sum of its group",
            lambda rewards, group_size: (
                rewards - grouped(rewards, group_size).sum(1).repeat_interleave(group_size)
            ),
            "What a completion must beat is its group's average reward: divide the sum by G.",
        ),
        Mistake(
            "the advantage with its sign turned",
            negative_of(group_mean_advantages),
            "A completion better than its group must be pushed up: reward minus baseline.",
        ),
        Mistake(
            "the baseline itself",
            baseline_of(group_mean_advantages),
            "Return what is left of the reward after the baseline is subtracted.",
        ),
        Mistake(
            "the reward minus the group's share of positive rewards",
            _mean_of_rewarded,
            "That is the mean only where rewards are 0 and 1; use the rewards themselves.",
        ),
        Mistake(
            "the reward minus the group's median",
            _against_median,
            "With 15 of 16 right the median is 1, and the fifteen would get nothing: the baseline "
            "is the mean.",
        ),
        Mistake(
            "an advantage that is never negative",
            clamped(group_mean_advantages),
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
            unflattened(group_mean_advantages),
            "One advantage a row of the batch, (N,): end with `.flatten()`.",
        ),
    ),
    alternatives=(_group_by_loop, _group_by_projection, _group_by_repeat),
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
