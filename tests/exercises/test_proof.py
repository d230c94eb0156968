"""The proof: every mistake is named, every alternative passes, every stub fails."""

import pytest

from rlcourse.checks.proof import prove
from rlcourse.exercises import all as every
from rlcourse.exercises import get


@pytest.mark.parametrize("name", [exercise.name for exercise in every()])
def test_every_mistake_is_named_every_alternative_passes_and_the_stub_fails(name, seeds):
    wrong = [row for row in prove([get(name)], seeds) if not row.ok]
    assert not wrong, wrong[0]
