"""One answer from many."""

import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from rlcourse.algorithms.evaluation import majority_vote
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake


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


def _votes(answers):
    return [answer for answer in answers if answer is not None]


def _none_votes(answers):
    return Counter(answers).most_common(1)[0][0] if answers else None


def _none_as_text(answers):
    return Counter(map(str, answers)).most_common(1)[0][0] if answers else None


def _crashes_without_votes(answers):
    return Counter(_votes(answers)).most_common(1)[0][0]


def _mode_crashes(answers):
    return statistics.mode(_votes(answers))


def _max_crashes(answers):
    votes = _votes(answers)
    return max(votes, key=votes.count)


def _smallest_of_a_tie(answers):
    votes = sorted(_votes(answers))
    return max(votes, key=votes.count) if votes else None


def _largest_of_a_tie(answers):
    votes = _votes(answers)
    return max(votes, key=lambda answer: (votes.count(answer), answer)) if votes else None


def _last_of_a_tie(answers):
    return majority_vote(answers[::-1])


def _absolute_majority(answers):
    votes, winner = _votes(answers), majority_vote(answers)
    return winner if 2 * votes.count(winner) > len(votes) else None


def _majority_of_all(answers):
    winner = majority_vote(answers)
    return winner if 2 * list(answers).count(winner) > len(answers) else None


def _none_of_a_tie(answers):
    votes, winner = _votes(answers), majority_vote(answers)
    tied = {a for a in votes if votes.count(a) == votes.count(winner)}
    return winner if len(tied) == 1 else None


def _first(answers):
    return next(iter(_votes(answers)), None)


def _last(answers):
    return next(iter(_votes(answers)[::-1]), None)


def _longest_run(answers):
    runs = [(len(list(run)), answer) for answer, run in groupby(_votes(answers))]
    return max(runs, key=lambda run: run[0])[1] if runs else None


def _rarest(answers):
    votes = _votes(answers)
    return min(votes, key=votes.count) if votes else None


def _median(answers):
    votes = sorted(_votes(answers), key=float)
    return votes[len(votes) // 2] if votes else None


def _with_count(answers):
    votes = Counter(_votes(answers))
    return votes.most_common(1)[0] if votes else None


def _only_count(answers):
    votes = Counter(_votes(answers))
    return votes.most_common(1)[0][1] if votes else None


def _empty_for_none(answers):
    return majority_vote(answers) or ""


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


def _order_of_a_set(answers):
    votes = _votes(answers)
    return max(set(votes), key=votes.count) if votes else None


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
            _none_votes,
            "A completion without an answer abstains: leave it out before you count.",
            telling=1,
        ),
        Mistake(
            "a vote for the word “None”",
            _none_as_text,
            "`str(None)` is a text like any other, and it wins where many give no answer.",
            telling=2,
        ),
        Mistake(
            "a count that fails where nobody has voted",
            _crashes_without_votes,
            "`most_common` of nothing is an empty list: without votes the answer is None.",
            telling=2,
        ),
        Mistake(
            "`statistics.mode`, which fails where nobody has voted",
            _mode_crashes,
            "Without votes the answer is None, and `mode` must not be asked.",
            telling=2,
        ),
        Mistake(
            "`max`, which fails where nobody has voted",
            _max_crashes,
            "Without votes the answer is None: `max` takes a `default`.",
            telling=2,
        ),
        Mistake(
            "the smallest of the answers that are tied",
            _smallest_of_a_tie,
            "Sorting first lets the alphabet decide a tie, where “9” comes after “10”; the answer "
            "given first shall win.",
        ),
        Mistake(
            "the largest of the answers that are tied",
            _largest_of_a_tie,
            "A tie is decided by the order in which the answers came, not by their size.",
            telling=2,
        ),
        Mistake(
            "the last of the answers that are tied",
            _last_of_a_tie,
            "`>=` in place of `>` lets every equal count take over; the answer given first shall "
            "win.",
            telling=1,
        ),
        Mistake(
            "None unless more than half of the votes agree",
            _absolute_majority,
            "The commonest answer wins, be it one of five that are all different.",
        ),
        Mistake(
            "None unless more than half of all completions agree",
            _majority_of_all,
            "The commonest answer wins, and a completion without one abstains.",
        ),
        Mistake(
            "None where answers are tied",
            _none_of_a_tie,
            "A tie has a winner, too: of the tied answers the one given first.",
        ),
        Mistake("the first answer", _first, "One voice is no vote: count them.", telling=2),
        Mistake("the last answer", _last, "One voice is no vote: count them."),
        Mistake(
            "the longest run of equal answers",
            _longest_run,
            "`groupby` joins neighbors only; count equal answers wherever they stand.",
        ),
        Mistake(
            "the rarest answer",
            _rarest,
            "The commonest answer wins; this is the one with the fewest votes.",
        ),
        Mistake(
            "the median",
            _median,
            "Answers near the truth are as wrong as others: count equal ones, do not order them.",
        ),
        Mistake(
            "the answer together with its count",
            _with_count,
            "`most_common(1)` gives a list of one pair (answer, count): the answer is its first "
            "part.",
        ),
        Mistake(
            "the number of votes",
            _only_count,
            "How many agree is not what they say: return the answer.",
        ),
        Mistake(
            "an empty string where nobody has voted",
            _empty_for_none,
            "No votes, no answer: None.",
            telling=2,
        ),
        Mistake(
            "whichever of the tied answers a set happens to give first",
            _order_of_a_set,
            "A set has no order, and that of strings is another one each time Python starts. Count "
            "in a `Counter` or a dictionary, which keep the order in which answers came.",
            telling=1,
        ),
    ),
    alternatives=(_by_counting, _by_mode, _by_max),
    hints=(
        "First leave out every None. Then count.",
        "`collections.Counter` counts, and its `most_common(1)` gives the commonest with its "
        "count; of equal ones, the one it saw first. Mind the empty case.",
        "In two lines:\n\n"
        "    votes = Counter(answer for answer in answers if answer is not None)\n"
        "    return votes.most_common(1)[0][0] if ... else None",
    ),
)
