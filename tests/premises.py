"""A test whose premise hangs on a draw, such as a token that is clipped, draws until it holds."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def drawn_until(
    holds: Callable[[Any], bool],
    draw: Callable[[int], Any],
    premise: str,
    seeds: Iterable[int] = range(20),
):
    """The first ``draw(seed)`` that ``holds``; fails, and names the premise, where none does."""
    seeds = list(seeds)
    for seed in seeds:
        drawn = draw(seed)
        if holds(drawn):
            return drawn
    return pytest.fail(f"in none of {len(seeds)} draws {premise}: nothing was tested")
