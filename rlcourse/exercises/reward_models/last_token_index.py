"""Where the scalar head reads."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.reward_models import last_token_index
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake


def _both_sides(draw: CaseSampler, rows: int, tokens: int) -> Tensor:
    """(N, T) bool: padding before the first and after the last real token."""
    starts = 1 + draw.integers(rows, high=2)
    ends = tokens - 1 - draw.integers(rows, high=2)
    positions = torch.arange(tokens)
    return (positions >= starts[:, None]) & (positions < ends[:, None])


def _index_cases(draw: CaseSampler) -> Iterator[Case]:
    worked = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()
    yield Case("worked: three tokens, and five", {"mask": worked})
    for label, _, mask in draw.batches():
        yield Case(label, {"mask": mask})
    rows, tokens = draw.size(3, 4), draw.size(7, 9)
    left = draw.mask(rows, tokens).flip(1)
    yield Case("padding on the left", {"mask": left})
    yield Case("padding on both sides", {"mask": _both_sides(draw, rows, tokens)})
    yield Case("a mask of integers", {"mask": draw.mask(3, 6).long()})


def _positions(mask: Tensor) -> Tensor:
    return torch.arange(mask.shape[1]).expand(mask.shape)


def _count(mask: Tensor) -> Tensor:
    return mask.long().sum(1)


def _first_zero(mask):
    padding = torch.cat([~mask.bool(), torch.ones(len(mask), 1) > 0], dim=1)
    return (padding.long().argmax(1) - 1).clamp(min=0)


def _before_first_zero_modulo(mask):
    return ((~mask.bool()).int().argmax(1) - 1) % mask.shape[1]


def _index_by_loop(mask):
    found = []
    for row in mask.tolist():
        real = [t for t, is_real in enumerate(row) if is_real]
        found.append(real[-1] if real else 0)
    return torch.tensor(found)


EXERCISE = Exercise(
    reference=last_token_index,
    lesson="08_reward_models",
    section="A head on the last token",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_index_cases,
    mistakes=(
        Mistake(
            "the number of real tokens, which is one too far",
            _count,
            "Counting starts at 0: a row whose three real tokens stand first ends at index 2.",
        ),
        Mistake(
            "the position before the first padding, modulo T",
            _before_first_zero_modulo,
            "Where padding stands on the left, or a row is empty, there is no position before it, "
            "and the modulo makes the last one of −1. Look for the last real token instead.",
        ),
        Mistake(
            "the number of real tokens minus 1",
            lambda mask: (_count(mask) - 1).clamp(min=0),
            "Right only where padding stands on the right: a batch of prompts with completions is "
            "padded on both sides.",
            telling=2,
        ),
        Mistake(
            "the number of real tokens minus 1, which is −1 for an empty row",
            lambda mask: _count(mask) - 1,
            "Index −1 is the last position of the row, padding; and where padding stands on the "
            "left, the count is no position at all.",
        ),
        Mistake(
            "the last real token, but −1 for an empty row",
            lambda mask: torch.where(mask.bool().any(1), last_token_index(mask), -1),
            "To torch, index −1 is the last position of the row: an empty row gets 0.",
            telling=2,
        ),
        Mistake(
            "the last real token, but the last position for an empty row",
            lambda mask: torch.where(mask.bool().any(1), last_token_index(mask), mask.shape[1] - 1),
            "An empty row gets 0. (`argmax` of zeros is 0, and counted from the right that is the "
            "last position.)",
            telling=2,
        ),
        Mistake(
            "one position beyond the last real token",
            lambda mask: last_token_index(mask) + mask.bool().any(1),
            "Positions begin at 0: with the mask turned around, the last one is T − 1 − argmax.",
        ),
        Mistake(
            "the last position of the row, padding or not",
            lambda mask: torch.full((len(mask),), mask.shape[1] - 1),
            "The hidden state there was computed on padding: the mask says where the text ends.",
        ),
        Mistake(
            "the first real token",
            lambda mask: mask.long().argmax(1),
            "There the model has read one token only: the head belongs where it has read all.",
        ),
        Mistake(
            "the position of the first padding",
            lambda mask: mask.long().argmin(1),
            "That is one too far, and 0 for a row without padding.",
        ),
        Mistake(
            "the position before the first padding",
            _first_zero,
            "Padding may stand on the left, too: look for the *last* 1.",
            telling=2,
        ),
        Mistake(
            "one index for the whole batch",
            lambda mask: (_positions(mask) * mask.bool()).max().expand(len(mask)),
            "Every row ends somewhere else, (N,): take the maximum over dimension 1.",
        ),
        Mistake(
            "the last index counted from the right",
            lambda mask: mask.flip(1).long().argmax(1),
            "Turn it back: T − 1 minus that.",
        ),
        Mistake(
            "an index that is a float",
            lambda mask: (_positions(mask) * mask.double()).amax(1),
            "Only integers can index: make the mask bool or long before you multiply.",
        ),
        Mistake(
            "an index of shape (N, 1)",
            lambda mask: last_token_index(mask)[:, None],
            "One number a row, (N,): no `keepdim`.",
        ),
    ),
    alternatives=(
        _index_by_loop,
        lambda mask: mask.bool().long().cumsum(1).argmax(1),
        lambda mask: torch.where(
            mask.bool().any(1), mask.shape[1] - 1 - mask.bool().flip(1).long().argmax(1), 0
        ),
    ),
    hints=(
        "Padding may be on either side, so counting real tokens does not say where the last one "
        "stands.",
        "Give every position its number, 0 to T − 1, set padding to 0, and take the largest.",
        "The mask may be bool or float:\n\n"
        "    positions = torch.arange(mask.shape[1], device=mask.device)\n"
        "    return (positions * mask.bool()).amax(dim=...)",
    ),
)
