"""Places and ranges of places; nothing is graded."""

import random

from rlcourse.evaluation.scores import Interval
from rlcourse.grading.ranking.commands import TEMPLATE
from rlcourse.grading.ranking.standings import Entry, Leaderboard, rank
from rlcourse.reports.html_pages import render


def answers(rate: float, seed: int) -> list[float]:
    """Four answers to each of 256 problems, some of which are hard for everybody."""
    rng = random.Random(seed)
    return [
        sum(rng.random() < rate * (0.7 if i % 4 == 0 else 1.0) for _ in range(4)) / 4
        for i in range(256)
    ]


def test_equals_share_a_range_and_others_have_a_place():
    twin = answers(0.8, 1)
    scores = {"ada": twin, "bo": list(twin), "cyd": answers(0.5, 2), "dee": answers(0.2, 3)}
    ranked, together = rank(scores)
    assert ranked == [("ada", 1, 2), ("bo", 1, 2), ("cyd", 3, 3), ("dee", 4, 4)]
    assert together == 1


def test_the_page_escapes_names_and_says_what_cannot_be_told_apart():
    scores = answers(0.7, 0)
    entries = tuple(
        Entry(name, Interval.of(scores), 0.7, 6_144, 1, 2) for name in ("<script>", "otter")
    )
    board = Leaderboard("18_from_an_empty_file", entries, 0.5, 0.39, 256, 1)
    html = render(TEMPLATE, title="Leaderboard", board=board, maker="rlcourse leaderboard")
    assert "&lt;script&gt;" in html and "<script>" not in html
    assert html.count("1–2") == 2 and "Pairs: 1, of which 1 cannot be told apart" in html
    assert "otter" in str(board)
