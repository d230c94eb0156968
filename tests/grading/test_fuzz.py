"""Few of what ``fuzz.py`` makes by the thousand."""

import fuzz
import pytest


@pytest.mark.parametrize("name, number", [("frames", 3000), ("notebooks", 200), ("answers", 60)])
def test_what_is_forged_is_refused_or_judged(name, number):
    before = fuzz.COUNTS[name]
    fuzz.FUZZERS[name](number)
    assert fuzz.COUNTS[name] > before
