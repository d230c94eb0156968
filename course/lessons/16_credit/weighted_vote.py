"""One answer from many, each with a score."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, answers: list[str | None], scores) -> Case:
        return Case(label, {"answers": answers, "scores": torch.as_tensor(scores)})

    a, b, c = (str(draw.integer(*r)) for r in ((31, 59), (71, 99), (11, 29)))
    yield case("worked: four answers", ["14", "18", "14", "20"], tensor([0.3, 0.5, 0.4, 0.1]))
    yield case("the majority has low scores", [a, a, a, b], tensor([0.1, 0.1, 0.1, 0.8]))
    yield case("the best score stands alone", [a, b, b, c], tensor([0.6, 0.4, 0.5, 0.1]))
    yield case("the best mean has one vote", [a, b, b, b], tensor([0.5, 0.4, 0.4, 0.3]))
    yield case("two good scores against a better one", [a, b, b, c], tensor([0.6, 0.55, 0.55, 0.1]))
    yield case("one answer", [a], tensor([0.2]))
    yield case("nobody answers", [None, None], tensor([0.7, 0.9]))
    yield case("no answers at all", [], torch.zeros(0).double())
    yield case("None has the largest sum", [None, a, None, b], tensor([0.9, 0.2, 0.9, 0.3]))
    yield case("None has the smallest sum", [a, None, b, b], tensor([0.4, 0.1, 0.3, 0.2]))
    yield case(
        "None has the worst score", [a, a, None, None, None, b], tensor([3, 6, 2, 4, 1, 7.0])
    )
    yield case("None has the best mean", [None, a, a, b, b, b], tensor([5, 7, 1, 3, 2, 4.0]))
    yield case("None ends low", [b, None, c, a, None, c, b], tensor([6, 9, 4, 5, 1, 3, 2.0]))
    yield case("None begins low", [None, b, c, None, a, b, c], tensor([1, 2, 3, 8, 4, 6, 5.0]))
    yield case("None comes first", [None, a, b], tensor([0.8, 0.4, 0.1]))
    yield case("a tie", [b, a, a, b], tensor([0.25, 0.5, 0.25, 0.5]))
    yield case("a tie, the smaller first", [a, b, b, a], tensor([0.5, 0.25, 0.5, 0.25]))
    yield case(
        "a tie, and the first has the smaller score", [c, a, c, b], tensor([0.25, 0.5, 0.25, 0.5])
    )
    yield case("scores of 0", [a, b, b], tensor([0.0, 0.0, 0.0]))
    yield case("the first score is 0", [a, b, a, c], tensor([0.0, 0.3, 0.4, 0.1]))
    yield case("scores above 1", [a, b, a, c, b], tensor([2.0, 5.0, 1.5, 6.0, 0.5]))
    yield case("the last wins", [a, b, c], tensor([0.1, 0.2, 0.3]))
    yield case("float32", [a, b, a], tensor([0.3, 0.5, 0.4]).float())
    # Two mistakes at once mostly choose another answer of many than either of them alone.
    for names, n in (
        (3, draw.size(7, 9)),
        (5, draw.size(12, 16)),
        *((8, 20 + i) for i in range(8)),
    ):
        given = draw.integers(n, high=names + 1).tolist()
        some = [None if v == names else str(10 + v) for v in given]
        yield case(f"{n} votes for {names} answers", some, draw.uniform(n))
    # The order of a set is no order: of this many it can hardly be the right one by chance.
    for first in (3, 5, 7):
        tied = [str(first * i % 17) for i in range(1, 9)]
        equal = torch.full((16,), 0.5).double()
        yield case(f"eight are tied, {tied[0]} comes first", tied + tied[::-1], equal)


def line_by_line(answers, scores):
    votes = [(a, s) for a, s in zip(answers, scores.tolist(), strict=True) if a is not None]
    totals = {a: sum(s for b, s in votes if b == a) for a, _ in votes}
    best = max(totals, key=totals.get, default=None)
    return best


def by_index(answers, scores):
    names = list(dict.fromkeys(a for a in answers if a is not None))
    if not names:
        return None
    who = torch.tensor([[a == name for a in answers] for name in names])
    sums = (who * scores).sum(1)
    return names[int((sums >= sums.max() - 1e-9).int().argmax())]


sketch = Sketch(line_by_line)
alternatives = (by_index,)
