"""Where a completion ends."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.policies import completion_mask
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _mask_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rows: list[list[int]], eos_id: int) -> Case:
        return Case(label, {"tokens": torch.tensor(rows), "eos_id": eos_id})

    yield case("worked: 7 8 EOS and padding", [[7, 8, 2, 2, 2], [7, 2, 2, 2, 2]], 2)
    yield case("no EOS: cut off", [[5, 6, 7, 8]], 2)
    yield case("EOS first", [[2, 5, 6, 2]], 2)
    yield case("EOS last", [[5, 6, 2]], 2)
    yield case("text after EOS", [[5, 2, 6, 7, 2, 8], [5, 6, 7, 2, 8, 9]], 2)
    yield case("rows of every kind", [[4, 4, 4], [4, 3, 4], [3, 3, 3], [4, 3, 3]], 3)
    yield case("an EOS with id 0", [[5, 0, 0, 0], [5, 6, 7, 8], [1, 5, 0, 4]], 0)
    yield case("padding with another token", [[5, 6, 2, 0, 0], [5, 6, 7, 2, 0]], 2)
    rows, tokens = draw.shape()
    yield Case("random tokens", {"tokens": draw.integers(rows, tokens, high=4), "eos_id": 1})
    side = draw.size(3, 5)
    yield Case("N equals T", {"tokens": draw.integers(side, side, high=5), "eos_id": 1})
    large = draw.integers(draw.size(7, 9), draw.size(12, 14), high=9)
    yield Case("a larger batch", {"tokens": large, "eos_id": 4})


def _by_first_in_batch(tokens, eos_id):
    columns = (tokens == eos_id).any(0)
    first = int(columns.int().argmax()) if columns.any() else tokens.shape[1]
    return (torch.arange(tokens.shape[1]) <= first).expand_as(tokens).clone()


def _by_search(tokens, eos_id):
    rows = []
    for row in tokens.tolist():
        length = row.index(eos_id) + 1 if eos_id in row else len(row)
        rows.append([t < length for t in range(len(row))])
    return torch.tensor(rows)


def _by_argmax(tokens, eos_id):
    is_eos = tokens == eos_id
    first = torch.where(is_eos.any(1), is_eos.int().argmax(1), tokens.shape[1])
    return torch.arange(tokens.shape[1]) <= first[:, None]


def _by_cumprod(tokens, eos_id):
    open_ = (tokens != eos_id).long().cumprod(1)
    return torch.cat([torch.ones_like(open_[:, :1]), open_[:, :-1]], dim=1).bool()


def line_by_line(tokens, eos_id):
    is_eos = (tokens == eos_id).long()
    seen = is_eos.cumsum(1)
    before = seen - is_eos
    mask = before == 0
    return mask


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
    reference=completion_mask,
    lesson="01_policies",
    section="Where a completion ends",
    points=2,
    difficulty=2,
    minutes=7,
    cases=_mask_cases,
    mistakes=(
        Mistake(
            "a mask without the EOS itself",
            _edit("the EOS itself", "before == 0", "seen == 0"),
            "To stop is an action, the last one: a policy that is never taught its EOS never "
            "learns to end.",
        ),
        Mistake(
            "a mask of ones, whatever the tokens",
            _edit("where it ends", "before == 0", "torch.ones_like(tokens).bool()"),
            "What stands after the first EOS was never said.",
        ),
        Mistake(
            "a mask up to the last EOS of the row",
            _edit(
                "where it ends",
                "before == 0",
                "(is_eos.flip(1).cumsum(1).flip(1) > 0) | (seen[:, -1:] == 0)",
            ),
            "The first EOS ends the completion; another one after it is padding, or noise.",
        ),
        Mistake(
            "a mask that is empty where a row has no EOS",
            _edit("rows without EOS", "before == 0", "(before == 0) & (seen[:, -1:] > 0)"),
            "Such a row was cut off at the token limit: every token of it was chosen and counts.",
        ),
        Mistake(
            "a mask by argmax, which is 0 where there is no EOS",
            _edit(
                "rows without EOS",
                "before == 0",
                "torch.arange(tokens.shape[1]) <= is_eos.argmax(1, keepdim=True)",
            ),
            "argmax of all zeros is 0, so a row without EOS keeps its first token only: treat "
            "that row separately.",
        ),
        Mistake(
            "padding inferred from the token id: every EOS is taken for padding",
            _edit("where it ends", "before == 0", "tokens != eos_id"),
            "Many models pad with EOS, and then the id cannot tell an ending from padding: the "
            "place can, the first EOS is real.",
        ),
        Mistake(
            "a mask of the EOS tokens alone",
            _edit("where it ends", "before == 0", "is_eos.bool()"),
            "These are the ends; the mask is everything up to the first of them.",
        ),
        Mistake(
            "one end for all rows: the first EOS of the batch",
            _by_first_in_batch,
            "Rows end at different places: the sums run along dim 1.",
        ),
        Mistake(
            "a count that runs down the rows in place of along the tokens",
            _edit("the dimension", "cumsum(1)", "cumsum(0)"),
            "Time runs along dim 1; another row's EOS ends nothing here.",
        ),
        Mistake(
            "a count that runs down the rows and leaves the EOS out",
            _edit("the dimension", "cumsum(1)", "cumsum(0)", "before == 0", "seen == 0"),
            "Time runs along dim 1; and the EOS itself belongs to the completion.",
        ),
        Mistake(
            "numbers in place of True and False",
            _edit("the dtype", "return mask", "return mask.long()"),
            "A mask is bool: end with a comparison, such as `eos_before == 0`.",
        ),
        Mistake(
            "a mask of 0.0 and 1.0",
            _edit("the dtype", "return mask", "return mask.float()"),
            "A mask is bool: end with a comparison, such as `eos_before == 0`.",
        ),
        Mistake(
            "a mask that ends before the second EOS in place of after the first",
            _edit("the EOS itself", "before == 0", "seen <= 1"),
            "The count is 1 on the first EOS and stays 1 on everything up to the next: a token "
            "is real if no EOS stands *before* it.",
        ),
        Mistake(
            "a mask up to the second EOS",
            _edit("where it ends", "before == 0", "before <= 1"),
            "A token is real if *no* EOS stands before it.",
        ),
        Mistake(
            "a mask in which later EOS tokens count again",
            _edit("where it ends", "before == 0", "(before == 0) | is_eos.bool()"),
            "Only the first EOS is an action; those after it are padding.",
        ),
        Mistake(
            "the mask turned around: True on padding",
            _edit("the sense", "return mask", "return ~mask"),
            "The mask is True on the tokens that count.",
        ),
    ),
    alternatives=(_by_search, _by_argmax, _by_cumprod, line_by_line),
    hints=(
        "For a single token: how can you tell from the tokens *before* it whether it is real?",
        "A token is real if no EOS stands before it. `cumsum` of (tokens == eos_id) counts how "
        "many have occurred, the token itself included.",
        "Subtract the token itself from the count:\n\n"
        "    is_eos = (tokens == eos_id).long()\n"
        "    eos_before = is_eos.cumsum(dim=1) - ...\n"
        "    return eos_before == ...",
    ),
)
