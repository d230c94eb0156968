"""Both error rates of a judge, from an audit, with Wilson's interval."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.algorithms.judges import error_rates
from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def audit(draw: CaseSampler, wrong: int, passed: int, right: int, failed: int):
    """(verdicts, truth) of an audit with these counts, shuffled."""
    truth = torch.tensor([0.0] * wrong + [1.0] * right, dtype=torch.float64)
    verdicts = truth.clone()
    verdicts[:passed] = 1
    verdicts[wrong : wrong + failed] = 0
    order = draw.uniform(wrong + right).argsort()
    return verdicts[order], truth[order]


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, verdicts: Tensor, truth: Tensor, **more) -> Case:
        return Case(label, {"verdicts": verdicts, "truth": truth, **more})

    yield case("worked: 3 of 20 wrong ones passed, 1 of 10 failed", *audit(draw, 20, 3, 10, 1))
    yield case("more right ones than wrong ones", *audit(draw, 8, 2, 25, 4))
    passed, failed = 1 + draw.integer(0, 4), 2 + draw.integer(0, 3)
    yield case("many texts", *audit(draw, draw.size(40, 50), passed, draw.size(60, 70), failed))
    yield case("a judge that passes almost everything", *audit(draw, 12, 11, 9, 1))
    yield case("a judge worse than a coin", *audit(draw, 15, 9, 14, 10))
    yield case("no errors", *audit(draw, 20, 0, 30, 0))
    yield case("nothing but errors", *audit(draw, 6, 6, 7, 7))
    yield case("one text of each kind", *audit(draw, 1, 0, 1, 1))
    yield case("as many wrong as right ones", *audit(draw, 16, 4, 16, 2))
    yield case("another z", *audit(draw, 18, 5, 12, 2), z=1.0)
    yield case("a wide interval", *audit(draw, 10, 3, 14, 2), z=3.0)
    verdicts, truth = audit(draw, 11, 2, 13, 3)
    yield case("an audit in float32", verdicts.float(), truth.float())
    yield case("truth as bool", verdicts, truth.bool())
    none = torch.zeros(5, dtype=torch.float64)
    yield replace(case("no right text", none, none), raises=True)
    yield replace(case("no wrong text", none, 1 - none), raises=True)


def line_by_line(verdicts, truth, z=1.96):
    verdicts, truth = verdicts.double(), truth.double()
    false_positives = (verdicts * (1 - truth)).sum()
    false_negatives = ((1 - verdicts) * truth).sum()
    k = torch.stack([false_positives, false_negatives])
    m = torch.stack([(1 - truth).sum(), truth.sum()])
    if m.min() == 0:
        raise ValueError("a kind is missing")
    share = k / m
    center = (share + z**2 / (2 * m)) / (1 + z**2 / m)
    under_the_root = share * (1 - share) / m + z**2 / (4 * m**2)
    half = z * under_the_root.sqrt() / (1 + z**2 / m)
    table = torch.stack([share, center - half, center + half], dim=1)
    return table


def by_quadratic(verdicts, truth, z=1.96):
    """The two p at which (share − p)² = z² p(1 − p)/m, as roots of a quadratic."""
    pairs = [(int(v), int(t)) for v, t in zip(verdicts.tolist(), truth.tolist(), strict=True)]
    rows = []
    for kind in (0, 1):
        judged = [v for v, t in pairs if t == kind]
        if not judged:
            raise ValueError("nothing to count")
        m, share = len(judged), sum(v != kind for v in judged) / len(judged)
        a, b, c = 1 + z * z / m, -(2 * share + z * z / m), share * share
        root = max(b * b - 4 * a * c, 0.0) ** 0.5
        rows.append([share, (-b - root) / (2 * a), (-b + root) / (2 * a)])
    return torch.tensor(rows, dtype=torch.float64)


def _without_complaint(verdicts, truth, z=1.96):
    try:
        return error_rates(verdicts, truth, z)
    except ValueError:
        return torch.zeros(2, 3, dtype=torch.float64)


sketch = Sketch(line_by_line)
alternatives = (by_quadratic,)
oracle = by_quadratic
