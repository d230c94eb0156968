"""An error that an exercise asks for is judged by its type: its words are the student's own."""

from dataclasses import replace

import pytest
import torch

from rlcourse import check
from rlcourse.checks.proving.proof import prove
from rlcourse.exercises import get


def test_the_proof_refuses_a_case_whose_error_would_be_compared_by_its_words():
    exercise = get("realigned")

    def unsaid(draw):
        yield from (replace(case, raises=False) for case in exercise.cases(draw))

    rows = prove([replace(exercise, cases=unsaid)], [0])
    said = [row.verdict for row in rows if row.kind == "reference" and not row.ok]
    assert said and all("raises=True to ['a row with fewer" in verdict for verdict in said)


@pytest.mark.parametrize("words", ["", "no", "2 of 3 rows do not fit: {}"])
def test_whatever_the_words_of_an_error_are_it_is_right(words):
    def realigned(values, mask, target):
        if not mask.bool().sum(1).equal(target.bool().sum(1)):
            raise ValueError(words)
        moved = torch.zeros(target.shape, dtype=values.dtype)
        return moved.masked_scatter(target.bool(), values[mask.bool()])

    def another_error(values, mask, target):
        if not mask.bool().sum(1).equal(target.bool().sum(1)):
            raise KeyError(words)
        return realigned(values, mask, target)

    assert not check(another_error, "realigned").passed
    assert sum(case.raises for case in get("realigned").draw_cases(seed=1)) == 2
    assert check(realigned).passed
