"""What the exercises of this lesson share: rows whose steps have so many tokens."""

from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, mask_of


def tokens_of(lengths: list[list[int]]) -> tuple[Tensor, Tensor]:
    """The ids and the mask of rows whose steps have so many tokens."""
    rows = [[s for s, n in enumerate(steps) for _ in range(n)] for steps in lengths]
    width = max(map(len, rows)) + 1
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return ids, mask_of(torch.tensor([len(row) for row in rows]), width)


def with_ids_on_padding(case: Case) -> Case:
    """The same case with ids that go on in the padding."""
    mask, ids = case.arguments["mask"], case.arguments["ids"]
    return replace(case, arguments=case.arguments | {"ids": torch.where(mask, ids, 2)})


def in_dtype(case: Case, dtype: torch.dtype, *names: str) -> Case:
    """The same case with the arguments `names` in another precision."""
    changed = {name: case.arguments[name].to(dtype) for name in names}
    return replace(case, arguments=case.arguments | changed)
