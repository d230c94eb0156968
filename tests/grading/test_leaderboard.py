"""Places, ranges of places, and what a table of aliases may say; nothing is graded."""

import random

import pytest

from rlcourse.courses import current
from rlcourse.errors import UserError
from rlcourse.evaluation.scores import Interval
from rlcourse.grading.ranking import page
from rlcourse.grading.ranking.standings import Entry, Leaderboard, letters, rank, read_aliases


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


def test_a_class_of_one_has_the_first_place():
    assert rank({"ada": answers(0.5, 0)}) == ([("ada", 1, 1)], 0)


def test_letters_go_on_after_z():
    found = [letters(i) for i in (0, 25, 26, 51, 701, 702)]
    assert found == ["A", "Z", "AA", "AZ", "ZZ", "AAA"]


@pytest.mark.parametrize("text", ["ada", "ada,x\nbo,x", "ada,x\nada,y", "ada,", "a,b,c"])
def test_a_table_of_aliases_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(UserError, match="--aliases"):
        read_aliases(tmp_path / "table.csv")


def test_a_table_of_aliases_is_read_with_its_heading_or_without(tmp_path):
    for heading in ("student,alias\n", ""):
        (tmp_path / "table.csv").write_text(heading + "ada,heron\nbo,otter\n")
        assert read_aliases(tmp_path / "table.csv") == {"ada": "heron", "bo": "otter"}


def test_the_page_escapes_names_and_says_what_cannot_be_told_apart():
    scores = answers(0.7, 0)
    entries = tuple(
        Entry(name, Interval.of(scores), 0.7, 6_144, 1, 2) for name in ("<script>", "otter")
    )
    board = Leaderboard("18_from_an_empty_file", entries, 0.5, 0.39, 256, 1)
    html = page.render(board, current())
    assert "&lt;script&gt;" in html and "<script>" not in html
    assert html.count("1–2") == 2 and "Pairs: 1, of which 1 cannot be told apart" in html
    assert "otter" in str(board) and board.as_json()["pairs_not_told_apart"] == 1
