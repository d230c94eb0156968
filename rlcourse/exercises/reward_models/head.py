"""Where the scalar head reads, and how often it is right."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.reward_models import last_token_index, reward_accuracy
from rlcourse.exercises.calling import Case
from rlcourse.exercises.cases import Draw, tensor
from rlcourse.exercises.exercise import Exercise, Mistake


def _both_sides(draw: Draw, rows: int, tokens: int) -> Tensor:
    """(N, T) bool: padding before the first and after the last real token."""
    starts = 1 + draw.integers(rows, high=2)
    ends = tokens - 1 - draw.integers(rows, high=2)
    positions = torch.arange(tokens)
    return (positions >= starts[:, None]) & (positions < ends[:, None])


def _index_cases(draw: Draw) -> Iterator[Case]:
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


def _index_by_loop(mask):
    found = []
    for row in mask.tolist():
        real = [t for t, is_real in enumerate(row) if is_real]
        found.append(real[-1] if real else 0)
    return torch.tensor(found)


LAST_TOKEN_INDEX = Exercise(
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
            "the number of real tokens minus 1",
            lambda mask: (_count(mask) - 1).clamp(min=0),
            "Right only where padding stands on the right: a batch of prompts with completions is "
            "padded on both sides.",
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
        ),
        Mistake(
            "the last real token, but the last position for an empty row",
            lambda mask: torch.where(mask.bool().any(1), last_token_index(mask), mask.shape[1] - 1),
            "An empty row gets 0. (`argmax` of zeros is 0, and counted from the right that is the "
            "last position.)",
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


def _accuracy_cases(draw: Draw) -> Iterator[Case]:
    def case(label: str, chosen: Tensor, rejected: Tensor) -> Case:
        """In float32, as a model gives rewards; then a share needs no thought of precision."""
        return Case(label, {"chosen": chosen.float(), "rejected": rejected.float()})

    worked = tensor([2.0, 0.1, -1.0, 3.0]), tensor([1.0, 0.5, -2.0, 0.0])
    yield case("worked: three of four", *worked)
    yield case("ties", tensor([1.0, 1.0, 0.0, 2.0]), tensor([1.0, 0.0, 0.0, 1.0]))
    yield case("all equal", torch.zeros(3), torch.zeros(3))
    yield case("one wrong by far", tensor([1.0, 1.1, -50.0]), tensor([0.9, 1.0, 2.0]))
    yield case("all negative", -tensor([1.0, 2.0, 3.0, 4.0]), -tensor([2.0, 1.5, 4.0, 5.0]))
    for n in (1, draw.size(5, 9), draw.size(11, 15)):
        yield case(f"{n} random pairs", draw.normal(n), draw.normal(n))


def _half_ties(chosen, rejected):
    return reward_accuracy(chosen, rejected) + 0.5 * (chosen == rejected).to(chosen.dtype).mean()


REWARD_ACCURACY = Exercise(
    reference=reward_accuracy,
    lesson="08_reward_models",
    section="Is it any good?",
    points=1,
    difficulty=1,
    minutes=3,
    cases=_accuracy_cases,
    mistakes=(
        Mistake(
            "a share in which ties count as right",
            lambda chosen, rejected: (chosen >= rejected).to(chosen.dtype).mean(),
            "A model that gives everything the same reward knows nothing, and would score 1.",
        ),
        Mistake(
            "a share in which ties count half",
            _half_ties,
            "Sensible, too, but not what is asked: a tie is not the right order.",
        ),
        Mistake(
            "the share of wrong orders",
            lambda chosen, rejected: (chosen < rejected).to(chosen.dtype).mean(),
            "Right is where the chosen answer has the larger reward.",
        ),
        Mistake(
            "the number of right orders",
            lambda chosen, rejected: (chosen > rejected).to(chosen.dtype).sum(),
            "Divide by the number of pairs: the mean of zeros and ones is a share.",
        ),
        Mistake(
            "the mean gap",
            lambda chosen, rejected: (chosen - rejected).mean(),
            "A single large gap would outweigh many wrong orders: count orders.",
        ),
        Mistake(
            "the mean probability of the right order",
            lambda chosen, rejected: (chosen - rejected).sigmoid().mean(),
            "Accuracy counts decisions; the probability says how sure they were.",
        ),
        Mistake(
            "the share of chosen answers with a positive reward",
            lambda chosen, rejected: (chosen > 0).to(chosen.dtype).mean(),
            "A reward has no zero of its own: compare the two of a pair.",
        ),
        Mistake(
            "a comparison of the mean rewards",
            lambda chosen, rejected: (chosen.mean() > rejected.mean()).to(chosen.dtype),
            "Each pair is one decision, right or wrong.",
        ),
        Mistake(
            "every chosen answer against every rejected one",
            lambda chosen, rejected: (chosen[:, None] > rejected).to(chosen.dtype).mean(),
            "Rewards of different prompts cannot be compared: row i meets row i only.",
        ),
        Mistake(
            "one decision a pair, without the mean",
            lambda chosen, rejected: (chosen > rejected).to(chosen.dtype),
            "One number is asked for: the share.",
        ),
        Mistake(
            "a balance from −1 to 1",
            lambda chosen, rejected: (chosen - rejected).sign().mean(),
            "That is right orders minus wrong ones; the share of right ones is asked for.",
        ),
    ),
    alternatives=(
        lambda chosen, rejected: ((chosen - rejected).sign() == 1).to(chosen.dtype).mean(),
        lambda chosen, rejected: chosen.new_tensor(
            sum(bool(a > b) for a, b in zip(chosen, rejected, strict=True)) / len(chosen)
        ),
    ),
    hints=(
        "In how many pairs is the chosen answer's reward the larger one?",
        "A comparison gives True and False; as floats they are 1 and 0, and their mean is a share.",
        "One line:\n\n    return (... > ...).float().mean()",
    ),
)
