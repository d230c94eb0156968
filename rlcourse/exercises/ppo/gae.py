"""Generalized advantage estimation."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean, returns_to_go
from rlcourse.algorithms.ppo import gae
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


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


def _estimator(
    delta=lambda r, v, nxt, gamma: r + gamma * nxt - v,
    decay=lambda gamma, lam: gamma * lam,
    last_value=torch.zeros_like,
    clean=lambda x, mask: x.masked_fill(~mask.bool(), 0),
    clean_values=None,
    reset=True,
    returns=lambda advantages, values, mask: advantages + values,
    detach=lambda x: x.detach(),
    first=0,
):  # fmt: skip
    """`gae` with one of its parts replaced."""

    def estimate(rewards, values, mask, gamma=1.0, lam=0.95):
        rewards, values = (
            clean(detach(rewards), mask),
            (clean_values or clean)(detach(values), mask),
        )
        advantage, following = torch.zeros_like(values[:, 0]), last_value(values[:, -1])
        columns = []
        for t in reversed(range(first, values.shape[1])):
            here = delta(rewards[:, t], values[:, t], following, gamma)
            advantage = here + decay(gamma, lam) * advantage
            if reset:
                advantage = advantage.masked_fill(~mask[:, t].bool(), 0)
            following = values[:, t]
            columns.append(advantage)
        columns += [torch.zeros_like(advantage)] * first
        advantages = torch.stack(columns[::-1], 1)
        return advantages, returns(advantages, values, mask)

    return estimate


_uncleaned = _estimator(clean_values=lambda values, mask: values)


def _bootstraps_past_the_end(rewards, values, mask, gamma=1.0, lam=0.95):
    """The value that stands on the first padded position counts as a next state's."""
    advantages, _ = _uncleaned(rewards, values, mask, gamma, lam)
    return advantages, (advantages + values.detach()) * mask


def _forward(rewards, values, mask, gamma=1.0, lam=0.95):
    deltas, _ = gae(rewards, values, mask, gamma, 0.0)
    advantage, columns = torch.zeros_like(deltas[:, 0]), []
    for delta in deltas.unbind(1):
        advantage = delta + gamma * lam * advantage
        columns.append(advantage)
    advantages = torch.stack(columns, 1) * mask
    return advantages, (advantages + values.detach()) * mask


def _earlier_rewards(rewards, values, mask, gamma=1.0, lam=0.95):
    shifted = torch.cat([torch.zeros_like(rewards[:, :1]), rewards[:, :-1]], 1)
    return gae(shifted, values, mask, gamma, lam)


def _later_rewards(rewards, values, mask, gamma=1.0, lam=0.95):
    rewards = rewards * mask
    shifted = torch.cat([rewards[:, 1:], torch.zeros_like(rewards[:, :1])], 1)
    return gae(shifted, values, mask, gamma, lam)


def _returns_in_place_of_advantages(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages, returns = gae(rewards, values, mask, gamma, lam)
    return returns, advantages


def _rewards_to_go(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages, _ = gae(rewards, values, mask, gamma, lam)
    return advantages, returns_to_go(rewards.detach(), mask, gamma)


def _whitened(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages, returns = gae(rewards, values, mask, gamma, lam)
    centered = (advantages - masked_mean(advantages, mask)) * mask
    return centered / (masked_mean(centered**2, mask) + 1e-8).sqrt(), returns


def _padding_rewards(rewards, values, mask, gamma=1.0, lam=0.95):
    """The recursion runs through the padding; only its results are cut off."""
    everything = torch.ones_like(mask)
    advantages, returns = gae(rewards, values, everything, gamma, lam)
    return advantages * mask, returns * mask


def _only_result_is_masked(rewards, values, mask, gamma=1.0, lam=0.95):
    """Rewards on padding count as 0, values on padding do not."""
    return _padding_rewards(rewards * mask, values, mask, gamma, lam)


def _maskless(rewards, values, mask, gamma=1.0, lam=0.95):
    return gae(rewards, values, torch.ones_like(mask), gamma, lam)


def _across_rows(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages, returns = gae(rewards.T, values.T, mask.T, gamma, lam)
    return advantages.T, returns.T


def _one_number_a_row(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages, returns = gae(rewards, values, mask, gamma, lam)
    return advantages[:, 0], returns[:, 0]


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
            _bootstraps_past_the_end,
            "After the last real token nothing more is earned: the next value there is 0.",
        ),
        Mistake(
            "an estimate that takes the last value as its own successor's",
            _estimator(last_value=lambda last: last.clone()),
            "After the last token the completion is over: start with a next value of 0.",
        ),
        Mistake(
            "a recursion that runs through the padding",
            _padding_rewards,
            "What stands on padding leaks back into real tokens: set rewards and values there to "
            "0 first, not only the results.",
        ),
        Mistake(
            "an estimate that does not know the mask",
            _maskless,
            "What stands on padding is no reward and no value: set both to 0 there, and the "
            "results, too.",
        ),
        Mistake(
            "a recursion in which only the values on padding are left in",
            _only_result_is_masked,
            "Values on padding are noise of the network: set them to 0 before you start, and "
            "restart the recursion there.",
        ),
        Mistake(
            "a recursion that runs forward",
            _forward,
            "An advantage looks at what comes *after* the token: start at the end.",
        ),
        Mistake(
            "γ and λ in each other's place",
            lambda rewards, values, mask, gamma=1.0, lam=0.95: gae(
                rewards, values, mask, gamma=lam, lam=gamma
            ),
            "γ weighs the next value inside δ; λ only weighs the later δ.",
        ),
        Mistake(
            "rewards that arrive one step late",
            _earlier_rewards,
            "r_t is what token t earned: it belongs into δ_t.",
        ),
        Mistake(
            "rewards of the next token",
            _later_rewards,
            "r_t is what token t earned, so the last reward, the score, would be lost.",
        ),
        Mistake(
            "δ without the value of the state itself",
            _estimator(delta=lambda r, v, nxt, gamma: r + gamma * nxt),
            "An advantage is what came *minus what was expected*: subtract V_t.",
        ),
        Mistake(
            "δ without the value of the next state",
            _estimator(delta=lambda r, v, nxt, gamma: r - v),
            "What is still to come is γ V_{t+1}; without it every token but the last looks bad.",
        ),
        Mistake(
            "δ with its sign turned",
            _estimator(
                delta=lambda r, v, nxt, gamma: v - r - gamma * nxt,
            ),
            "Better than expected is positive: what came minus what was expected.",
        ),
        Mistake(
            "δ in which the next value is not discounted",
            _estimator(delta=lambda r, v, nxt, gamma: r + nxt - v),
            "γ belongs to the next value, too: r + γ V_{t+1} − V_t.",
        ),
        Mistake(
            "δ in which the next value is weighed by λ",
            lambda rewards, values, mask, gamma=1.0, lam=0.95: _estimator(
                delta=lambda r, v, nxt, g: r + g * lam * nxt - v
            )(rewards, values, mask, gamma, lam),
            "λ blends estimates of different length; within one step, δ, there is only γ.",
        ),
        Mistake(
            "a recursion that decays with λ alone",
            _estimator(decay=lambda gamma, lam: lam),
            "A δ that lies k steps ahead counts (γλ)^k.",
        ),
        Mistake(
            "a recursion that decays with γ alone",
            _estimator(decay=lambda gamma, lam: gamma),
            "That is λ = 1, Monte Carlo: the δ that lie ahead are weighed by γλ.",
        ),
        Mistake(
            "δ alone: one-step TD whatever λ says",
            _estimator(decay=lambda gamma, lam: 0.0),
            "Add γλ times the advantage of the next token.",
        ),
        Mistake(
            "a λ of 0.95 whatever the argument says",
            _estimator(decay=lambda gamma, lam: 0.95 * gamma),
            "Use the argument `lam`, not its default.",
        ),
        Mistake(
            "a λ of 1 where none is given",
            lambda rewards, values, mask, gamma=1.0, lam=1.0: gae(
                rewards, values, mask, gamma, lam
            ),
            "The default is lam=0.95.",
        ),
        Mistake(
            "a γ of 0.99 where none is given",
            lambda rewards, values, mask, gamma=0.99, lam=0.95: gae(
                rewards, values, mask, gamma, lam
            ),
            "The default is gamma=1: a text is short, and its end counts as much as its beginning.",
        ),
        Mistake(
            "returns that are the rewards to go",
            _rewards_to_go,
            "With λ below 1 the critic's target is Â + V, which leans on the critic itself.",
        ),
        Mistake(
            "returns that are V − Â",
            _estimator(returns=lambda a, v, mask: v - a),
            "Â estimates the return minus V: add V to get the return back.",
        ),
        Mistake(
            "returns and advantages in each other's place",
            _returns_in_place_of_advantages,
            "Return `(advantages, returns)`, in this order.",
        ),
        Mistake(
            "the advantages twice",
            _estimator(returns=lambda a, v, mask: a),
            "The critic learns V, not the advantage: its targets are Â + V.",
        ),
        Mistake(
            "returns on padding, too",
            lambda rewards, values, mask, gamma=1.0, lam=0.95: (
                (advantages := gae(rewards, values, mask, gamma, lam)[0]),
                advantages + values.detach(),
            ),
            "There is nothing to predict after the end: both results are 0 on padding.",
        ),
        Mistake(
            "advantages that are whitened inside",
            _whitened,
            "Scaling them is another function's work, and the returns need them as they are.",
        ),
        Mistake(
            "a loop that stops before the first token",
            _estimator(first=1),
            "`range(T − 1, 0, −1)` ends at 1: the first token has an advantage as well.",
        ),
        Mistake(
            "a recursion over the rows in place of the tokens",
            _across_rows,
            "Time runs along dim 1; rows are different completions.",
        ),
        Mistake(
            "one number for each completion",
            _one_number_a_row,
            "The point of a critic is one advantage for *each token*: (N, T).",
        ),
        Mistake(
            "an estimate through which gradient flows into values and rewards",
            _estimator(detach=lambda x: x),
            "Advantages and targets are constants: with a graph the critic could lower its error "
            "by moving its own target. Detach the values.",
        ),
        Mistake(
            "an estimate that overwrites its arguments",
            _in_place,
            "`values *= mask` changes the caller's tensor: make a new one.",
        ),
    ),
    alternatives=(_by_double_sum, _by_matrix, _by_returns_first),
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
