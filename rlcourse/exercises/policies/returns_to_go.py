"""What each token of a completion can still earn."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import returns_to_go
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _return_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, mask: Tensor, **options) -> Case:
        return Case(label, {"rewards": rewards, "mask": mask, **options})

    def terminal(mask: Tensor) -> Tensor:
        """A reward on the last real token of each row, and noise on padding."""
        last = (torch.arange(mask.shape[1]) == mask.sum(1, keepdim=True) - 1).double()
        return last * draw.rewards(len(mask))[:, None] + (~mask) * draw.normal(*mask.shape)

    worked = tensor([[0.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    worked_mask = torch.tensor([[True, True, True], [True, True, False]])
    yield case("worked: γ of 1", worked, worked_mask)
    yield case("worked: γ of ½", worked, worked_mask, gamma=0.5)
    for label, _, mask in draw.batches():
        rewards = draw.normal(*mask.shape)
        if label == "float32":
            rewards = rewards.float()
        yield case(label, rewards, mask)
    mask = draw.mask(*draw.shape())
    yield case("a reward at the end", terminal(mask), mask, gamma=0.9)
    mask = draw.mask(draw.size(3, 4), draw.size(5, 6))
    gamma = draw.uniform(1, low=0.3, high=0.95).item()
    yield case("discounted", draw.normal(*mask.shape), mask, gamma=gamma)
    yield case("γ of 0", draw.normal(2, 4), draw.mask(2, 4), gamma=0.0)


def _future(rewards, mask, gamma):
    """Backward recursion without any masking."""
    future, returns = torch.zeros_like(rewards[:, 0]), []
    for reward in reversed(rewards.unbind(1)):
        future = reward + gamma * future
        returns.append(future)
    return torch.stack(returns[::-1], 1)


def _total_everywhere(rewards, mask, gamma=1.0):
    powers = gamma ** torch.arange(rewards.shape[1]).to(rewards)
    total = (rewards * mask * powers).sum(1, keepdim=True)
    return total * mask


def _forward(rewards, mask, gamma=1.0):
    return _future((rewards * mask).flip(1), mask, gamma).flip(1) * mask


def _discounted_from_start(rewards, mask, gamma=1.0):
    powers = gamma ** torch.arange(rewards.shape[1]).to(rewards)
    return returns_to_go(rewards * powers, mask)


def _through_padding(rewards, mask, gamma=1.0):
    total = returns_to_go(rewards, mask)
    steps_left = torch.arange(rewards.shape[1] - 1, -1, -1).to(rewards)
    return gamma**steps_left * total * mask


def _padding_rewards(rewards, mask, gamma=1.0):
    return _future(rewards, mask, gamma) * mask


def _no_mask(rewards, mask, gamma=1.0):
    return _future(rewards, mask, gamma)


def _reversed_sums(rewards, mask, gamma=1.0):
    return rewards.flip(1).cumsum(1).flip(1)


def _padding_returns(rewards, mask, gamma=1.0):
    total = _future(rewards * mask, mask, gamma)
    carried = rewards.gather(1, (mask.long().sum(1, keepdim=True) - 1).clamp(min=0))
    return torch.where(mask.bool(), total, carried.expand_as(total))


def _without_own(rewards, mask, gamma=1.0):
    return (returns_to_go(rewards, mask, gamma) - rewards) * mask


def _discounts_own(rewards, mask, gamma=1.0):
    return gamma * returns_to_go(rewards, mask, gamma)


def _in_place(rewards, mask, gamma=1.0):
    rewards *= mask
    for t in range(rewards.shape[1] - 2, -1, -1):
        rewards[:, t] += gamma * rewards[:, t + 1]
    return rewards


def _across_rows(rewards, mask, gamma=1.0):
    return returns_to_go(rewards.T, mask.T, gamma).T


def _by_division(rewards, mask, gamma=1.0):
    powers = gamma ** torch.arange(rewards.shape[1]).to(rewards)
    return returns_to_go(rewards * powers, mask) / powers * mask


def _one_step(rewards, mask, gamma=1.0):
    rewards = rewards * mask
    following = torch.cat([rewards[:, 1:], torch.zeros_like(rewards[:, :1])], 1)
    return (rewards + gamma * following) * mask


def _without_first_column(rewards, mask, gamma=1.0):
    returns = returns_to_go(rewards, mask, gamma)
    return torch.cat([torch.zeros_like(returns[:, :1]), returns[:, 1:]], 1)


def _late_discount(rewards, mask, gamma=1.0):
    powers = gamma ** torch.arange(rewards.shape[1]).to(rewards)
    return returns_to_go(rewards, mask) * powers


def _by_matrix(rewards, mask, gamma=1.0):
    steps = torch.arange(rewards.shape[1])
    apart = steps[:, None] - steps[None, :]  # from column's token to row's reward
    weights = torch.where(apart >= 0, torch.tensor(gamma).to(rewards) ** apart.clamp(min=0), 0)
    return (rewards * mask) @ weights.to(rewards.dtype) * mask


def _by_double_loop(rewards, mask, gamma=1.0):
    out = torch.zeros_like(rewards)
    lengths = mask.sum(1).long().tolist()
    for i, length in enumerate(lengths):
        for t in range(length):
            out[i, t] = sum(gamma ** (k - t) * rewards[i, k] for k in range(t, length))
    return out


EXERCISE = Exercise(
    reference=returns_to_go,
    lesson="01_policies",
    section="Rewards over time",
    points=3,
    difficulty=2,
    minutes=8,
    cases=_return_cases,
    mistakes=(
        Mistake(
            "the total return at every token",
            _total_everywhere,
            "A token cannot change what was earned before it: only rewards from its own place "
            "onward count.",
        ),
        Mistake(
            "a sum that runs forward, over past rewards",
            _forward,
            "The return is what is still to come: run from the last token to the first.",
        ),
        Mistake(
            "a discount counted from the first token",
            _discounted_from_start,
            "Each token looks ahead from its own place: its own reward has weight 1, the next γ.",
        ),
        Mistake(
            "a discount that goes on through padding, to the end of the row",
            _through_padding,
            "The distance that counts is from the token to the reward, not to the end of the "
            "padded row.",
        ),
        Mistake(
            "a sum that takes in what stands on padding",
            _padding_rewards,
            "Set the rewards to 0 where the mask is 0 before you sum.",
        ),
        Mistake(
            "returns without a mask",
            _no_mask,
            "Padding is not part of the trajectory: what stands on it adds nothing, and its own "
            "return is 0.",
        ),
        Mistake(
            "reversed sums without mask and γ",
            _reversed_sums,
            "The direction is right. What stands on padding must not be added, and a reward k "
            "tokens ahead has weight γ to the power k.",
        ),
        Mistake(
            "a return on padding, too",
            _padding_returns,
            "Padding has made no decision: its return is 0.",
        ),
        Mistake(
            "the rewards after the token, without its own",
            _without_own,
            "A token's own reward is the first thing that it earned: G_t = r_t + γ G_{t+1}.",
        ),
        Mistake(
            "returns in which the token's own reward is discounted, too",
            _discounts_own,
            "The sum begins with γ⁰ = 1: G_t = r_t + γ G_{t+1}.",
        ),
        Mistake(
            "returns that ignore γ",
            lambda rewards, mask, gamma=1.0: returns_to_go(rewards, mask),
            "A reward k tokens ahead has weight γ to the power k.",
        ),
        Mistake(
            "returns written over the rewards",
            _in_place,
            "`rewards *= …` and `rewards[:, t] += …` change the caller's tensor: make a new one.",
        ),
        Mistake(
            "a sum over the rows of the batch in place of the tokens",
            _across_rows,
            "Time runs along dim 1; rows are different completions.",
        ),
        Mistake(
            "sums of γᵗ·r divided by γᵗ, which is 0/0 for γ = 0",
            _by_division,
            "The identity holds on paper only: for small γ or long rows γᵗ underflows. The "
            "backward recursion has no division.",
            telling=1,
        ),
        Mistake(
            "a loop that stops before the first token",
            _without_first_column,
            "`range(T − 1, 0, −1)` ends at 1: the first token has a return as well.",
        ),
        Mistake(
            "undiscounted sums, multiplied by γᵗ afterwards",
            _late_discount,
            "Each reward has its own distance from the token, so the discount belongs inside "
            "the sum: G_t = r_t + γ G_{t+1}.",
        ),
        Mistake(
            "the token's own reward and the next one only",
            _one_step,
            "Add the next *return*, not the next reward: G_t = r_t + γ G_{t+1}.",
        ),
    ),
    alternatives=(_by_matrix, _by_double_loop),
    hints=(
        "Write the returns of a row of three rewards by hand, the last one first.",
        "The recursion G_t = r_t + γ G_{t+1} runs backward over the columns, starting from 0. "
        "Rewards on padding count as 0, and so do returns.",
        "Collect the columns, then turn them around:\n\n"
        "    rewards = rewards.masked_fill(~mask.bool(), 0)\n"
        "    future, returns = torch.zeros_like(rewards[:, 0]), []\n"
        "    for reward in reversed(rewards.unbind(dim=1)):\n"
        "        future = ...\n"
        "        returns.append(future)\n"
        "    return torch.stack(returns[::-1], dim=1)...",
    ),
)
