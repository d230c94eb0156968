"""Where each token's log-prob should go."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import target_logprobs
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, old_logprobs, advantages) -> Case:
        return Case(label, {"old_logprobs": old_logprobs, "advantages": advantages})

    quarter = tensor([[0.25], [0.25], [0.25]]).log()
    yield case("worked: a quarter", quarter, tensor([1.0, 0.0, -1.0]))
    rows, tokens = draw.shape()
    yield case("random tokens", draw.logprobs(rows, tokens), draw.rewards(rows))
    signs = tensor([1.0, -1.0, 0.0, 1.0])
    yield case("signs", draw.logprobs(4, draw.size(5, 6)), signs)
    side = draw.size(3, 4)
    yield case("N equals T", draw.logprobs(side, side), draw.rewards(side))
    mixed = tensor([1.0, -1.0, 0.0])
    yield case("N equals T, all three signs", draw.logprobs(3, 3), mixed)
    per_token = draw.rewards(rows * tokens).reshape(rows, tokens)
    yield case("an advantage for every token", draw.logprobs(rows, tokens), per_token)
    yield case("a certain token", tensor([[0.0, -1.0]]), tensor([1.0]))
    yield case("an unlikely token", tensor([[-40.0, -800.0]]), tensor([1.0]))
    yield case("an unlikely token, blamed", tensor([[-40.0, -800.0]]), tensor([-1.0]))
    yield case("a small advantage", draw.logprobs(2, 3), tensor([0.01, -0.01]))
    yield case("no advantage", draw.logprobs(2, 3), tensor([0.0, 0.0]))
    yield case("float32", draw.logprobs(rows, tokens).float(), draw.rewards(rows).float())


def _columns(advantages):
    return advantages[:, None] if advantages.dim() == 1 else advantages


def _pick(old_logprobs, advantages, good, bad, none=lambda x: x):
    a = _columns(advantages)
    moved = torch.where(a < 0, bad(old_logprobs), none(old_logprobs))
    return torch.where(a > 0, good(old_logprobs), moved)


def _half(x):
    return 0.5 * x


def _double(x):
    return 2 * x


def _along_tokens(old_logprobs, advantages):
    a = advantages
    return old_logprobs * torch.where(a > 0, 0.5, torch.where(a < 0, 2.0, 1.0)).to(old_logprobs)


def by_probabilities(old_logprobs, advantages):
    """As it is said, in logarithms of powers."""
    a = _columns(advantages).expand_as(old_logprobs)
    target = old_logprobs.clone()
    target[a > 0] = old_logprobs[a > 0] / 2
    target[a < 0] = old_logprobs[a < 0] * 2
    return target


def by_power_of_two(old_logprobs, advantages):
    return old_logprobs * torch.exp2(-_columns(advantages).sign())


def by_loop(old_logprobs, advantages):
    result = torch.empty_like(old_logprobs)
    for i in range(old_logprobs.shape[0]):
        for t in range(old_logprobs.shape[1]):
            a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
            result[i, t] = old_logprobs[i, t] * (0.5 if a > 0 else 2.0 if a < 0 else 1.0)
    return result


EXERCISE = Exercise(
    reference=target_logprobs,
    lesson="07_beyond_grpo",
    section="Say where to",
    points=2,
    difficulty=2,
    minutes=8,
    cases=_cases,
    mistakes=(
        Mistake(
            "the square for good tokens and the root for bad ones",
            lambda old_logprobs, advantages: _pick(old_logprobs, advantages, _double, _half),
            "A probability is below 1: its *root* is larger, its square smaller.",
        ),
        Mistake(
            "probabilities in place of their logarithms",
            lambda old_logprobs, advantages: target_logprobs(old_logprobs, advantages).exp(),
            "The result is a log-prob, as everywhere: half of one is that of the root.",
        ),
        Mistake(
            "the root of the log-prob",
            lambda old_logprobs, advantages: _pick(
                old_logprobs, advantages, torch.sqrt, torch.square
            ),
            "The root is of the probability: its logarithm is *half* the log-prob.",
        ),
        Mistake(
            "twice the probability for good tokens and half of it for bad ones",
            lambda old_logprobs, advantages: _pick(
                old_logprobs,
                advantages,
                lambda x: x + 0.6931471805599453,
                lambda x: x - 0.6931471805599453,
            ),
            "Twice a probability can pass 1, its root cannot.",
        ),
        Mistake(
            "a token without advantage treated as bad",
            lambda old_logprobs, advantages: _pick(
                old_logprobs, advantages, _half, _double, _double
            ),
            "Where the advantage is 0 nothing is known: the target is where the token is.",
        ),
        Mistake(
            "a token without advantage treated as good",
            lambda old_logprobs, advantages: _pick(old_logprobs, advantages, _half, _double, _half),
            "Where the advantage is 0 nothing is known: the target is where the token is.",
        ),
        Mistake(
            "advantages laid along the tokens",
            _along_tokens,
            "(N,) against (N, T) lines up with T: write `advantages[:, None]`.",
        ),
        Mistake(
            "an exponent that depends on the size of the advantage",
            lambda old_logprobs, advantages: old_logprobs * torch.exp2(-_columns(advantages)),
            "Only the sign counts: root or square, nothing between.",
        ),
        Mistake(
            "good tokens moved, bad ones left alone",
            lambda old_logprobs, advantages: _pick(old_logprobs, advantages, _half, lambda x: x),
            "A negative advantage has a target, too: the square.",
        ),
        Mistake(
            "good tokens moved all the way to certainty",
            lambda old_logprobs, advantages: _pick(
                old_logprobs, advantages, lambda x: 0 * x, _double
            ),
            "Log-prob 0 is probability 1: the target is half the log-prob.",
        ),
        Mistake(
            "a logarithm of a power that underflows",
            lambda old_logprobs, advantages: _pick(
                old_logprobs,
                advantages,
                lambda x: x.exp().sqrt().log(),
                lambda x: x.exp().square().log(),
            ),
            "e⁻⁸⁰⁰ is 0 for the computer: multiply the log-prob, and never leave the logarithms.",
            telling=2,
        ),
        Mistake(
            "the change of the log-prob, not where it should go",
            lambda old_logprobs, advantages: (
                target_logprobs(old_logprobs, advantages) - old_logprobs
            ),
            "The target itself is asked for.",
        ),
    ),
    alternatives=(by_probabilities, by_power_of_two, by_loop),
    hints=(
        "What do a root and a square of a probability do to its logarithm?",
        "The log-prob is multiplied by ½, by 2, or by 1, as the advantage is positive, negative, "
        "or zero. `torch.where` chooses.",
        "An exponent for every row (or token):\n\n"
        "    if advantages.dim() == 1:\n"
        "        advantages = advantages[:, None]\n"
        "    exponent = torch.where(advantages > 0, ..., torch.where(advantages < 0, ..., ...))\n"
        "    return old_logprobs * exponent.to(old_logprobs.dtype)",
    ),
)
