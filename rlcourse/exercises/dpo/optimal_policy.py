"""The policy that maximizes reward on a KL leash, in closed form."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.dpo import optimal_policy
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _optimum_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, ref_probs: Tensor, rewards: Tensor, beta: float) -> Case:
        return Case(label, {"ref_probs": ref_probs, "rewards": rewards, "beta": beta})

    lesson = tensor([0.5, 0.3, 0.2])
    yield case("worked: only B pays, β = 1", lesson, tensor([0.0, 1.0, 0.0]), 1.0)
    yield case("worked: only B pays, β = 0.5", lesson, tensor([0.0, 1.0, 0.0]), 0.5)
    yield case("equal rewards change nothing", lesson, tensor([2.0, 2.0, 2.0]), 0.3)
    uniform = torch.full((4,), 0.25).double()
    yield case("a uniform reference", uniform, draw.rewards(4), 0.7)
    for size, beta in ((draw.size(3, 5), 0.4), (draw.size(6, 9), 2.5), (2, 1.0)):
        yield case(f"β = {beta}", draw.probabilities(size), draw.rewards(size), beta)
    yield case("a short leash, β = 50", draw.probabilities(4), draw.rewards(4), 50.0)
    yield case("rewards of ±1000", lesson, tensor([-1000.0, 1000.0, 999.0]), 0.5)
    never = tensor([0.6, 0.4, 0.0])
    yield case("an answer that the reference never gives", never, tensor([0.0, 0.5, 60.0]), 1.0)
    tempting = tensor([0.0, 0.5, 60.0])  # by the last one, which cannot happen
    yield case("an answer that the reference never gives, β = 0.05", never, tempting, 0.05)
    yield case("float32", draw.probabilities(5).float(), draw.rewards(5).float(), 0.5)


def _normalized(weights: Tensor) -> Tensor:
    return weights / weights.sum()


def _greedy(ref_probs, rewards, beta):
    return (torch.arange(len(rewards)) == rewards.argmax()).to(ref_probs.dtype)


def _shifted_by_any(ref_probs, rewards, beta):
    return _normalized(ref_probs * torch.exp((rewards - rewards.max()) / beta))


def _by_maximum(ref_probs, rewards, beta):
    shifted = rewards - rewards[ref_probs > 0].max()
    return _normalized(ref_probs * torch.exp(shifted.clamp(max=0) / beta))


def _by_logsumexp(ref_probs, rewards, beta):
    scores = ref_probs.double().log() + rewards.double() / beta
    return torch.exp(scores - scores.logsumexp(dim=0)).to(ref_probs.dtype)


def _by_loop(ref_probs, rewards, beta):
    pairs = list(zip(ref_probs, rewards, strict=True))
    top = max(r for p, r in pairs if p > 0)
    weights = [p * torch.exp((r - top) / beta) if p > 0 else p for p, r in pairs]
    return torch.stack([weight / sum(weights) for weight in weights])


EXERCISE = Exercise(
    reference=optimal_policy,
    lesson="09_dpo",
    section="The best policy on a leash",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_optimum_cases,
    oracle=_by_logsumexp,
    mistakes=(
        Mistake(
            "exp(β r) in place of exp(r/β)",
            lambda ref_probs, rewards, beta: (ref_probs.log() + rewards * beta).softmax(-1),
            "A large β is a short leash: the reward must count *less* as β grows, so it is "
            "divided by β.",
        ),
        Mistake(
            "the softmax of r/β, without the reference",
            lambda ref_probs, rewards, beta: (rewards / beta).softmax(-1),
            "The leash is tied to πref: what the reference favors, the optimum favors too.",
        ),
        Mistake(
            "the best answer, always",
            _greedy,
            "That is the optimum without a leash (β → 0): at any β > 0 moving all probability "
            "costs KL.",
        ),
        Mistake(
            "the softmax of πref + r/β, with the logarithm forgotten",
            lambda ref_probs, rewards, beta: (ref_probs + rewards / beta).softmax(-1),
            "A factor πref in front of the exponential is log πref inside it.",
        ),
        Mistake(
            "the softmax of πref times r/β",
            lambda ref_probs, rewards, beta: (ref_probs * rewards / beta).softmax(-1),
            "πref stands in front of the exponential, not in the exponent: there it becomes a sum, "
            "log πref + r/β.",
        ),
        Mistake(
            "πref · exp(r/β), not normalized",
            lambda ref_probs, rewards, beta: ref_probs * torch.exp(rewards / beta),
            "Probabilities sum to 1: divide by the sum Z.",
        ),
        Mistake(
            "πref · softmax(r/β), not normalized",
            lambda ref_probs, rewards, beta: ref_probs * (rewards / beta).softmax(-1),
            "The product of two distributions is none: divide by its sum, after multiplying.",
        ),
        Mistake(
            "πref · exp(r/β) / Z with an exponential that overflows",
            lambda ref_probs, rewards, beta: _normalized(ref_probs * torch.exp(rewards / beta)),
            "exp(2000) is infinite, and infinity over infinity is NaN: add log πref and r/β, and "
            "let `softmax` subtract the largest.",
            telling=2,
        ),
        Mistake(
            "πref · exp((r − max r)/β) / Z, with the maximum at an answer that πref never gives",
            _shifted_by_any,
            "Then all that can happen has exp(−1200), which is 0, and 0/0 is NaN: subtract the "
            "largest log πref + r/β, as `softmax` does.",
            telling=1,
        ),
        Mistake(
            "β on the reference's logarithm alone",
            lambda ref_probs, rewards, beta: (beta * ref_probs.log() + rewards).softmax(-1),
            "Multiplying the whole exponent log πref + r/β by β gives another distribution; only "
            "the reward is divided.",
        ),
        Mistake(
            "β ignored",
            lambda ref_probs, rewards, beta: (ref_probs.log() + rewards).softmax(-1),
            "β says how long the leash is: the reward is divided by it.",
        ),
        Mistake(
            "the minus of the penalty kept: exp(−r/β)",
            lambda ref_probs, rewards, beta: (ref_probs.log() - rewards / beta).softmax(-1),
            "Better answers must become likelier: the exponent is +r/β.",
        ),
        Mistake(
            "the log-probabilities of the optimum",
            lambda ref_probs, rewards, beta: (ref_probs.log() + rewards / beta).log_softmax(-1),
            "Probabilities are asked for, which sum to 1: `softmax`, not `log_softmax`.",
        ),
        Mistake(
            "a reference with a small number added to avoid log 0",
            lambda ref_probs, rewards, beta: ((ref_probs + 1e-8).log() + rewards / beta).softmax(
                -1
            ),
            "What the reference never says, the optimum never says, whatever it would earn; and "
            "log 0 = −∞ is harmless in a softmax.",
            telling=2,
        ),
    ),
    alternatives=(_by_maximum, _by_logsumexp, _by_loop),
    hints=(
        "π*(y) is proportional to πref(y) exp(r(y)/β). What makes it a distribution?",
        "To be safe from overflow work with logarithms: log πref + r/β, plus a constant. Which "
        "torch function exponentiates and normalizes at once?",
        "One line:\n\n    return (ref_probs.log() + ...).softmax(dim=-1)",
    ),
)
