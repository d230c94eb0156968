"""One answer from many."""

import statistics
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import groupby

from rlcourse.algorithms.evaluation import majority_vote
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


_edit = Sketch(line_by_line, groupby).alone
_counted = partial(_edit, "answer for answer in answers if answer is not None")
_none_if = partial(_edit, "not votes")
_winner = partial(_edit, "counts.most_common(1)[0][0]")


def _by_counting(answers):
    counts = {}
    for answer in answers:
        if answer is not None:
            counts[answer] = counts.get(answer, 0) + 1
    winner, most = None, 0
    for answer, count in counts.items():
        if count > most:
            winner, most = answer, count
    return winner


def _by_mode(answers):
    votes = [answer for answer in answers if answer is not None]
    return statistics.mode(votes) if votes else None


def _by_max(answers):
    votes = [answer for answer in answers if answer is not None]
    return max(votes, key=votes.count, default=None)


EXERCISE = Exercise(
    reference=majority_vote,
    lesson="11_gsm8k",
    section="Let them vote",
    points=1,
    difficulty=1,
    minutes=5,
    cases=_cases,
    mistakes=(
        Mistake(
            "a vote in which None counts",
            _counted("answer for answer in answers"),
            "A completion without an answer abstains: leave it out before you count.",
            telling=1,
        ),
        Mistake(
            "a vote for the word “None”",
            _counted("str(answer) for answer in answers"),
            "`str(None)` is a text like any other, and it wins where many give no answer.",
            telling=2,
        ),
        Mistake(
            "a count that fails where nobody has voted",
            _none_if("False"),
            "`most_common` of nothing is an empty list: without votes the answer is None.",
            telling=2,
        ),
        Mistake(
            "`statistics.mode`, which fails where nobody has voted",
            _none_if("False", "counts.most_common(1)[0][0]", "statistics.mode(votes)"),
            "Without votes the answer is None, and `mode` must not be asked.",
            telling=2,
        ),
        Mistake(
            "`max`, which fails where nobody has voted",
            _none_if("False", "counts.most_common(1)[0][0]", "max(votes, key=votes.count)"),
            "Without votes the answer is None: `max` takes a `default`.",
            telling=2,
        ),
        Mistake(
            "the smallest of the answers that are tied",
            _edit("Counter(votes)", "Counter(sorted(votes))"),
            "Sorting first lets the alphabet decide a tie, where “9” comes after “10”; the answer "
            "given first shall win.",
        ),
        Mistake(
            "the largest of the answers that are tied",
            _winner("max(votes, key=lambda answer: (votes.count(answer), answer))"),
            "A tie is decided by the order in which the answers came, not by their size.",
            telling=2,
        ),
        Mistake(
            "the last of the answers that are tied",
            _edit("in answers", "in answers[::-1]"),
            "`>=` in place of `>` lets every equal count take over; the answer given first shall "
            "win.",
            telling=1,
        ),
        Mistake(
            "None unless more than half of the votes agree",
            _none_if("not votes or 2 * max(counts.values()) <= len(votes)"),
            "The commonest answer wins, be it one of five that are all different.",
        ),
        Mistake(
            "None unless more than half of all completions agree",
            _none_if("not votes or 2 * max(counts.values()) <= len(answers)"),
            "The commonest answer wins, and a completion without one abstains.",
        ),
        Mistake(
            "None where answers are tied",
            _none_if("[*counts.values()].count(max(counts.values(), default=0)) != 1"),
            "A tie has a winner, too: of the tied answers the one given first.",
        ),
        Mistake(
            "the first answer", _winner("votes[0]"), "One voice is no vote: count them.", telling=2
        ),
        Mistake("the last answer", _winner("votes[-1]"), "One voice is no vote: count them."),
        Mistake(
            "the longest run of equal answers",
            _winner("max(groupby(votes), key=lambda run: len([*run[1]]))[0]"),
            "`groupby` joins neighbors only; count equal answers wherever they stand.",
        ),
        Mistake(
            "the rarest answer",
            _winner("min(votes, key=votes.count)"),
            "The commonest answer wins; this is the one with the fewest votes.",
        ),
        Mistake(
            "the median",
            _winner("sorted(votes, key=float)[len(votes) // 2]"),
            "Answers near the truth are as wrong as others: count equal ones, do not order them.",
        ),
        Mistake(
            "the answer together with its count",
            _winner("counts.most_common(1)[0]"),
            "`most_common(1)` gives a list of one pair (answer, count): the answer is its first "
            "part.",
        ),
        Mistake(
            "the number of votes",
            _winner("counts.most_common(1)[0][1]"),
            "How many agree is not what they say: return the answer.",
        ),
        Mistake(
            "an empty string where nobody has voted",
            _edit("return None", 'return ""'),
            "No votes, no answer: None.",
            telling=2,
        ),
        Mistake(
            "whichever of the tied answers a set happens to give first",
            _winner("max(set(votes), key=votes.count)"),
            "A set has no order, and that of strings is another one each time Python starts. Count "
            "in a `Counter` or a dictionary, which keep the order in which answers came.",
            telling=1,
        ),
    ),
    alternatives=(_by_counting, _by_mode, _by_max, line_by_line),
    hints=(
        "First leave out every None. Then count.",
        "`collections.Counter` counts, and its `most_common(1)` gives the commonest with its "
        "count; of equal ones, the one it saw first. Mind the empty case.",
        "In two lines:\n\n"
        "    votes = Counter(answer for answer in answers if answer is not None)\n"
        "    return votes.most_common(1)[0][0] if ... else None",
    ),
)
