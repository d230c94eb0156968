"""Generalized advantage estimation."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean, returns_to_go
from rlcourse.algorithms.ppo import gae
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, mask: Tensor, rewards=None, dtype=torch.float64, **options) -> Case:
        rewards = draw.normal(*mask.shape) if rewards is None else rewards
        values = draw.normal(*mask.shape)  # on padding too, where they must not matter
        arguments = {"rewards": rewards.to(dtype), "values": values.to(dtype), "mask": mask}
        return Case(label, {**arguments, **options})

    worked = {"rewards": tensor([[0.0, 0.0, 1.0]]), "values": tensor([[0.5, 0.6, 0.9]])}
    worked["mask"] = torch.ones(1, 3) > 0
    yield Case("worked: λ of ½", {**worked, "lam": 0.5})
    yield Case("worked: λ of 0, one-step TD", {**worked, "lam": 0.0})
    yield Case("worked: λ of 1, Monte Carlo", {**worked, "lam": 1.0})
    for label, logprobs, mask in draw.batches():
        yield case(label, mask, dtype=logprobs.dtype)
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    mask = draw.mask(rows, tokens)
    lam, gamma = (draw.uniform(1, low=0.3, high=0.9).item() for _ in range(2))
    yield case("another λ", mask, lam=lam)
    yield case("discounted", mask, gamma=gamma)
    yield case("discounted, another λ", mask, gamma=gamma, lam=lam)
    yield case("discounted, λ of 1", mask, gamma=gamma, lam=1.0)
    last = (torch.arange(tokens) == mask.sum(1, keepdim=True) - 1) * draw.rewards(rows)[:, None]
    yield case("a reward at the end", mask, rewards=last)
    yield case("no rewards", mask, rewards=torch.zeros(rows, tokens).double())


def _across_rows(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages, returns = gae(rewards.T, values.T, mask.T, gamma, lam)
    return advantages.T, returns.T


def _in_place(rewards, values, mask, gamma=1.0, lam=0.95):
    values *= mask
    rewards *= mask
    return gae(rewards, values, mask, gamma, lam)


def _by_double_sum(rewards, values, mask, gamma=1.0, lam=0.95):
    """Equation 16 as it stands: Σ (γλ)^k δ_{t+k}."""
    rewards, values = rewards.detach(), values.detach()
    advantages = torch.zeros_like(values)
    for i, length in enumerate(mask.sum(1).long().tolist()):
        r, v = rewards[i, :length], values[i, :length]
        following = torch.cat([v[1:], v.new_zeros(1)]) if length else v
        delta = r + gamma * following - v
        for t in range(length):
            advantages[i, t] = sum((gamma * lam) ** k * d for k, d in enumerate(delta[t:]))
    return advantages, torch.where(mask.bool(), advantages + values, 0.0)


def _by_matrix(rewards, values, mask, gamma=1.0, lam=0.95):
    rewards, values = (x.detach() * mask for x in (rewards, values))
    steps = torch.arange(values.shape[1])
    apart = steps[:, None] - steps[None, :]
    powers = torch.where(
        apart >= 0, torch.tensor(gamma * lam, dtype=torch.float64) ** apart.clamp(min=0), 0
    )
    delta = rewards - values
    delta[:, :-1] += gamma * values[:, 1:]
    advantages = (delta * mask) @ powers.to(values.dtype) * mask
    return advantages.to(values.dtype), (advantages + values).to(values.dtype)


def _by_returns_first(rewards, values, mask, gamma=1.0, lam=0.95):
    """The λ-return by its own recursion, G = r + γ((1−λ) V' + λ G'), and A = G − V."""
    with torch.no_grad():
        real = mask.to(values.dtype)
        rewards, values = rewards * real, values * real
        G = torch.zeros_like(values[:, 0])
        following, out = G, []
        for t in range(values.shape[1] - 1, -1, -1):
            G = (rewards[:, t] + gamma * ((1 - lam) * following + lam * G)) * real[:, t]
            following = values[:, t]
            out.insert(0, G)
        returns = torch.stack(out, 1)
        return returns - values, returns


def line_by_line(rewards, values, mask, gamma=1.0, lam=0.95):
    real = mask.to(values.dtype)
    r = rewards.detach() * real
    v = values.detach() * real
    following = torch.cat([v[:, 1:], torch.zeros_like(v[:, :1])], 1)
    delta = r + gamma * following - v
    advantage, columns = torch.zeros_like(v[:, 0]), []
    for t in reversed(range(v.shape[1])):
        advantage = (delta[:, t] + gamma * lam * advantage) * real[:, t]
        columns = [advantage, *columns]
    advantages = torch.stack(columns, 1)
    returns = advantages + v
    return advantages, returns


def whitened(advantages, mask):
    centered = (advantages - masked_mean(advantages, mask)) * mask
    return centered / (masked_mean(centered**2, mask) + 1e-8).sqrt()


_edit = Sketch(line_by_line, whitened, returns_to_go).edit
_returned = partial(_edit, "what is returned", "return advantages, returns")
_rewards = partial(_edit, "the rewards", "following =")


EXERCISE = Exercise(
    reference=gae,
    lesson="05_ppo",
    section="Between one step and the end",
    points=5,
    difficulty=4,
    minutes=12,
    constants=("rewards", "values"),
    cases=_cases,
    oracle=_by_double_sum,
    mistakes=(
        Mistake(
            "an estimate that looks past the end, at a value on padding",
            _edit(
                "the padding",
                "values.detach() * real",
                "values.detach()",
                "advantages + v",
                "(advantages + v) * real",
            ),
            "After the last real token nothing more is earned: the next value there is 0.",
        ),
        Mistake(
            "an estimate that takes the last value as its own successor's",
            _edit("the value after the end", "torch.zeros_like(v[:, :1])", "v[:, -1:]"),
            "After the last token the completion is over: start with a next value of 0.",
        ),
        Mistake(
            "a recursion that runs through the padding",
            _edit(
                "the padding",
                "rewards.detach() * real",
                "rewards.detach()",
                "values.detach() * real",
                "values.detach()",
                "(delta[:, t] + gamma * lam * advantage) * real[:, t]",
                "delta[:, t] + gamma * lam * advantage",
                "torch.stack(columns, 1)",
                "torch.stack(columns, 1) * real",
                "advantages + v",
                "(advantages + v) * real",
            ),
            "What stands on padding leaks back into real tokens: set rewards and values there to "
            "0 first, not only the results.",
        ),
        Mistake(
            "an estimate that does not know the mask",
            _edit("the padding", "mask.to(values.dtype)", "torch.ones_like(values).detach()"),
            "What stands on padding is no reward and no value: set both to 0 there, and the "
            "results, too.",
        ),
        Mistake(
            "a recursion in which only the values on padding are left in",
            _edit(
                "the padding",
                "values.detach() * real",
                "values.detach()",
                "(delta[:, t] + gamma * lam * advantage) * real[:, t]",
                "delta[:, t] + gamma * lam * advantage",
                "torch.stack(columns, 1)",
                "torch.stack(columns, 1) * real",
                "advantages + v",
                "(advantages + v) * real",
            ),
            "Values on padding are noise of the network: set them to 0 before you start, and "
            "restart the recursion there.",
        ),
        Mistake(
            "a recursion that runs forward",
            _edit(
                "the direction of the recursion",
                "reversed(range(v.shape[1]))",
                "range(v.shape[1])",
                "[advantage, *columns]",
                "[*columns, advantage]",
            ),
            "An advantage looks at what comes *after* the token: start at the end.",
        ),
        Mistake(
            "γ and λ in each other's place",
            _edit("δ: the next value", "gamma * following", "lam * following"),
            "γ weighs the next value inside δ; λ only weighs the later δ.",
        ),
        Mistake(
            "rewards that arrive one step late",
            _rewards("r = torch.cat([0 * r[:, :1], r[:, :-1]], 1) * real\n    following ="),
            "r_t is what token t earned: it belongs into δ_t.",
        ),
        Mistake(
            "rewards of the next token",
            _rewards("r = torch.cat([r[:, 1:], 0 * r[:, :1]], 1)\n    following ="),
            "r_t is what token t earned, so the last reward, the score, would be lost.",
        ),
        Mistake(
            "δ without the value of the state itself",
            _edit("δ: the state's own value", "following - v", "following"),
            "An advantage is what came *minus what was expected*: subtract V_t.",
        ),
        Mistake(
            "δ without the value of the next state",
            _edit("δ: the next value", " + gamma * following", ""),
            "What is still to come is γ V_{t+1}; without it every token but the last looks bad.",
        ),
        Mistake(
            "δ with its sign turned",
            _edit("δ: its sign", "delta[:, t]", "-delta[:, t]"),
            "Better than expected is positive: what came minus what was expected.",
        ),
        Mistake(
            "δ in which the next value is not discounted",
            _edit("δ: the next value", "gamma * following", "following"),
            "γ belongs to the next value, too: r + γ V_{t+1} − V_t.",
        ),
        Mistake(
            "δ in which the next value is weighed by λ",
            _edit("δ: the next value", "gamma * following", "gamma * lam * following"),
            "λ blends estimates of different length; within one step, δ, there is only γ.",
        ),
        Mistake(
            "a recursion that decays with λ alone",
            _edit("the decay", "gamma * lam *", "lam *"),
            "A δ that lies k steps ahead counts (γλ)^k.",
        ),
        Mistake(
            "a recursion that decays with γ alone",
            _edit("the decay", "gamma * lam *", "gamma *"),
            "That is λ = 1, Monte Carlo: the δ that lie ahead are weighed by γλ.",
        ),
        Mistake(
            "δ alone: one-step TD whatever λ says",
            _edit("the decay", "gamma * lam *", "0 *"),
            "Add γλ times the advantage of the next token.",
        ),
        Mistake(
            "a λ of 0.95 whatever the argument says",
            _edit("the decay", "gamma * lam *", "0.95 * gamma *"),
            "Use the argument `lam`, not its default.",
        ),
        Mistake(
            "a λ of 1 where none is given",
            _edit("the defaults: λ", "lam=0.95", "lam=1.0"),
            "The default is lam=0.95.",
        ),
        Mistake(
            "a γ of 0.99 where none is given",
            _edit("the defaults: γ", "gamma=1.0", "gamma=0.99"),
            "The default is gamma=1: a text is short, and its end counts as much as its beginning.",
        ),
        Mistake(
            "returns that are the rewards to go",
            _edit("the returns", "advantages + v", "returns_to_go(r, mask, gamma)"),
            "With λ below 1 the critic's target is Â + V, which leans on the critic itself.",
        ),
        Mistake(
            "returns that are V − Â",
            _edit("the returns", "advantages + v", "v - advantages"),
            "Â estimates the return minus V: add V to get the return back.",
        ),
        Mistake(
            "returns and advantages in each other's place",
            _returned("return returns, advantages"),
            "Return `(advantages, returns)`, in this order.",
        ),
        Mistake(
            "the advantages twice",
            _edit("the returns", "advantages + v", "advantages"),
            "The critic learns V, not the advantage: its targets are Â + V.",
        ),
        Mistake(
            "returns on padding, too",
            _edit("the returns", "advantages + v", "advantages + values.detach()"),
            "There is nothing to predict after the end: both results are 0 on padding.",
        ),
        Mistake(
            "advantages that are whitened inside",
            _returned("return whitened(advantages, mask), returns"),
            "Scaling them is another function's work, and the returns need them as they are.",
        ),
        Mistake(
            "a loop that stops before the first token",
            _edit(
                "the loop",
                "reversed(range(v",
                "reversed(range(1, v",
                "torch.stack(columns, 1)",
                "torch.stack([0 * advantage, *columns], 1)",
            ),
            "`range(T − 1, 0, −1)` ends at 1: the first token has an advantage as well.",
        ),
        Mistake(
            "a recursion over the rows in place of the tokens",
            _across_rows,
            "Time runs along dim 1; rows are different completions.",
        ),
        Mistake(
            "one number for each completion",
            _returned("return advantages[:, 0], returns[:, 0]"),
            "The point of a critic is one advantage for *each token*: (N, T).",
        ),
        Mistake(
            "an estimate through which gradient flows into values and rewards",
            _edit("the constants", "rewards.detach()", "rewards", "values.detach()", "values"),
            "Advantages and targets are constants: with a graph the critic could lower its error "
            "by moving its own target. Detach the values.",
        ),
        Mistake(
            "an estimate that overwrites its arguments",
            _in_place,
            "`values *= mask` changes the caller's tensor: make a new one.",
        ),
        Mistake(
            "δ weighed by 1 − λ",
            _edit("δ: its weight", "(delta[:, t] +", "((1 - lam) * delta[:, t] +"),
            "That factor belongs to the sum of n-step estimates; written with δ it has cancelled: "
            "Â_t = δ_t + γλ Â_{t+1}.",
        ),
    ),
    alternatives=(_by_double_sum, _by_matrix, _by_returns_first, line_by_line),
    hints=(
        "Write three tokens by hand, the last one first: δ₂ = r₂ − V₂, since nothing comes after. "
        "Then δ₁, and Â₁ = δ₁ + γλ Â₂.",
        "Set rewards and values to 0 on padding, detach them, and loop over the columns backward "
        "with two running tensors, the next value and the next advantage, both 0 at first. Keep "
        "the advantage 0 on padding.",
        "Collect the columns, then turn them around:\n\n"
        "    padding = ~mask.bool()\n"
        "    rewards = rewards.detach().masked_fill(padding, 0)\n"
        "    values = ...\n"
        "    advantage = next_value = torch.zeros_like(values[:, 0])\n"
        "    advantages = []\n"
        "    for t in reversed(range(values.shape[1])):\n"
        "        delta = ...\n"
        "        advantage = (delta + ...).masked_fill(padding[:, t], 0)\n"
        "        next_value = ...\n"
        "        advantages.append(advantage)\n"
        "    advantages = torch.stack(advantages[::-1], dim=1)\n"
        "    return advantages, ...",
    ),
)
