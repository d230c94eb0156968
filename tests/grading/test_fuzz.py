"""A few of the cases that ``fuzz.py`` makes by the thousand."""

import fuzz
import pytest


@pytest.mark.parametrize(
    "name, number",
    [("frames", 3000), ("notebooks", 200), ("answers", 60), ("directories", 300)],
)
def test_what_is_forged_is_refused_or_judged(name, number):
    before = fuzz.COUNTS[name]
    fuzz.FUZZERS[name](number)
    assert fuzz.COUNTS[name] > before


def test_directories_are_drawn_of_every_kind():
    """Some are graded, and each reason not to is met; or the fuzz would show nothing."""
    fuzz.STATUSES.clear()
    fuzz.fuzz_directories(301)
    assert {"graded", "missing", "refused", "unreadable file"} <= set(fuzz.STATUSES)
