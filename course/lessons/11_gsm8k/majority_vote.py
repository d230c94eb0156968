"""One answer from many."""

import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def cases(draw: CaseSampler) -> Iterator[Case]:
    a, b, c = (str(draw.integer(*r)) for r in ((31, 59), (71, 99), (11, 29)))
    lists = {
        "worked: five answers": ["14", "18", "14", None, "14"],
        "one answer": [a],
        "nobody answers": [None, None, None],
        "no answers at all": [],
        "None is the commonest": [None, a, None, b, None, a, None],
        "None comes first": [None, a, b, a],
        "all different": [b, a, c],
        "a tie": [b, a, a, b],
        "a tie, the smaller first": [a, b, b, a],
        "a tie of three, and None": [a, None, b, c, c, b, a, None],
        "a tie in which no two stand together": [b, a, c, a, b],
        "the winner comes last": [a, b, b],
        "fewer than half agree": [a, c, b, c, "7"],
        "a long run, and scattered votes": [a, b, b, a, c, a],
        "zero wins": ["0", a, "0"],
        "negative numbers": ["-3", "3", "-3", a],
    }
    lists["many"] = [
        None if v == 4 else str(10 + v) for v in draw.integers(draw.size(12, 18), high=5).tolist()
    ]
    # The order of a set is no order: of this many it can hardly be the right one by chance.
    for first in (3, 5, 7, 11):
        tied = [str(first * i % 17) for i in range(1, 9)]
        lists[f"eight are tied, {tied[0]} comes first"] = tied + tied[::-1]
    for label, answers in lists.items():
        yield Case(label, {"answers": answers})


def line_by_line(answers):
    votes = [answer for answer in answers if answer is not None]
    counts = Counter(votes)
    if not votes:
        return None
    return counts.most_common(1)[0][0]


def _by_mode(answers):
    votes = [answer for answer in answers if answer is not None]
    return statistics.mode(votes) if votes else None


def first_at_the_top(votes):
    """Whoever reaches the largest count first, as one counts along."""
    counts, best = Counter(), None
    for answer in votes:
        counts[answer] += 1
        if best is None or counts[answer] > counts[best]:
            best = answer
    return best


sketch = Sketch(line_by_line, groupby, first_at_the_top)
alternatives = (_by_mode,)
