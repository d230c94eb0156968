"""Drawing so many different problems always ends: with them, or with how many there are."""

from itertools import count

import pytest

from rlcourse.errors import UserError
from rlcourse.tasks import problem
from rlcourse.tasks.dialects import dialect
from rlcourse.tasks.problem import Problem, distinct


def of(kinds: int):
    return (Problem(f"{i % kinds}?", "#### 1") for i in count())


def test_repetitions_are_left_out_and_the_order_kept():
    assert [p.question for p in distinct(3, of(3))] == ["0?", "1?", "2?"]
    assert distinct(0, of(3)) == []


def test_more_than_there_are_is_one_sentence(monkeypatch):
    monkeypatch.setattr(problem, "MOST_REPEATS", 10)
    with pytest.raises(
        UserError, match="only 3 different problems of this kind, not 4: ask for fewer"
    ):
        distinct(4, of(3))


def test_a_dialect_without_problems_to_train_on_is_no_endless_search():
    assert dialect(1, train_size=0, evaluation_size=2).train == []
