"""What each token of a completion can still earn."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policies import returns_to_go
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


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


def line_by_line(rewards, mask, gamma=1.0):
    r = rewards * mask
    future, columns = torch.zeros_like(r[:, 0]), []
    for t in reversed(range(r.shape[1])):
        future = r[:, t] + gamma * future
        columns = [future, *columns]
    returns = torch.stack(columns, 1)
    return returns * mask


def discounts(rewards, gamma):
    return gamma ** torch.arange(rewards.shape[1]).to(rewards)


def last_reward(rewards, mask):
    return rewards.gather(1, (mask.long().sum(1, keepdim=True) - 1).clamp(min=0))


_edit = Sketch(line_by_line, last_reward, discounts).edit
_counted = partial(_edit, "the rewards that count", "torch.stack(columns, 1)")


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
            _counted("torch.stack(columns, 1)[:, :1] * torch.ones_like(r)"),
            "A token cannot change what was earned before it: only rewards from its own place "
            "onward count.",
        ),
        Mistake(
            "a sum that runs forward, over past rewards",
            _edit(
                "the direction",
                "reversed(range(r.shape[1]))",
                "range(r.shape[1])",
                "[future, *columns]",
                "[*columns, future]",
            ),
            "The return is what is still to come: run from the last token to the first.",
        ),
        Mistake(
            "a discount counted from the first token",
            _edit(
                "the discount",
                "r[:, t] + gamma * future",
                "discounts(r, gamma)[t] * r[:, t] + future",
            ),
            "Each token looks ahead from its own place: its own reward has weight 1, the next γ.",
        ),
        Mistake(
            "a discount that goes on through padding, to the end of the row",
            _edit(
                "the discount",
                "gamma * future",
                "future",
                "torch.stack(columns, 1)",
                "torch.stack(columns, 1) * discounts(r, gamma).flip(0)",
            ),
            "The distance that counts is from the token to the reward, not to the end of the "
            "padded row.",
        ),
        Mistake(
            "a sum that takes in what stands on padding",
            _edit("the padding: its rewards", "r = rewards * mask", "r = rewards"),
            "Set the rewards to 0 where the mask is 0 before you sum.",
        ),
        Mistake(
            "returns without a mask",
            _edit(
                "the padding: its rewards",
                "r = rewards * mask",
                "r = rewards",
                "returns * mask",
                "returns",
            ),
            "Padding is not part of the trajectory: what stands on it adds nothing, and its own "
            "return is 0.",
        ),
        Mistake(
            "reversed sums without mask and γ",
            _edit(
                "the padding: its rewards",
                "r = rewards * mask",
                "r = rewards",
                "gamma * future",
                "future",
                "returns * mask",
                "returns",
            ),
            "The direction is right. What stands on padding must not be added, and a reward k "
            "tokens ahead has weight γ to the power k.",
        ),
        Mistake(
            "a return on padding, too",
            _edit(
                "the padding: its return",
                "returns * mask",
                "torch.where(mask.bool(), returns, last_reward(rewards, mask))",
            ),
            "Padding has made no decision: its return is 0.",
        ),
        Mistake(
            "the rewards after the token, without its own",
            _counted("torch.stack(columns, 1) - r"),
            "A token's own reward is the first thing that it earned: G_t = r_t + γ G_{t+1}.",
        ),
        Mistake(
            "returns in which the token's own reward is discounted, too",
            _edit("the discount: of one's own reward", "columns = [", "columns = [gamma * "),
            "The sum begins with γ⁰ = 1: G_t = r_t + γ G_{t+1}.",
        ),
        Mistake(
            "returns that ignore γ",
            _edit("the discount", "gamma * future", "future"),
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
            _edit(
                "the loop",
                "reversed(range(r.",
                "reversed(range(1, r.",
                "torch.stack(columns, 1)",
                "torch.stack([0 * future, *columns], 1)",
            ),
            "`range(T − 1, 0, −1)` ends at 1: the first token has a return as well.",
        ),
        Mistake(
            "undiscounted sums, multiplied by γᵗ afterwards",
            _edit(
                "the discount",
                "gamma * future",
                "future",
                "torch.stack(columns, 1)",
                "torch.stack(columns, 1) * discounts(r, gamma)",
            ),
            "Each reward has its own distance from the token, so the discount belongs inside "
            "the sum: G_t = r_t + γ G_{t+1}.",
        ),
        Mistake(
            "the token's own reward and the next one only",
            _counted("r + gamma * torch.cat([r[:, 1:], 0 * r[:, :1]], 1)"),
            "Add the next *return*, not the next reward: G_t = r_t + γ G_{t+1}.",
        ),
        Mistake(
            "a plain cumulative sum, without γ",
            lambda rewards, mask, gamma=1.0: rewards.masked_fill(~mask.bool(), 0).cumsum(1) * mask,
            "It sums what is *past*, and a token can still influence only what comes: begin at "
            "the end, and multiply what follows by γ.",
        ),
    ),
    alternatives=(_by_matrix, _by_double_loop, line_by_line),
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
