"""Charts draw what they are given, whatever it is, and stay in their frame."""

import re
from itertools import pairwise

import pytest

from rlcourse.reports.charts import LABEL_GAP, Line, plot


def curve(points, **how):
    return plot([Line(points, **how)])


def points(svg, kind):
    found = re.search(rf'<polyline class="line {kind}" points="([^"]*)"', svg).group(1)
    return [tuple(map(float, pair.split(","))) for pair in found.split()]


def test_a_curve_rises_where_the_values_rise_and_stays_in_its_frame():
    svg = curve([(step, step**2) for step in range(1, 50)])
    drawn = points(svg, "raw after")
    assert len(drawn) == 49
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(drawn))
    assert all(0 <= x <= 380 and 0 <= y <= 210 for x, y in drawn)


def test_raw_values_and_their_running_mean_are_both_drawn():
    noisy = [(step, step % 2) for step in range(1, 101)]
    svg = curve(noisy)
    raw, smooth = points(svg, "raw after"), points(svg, "after")
    assert len(raw) == len(smooth) == 100

    def spread(drawn):
        ys = [y for _, y in drawn[20:]]
        return max(ys) - min(ys)

    assert spread(smooth) < spread(raw) / 3
    exact = curve(noisy, look="plain")
    assert "line raw" not in exact and points(exact, "after") == raw


@pytest.mark.parametrize(
    "values",
    [[0.0], [3.0, 3.0, 3.0], [1e-9, 2e-9], [-5.0, 1e6], [float("nan"), 1.0, 2.0], [0.0] * 5],
)
@pytest.mark.parametrize("look", ["raw", "plain", "dots"])
def test_any_values_can_be_drawn(values, look):
    svg = curve(list(enumerate(values, start=1)), look=look)
    assert svg.startswith("<svg") and "nan" not in svg and "inf" not in svg


def test_labels_of_lines_that_end_together_do_not_overlap():
    svg = plot([Line([(1, 0.0), (2, y)], f"s{n}", f"{n}") for n, y in enumerate([0.5] * 12)])
    ys = sorted(float(y) for y in re.findall(r'class="label[^>]* y="([\d.]+)"', svg))
    assert len(ys) == 12
    assert all(b - a >= LABEL_GAP - 0.2 for a, b in pairwise(ys))
    assert ys[0] >= 0 and ys[-1] <= 210


def values_of_ticks(svg):
    """What stands at the vertical axis, as numbers."""
    texts = re.findall(r'class="tick" [^>]*>([^<]*)<', svg)
    return [float(text.replace(",", "")) for text in texts]


@pytest.mark.parametrize("low", [0.0, 1.0, -3.7, 123.4, 5e6])
@pytest.mark.parametrize("span", [1e-5, 3e-3, 0.7, 42.0, 9e5])
def test_no_two_ticks_of_any_axis_read_the_same(low, span):
    ticks = values_of_ticks(curve([(step, low + span * step / 7) for step in range(8)]))
    assert len(ticks) >= 3 and ticks == sorted(set(ticks))
    gaps = [b - a for a, b in pairwise(ticks)]
    assert max(gaps) == pytest.approx(min(gaps), rel=1e-4)
