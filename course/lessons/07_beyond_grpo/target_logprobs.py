"""Where each token's log-prob should go."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
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


alternatives = (by_probabilities, by_power_of_two)
