"""Whether an update has changed the weights at all."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from rlcourse.algorithms.three_policies import changed_share
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, before, after) -> Case:
        return Case(label, {"before": before, "after": after})

    yield case("worked: one number of ten", [torch.zeros(9), torch.zeros(1)],
               [torch.zeros(9), torch.ones(1)])  # fmt: skip
    ones = torch.ones(4).bfloat16()
    yield case("worked: 1 + 0.003 in bfloat16", [ones], [ones + 0.003])
    for label, shapes in (
        ("one matrix", [(draw.size(2, 4), 5)]),
        ("a matrix and a vector", [(draw.size(3, 4), 5), (draw.size(2, 3),)]),
        ("layers of many sizes", [(2, 3), (8, 5), (1,), (4,), (3, 3, 2)]),
    ):
        before = [draw.normal(*shape) for shape in shapes]
        kept = [draw.uniform(*shape) < 0.6 for shape in shapes]
        kept[0].view(-1)[0] = False
        kept[-1].view(-1)[-1] = True
        step = [draw.normal(*shape) for shape in shapes]
        after = [torch.where(k, b, b + s) for k, b, s in zip(kept, before, step, strict=True)]
        yield case(label, before, after)
        tiny = [torch.where(k, b, b + 1e-9 * s) for k, b, s in zip(kept, before, step, strict=True)]
        yield case(f"{label}, tiny steps", before, tiny)
    before = [draw.normal(4, 3), draw.normal(7)]
    yield case("nothing changed", before, [b.clone() for b in before])
    yield case("everything changed", before, [b + 1 for b in before])
    yield case("steps that cancel", [tensor([1.0, 2, 3])], [tensor([2.0, 1, 3])])
    yield case("only downward", before, [before[0] - 1, before[1]])
    yield case("no tensors", [], [])
    rounded = [b.bfloat16() for b in before]
    yield case("bfloat16, steps of a thousandth", rounded, [b * 1.001 for b in rounded])
    shorter = case("lists of different lengths", before, before[:1])
    yield replace(shorter, raises=True)


def _pairs(before, after):
    return list(zip(before, after, strict=True))


def _share(before, after, changed=lambda old, new: old != new):
    flags = [changed(old, new).flatten() for old, new in _pairs(before, after)]
    return float(torch.cat(flags).double().mean()) if flags else 0.0


def _of_tensors(before, after):
    flags = [float((old != new).any()) for old, new in _pairs(before, after)]
    return sum(flags) / max(1, len(flags))


def _mean_of_means(before, after):
    shares = [float((old != new).double().mean()) for old, new in _pairs(before, after)]
    return sum(shares) / max(1, len(shares))


def _count(before, after):
    return sum(int((old != new).sum()) for old, new in _pairs(before, after))


def _distance(before, after):
    total = sum(old.numel() for old in before)
    moved = sum(float((old - new).abs().sum()) for old, new in _pairs(before, after))
    return moved / max(1, total)


def _short(before, after):
    pairs = list(zip(before, after, strict=False))
    return _share([old for old, _ in pairs], [new for _, new in pairs])


def by_norm(before, after):
    changed = sum(int(torch.count_nonzero(n - o)) for o, n in zip(before, after, strict=True))
    return changed / max(1, sum(o.numel() for o in before))


EXERCISE = Exercise(
    reference=changed_share,
    lesson="12_three_policies",
    section="Updates too small to store",
    points=2,
    difficulty=1,
    minutes=6,
    cases=_cases,
    mistakes=(
        Mistake(
            "the share of tensors in which anything changed",
            _of_tensors,
            "A matrix of a million weights counts for a million: count numbers, not tensors.",
        ),
        Mistake(
            "a mean of the tensors' shares",
            _mean_of_means,
            "Then a bias of eight numbers counts as much as a matrix: add up both counts first.",
        ),
        Mistake(
            "the share of what stayed",
            lambda before, after: _share(before, after, lambda old, new: old == new),
            "Asked for is what *changed*: `old != new`.",
        ),
        Mistake(
            "a number of weights, not a share",
            _count,
            "Divide by how many weights there are.",
        ),
        Mistake(
            "how far the weights moved",
            _distance,
            "Not how far, but whether: a weight that moved by 1e-9 has moved.",
        ),
        Mistake(
            "a comparison with a tolerance",
            lambda before, after: _share(before, after, lambda old, new: ~torch.isclose(old, new)),
            "A small step is a step. `isclose` would call all of a careful training nothing.",
        ),
        Mistake(
            "only what grew",
            lambda before, after: _share(before, after, lambda old, new: new > old),
            "A weight may fall, too: `old != new`.",
        ),
        Mistake(
            "the first tensor alone",
            lambda before, after: (
                _share(before[:1], after[:1])
                if len(before) == len(after)
                else _share(before, after)
            ),
            "All tensors count.",
        ),
        Mistake(
            "a share of nothing: division by zero",
            lambda before, after: _count(before, after) / sum(old.numel() for old in before),
            "Without any number the share is 0.",
            telling=1,
        ),
        Mistake(
            "a share of lists that do not fit",
            _short,
            "Lists of different lengths are two models: `zip(..., strict=True)` says so.",
            telling=1,
        ),
    ),
    alternatives=(_share, by_norm),
    hints=(
        "Two counts over all tensors: how many numbers differ, and how many there are.",
        "`(old != new).sum()` and `old.numel()`, added up over "
        "`zip(before, after, strict=True)`. What if there are none?",
        "With the reference's steps:\n\n"
        "    changed, total = 0, 0\n"
        "    for old, new in zip(before, after, strict=True):\n"
        "        changed += int(...)\n"
        "        total += ...\n"
        "    return changed / max(total, 1)",
    ),
)
