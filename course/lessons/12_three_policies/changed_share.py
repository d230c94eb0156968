"""Whether an update has changed the weights at all."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Spec, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
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
    for label, later in (("some changed", before[0] + 1), ("all changed", before[0] - 1)):
        kept = before[1] if label == "some changed" else -before[1]
        both = case(f"iterators, {label}", _once(before), _once([later, kept]))
        yield replace(both, edge=True)
    shorter = case("lists of different lengths", before, before[:1])
    yield replace(shorter, raises=True)
    shorter = case("iterators of different lengths", _once(before), _once(before[:1]))
    yield replace(shorter, raises=True)


def _once(tensors) -> Spec:
    """What `policy.parameters()` gives: good for one pass only."""
    return Spec("iterator", {"items": tensors})


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
    pairs = _pairs(before, after)
    moved = sum(float((old - new).abs().sum()) for old, new in pairs)
    return moved / max(1, sum(old.numel() for old, _ in pairs))


def _first(before, after):
    pairs = _pairs(before, after)[:1]
    return _share([old for old, _ in pairs], [new for _, new in pairs])


def _unguarded(before, after):
    pairs = _pairs(before, after)
    return sum(int((old != new).sum()) for old, new in pairs) / sum(o.numel() for o, _ in pairs)


def _short(before, after):
    pairs = list(zip(before, after, strict=False))
    return _share([old for old, _ in pairs], [new for _, new in pairs])


def _measured(before, after):
    if len(before) != len(after):
        raise ValueError("lists of different lengths")
    return _share(before, after)


def _gone_through_twice(before, after):
    changed = sum(int((old != new).sum()) for old, new in zip(before, after, strict=True))
    return changed / max(1, sum(old.numel() for old in before))


def by_norm(before, after):
    changed, total = 0, 0
    for old, new in zip(before, after, strict=True):
        changed += int(torch.count_nonzero(new - old))
        total += old.numel()
    return changed / max(1, total)


alternatives = (_share, by_norm)
