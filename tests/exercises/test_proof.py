"""The proof: every mistake is named, every alternative passes, every stub fails."""

import pytest

from rlcourse.checks.proving.proof import prove
from rlcourse.exercises import all as every
from rlcourse.exercises import get

# Of several kinds; `rlcourse prove` is what a changed exercise needs.
QUICK = ["reinforce_loss", "sft_loss", "returns_to_go", "whiten", "error_rates"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(exercise.name, marks=[] if exercise.name in QUICK else [pytest.mark.slow])
        for exercise in every()
    ],
)
def test_every_mistake_is_named_every_alternative_passes_and_the_stub_fails(name, seeds):
    wrong = [row for row in prove([get(name)], seeds) if not row.ok]
    assert not wrong, wrong[0]
