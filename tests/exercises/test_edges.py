"""Right in the idea and careless at the edge is almost right, and earns most of the points."""

import pytest
from shared import as_written

from rlcourse import algorithms as A
from rlcourse import check
from rlcourse.checks.telling.html import AMBER, RED

masked_mean, pass_at_k = as_written(A.masked_mean), as_written(A.pass_at_k)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def unguarded(n, c, k):
    try:
        return pass_at_k(n, c, k)
    except ValueError:
        return 1.0


def bool_mask_only(x, mask, dim=None):
    if mask.is_floating_point():
        raise TypeError("a bool mask, please")
    return masked_mean(x, mask, dim)


@pytest.mark.parametrize(
    ("name", "fn", "edge"),
    [
        ("pass_at_k", unguarded, "no try"),
        ("masked_mean", bool_mask_only, "a float mask"),
    ],
)
def test_right_on_all_core_cases_earns_most_of_the_points_and_is_called_almost_right(
    name, fn, edge
):
    for hidden in (False, True):
        result = check(fn, exercise=name, seed=0, hidden=hidden)
        assert not result.passed and 0.8 <= result.score < 1
        assert result.headline.startswith(f"≈ {name}   right; at the edge")
        assert edge in result.headline
        assert AMBER in result._repr_html_() and RED not in result._repr_html_()
