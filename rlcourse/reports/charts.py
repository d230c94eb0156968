"""Small SVG charts for the report, whose style sheet colors them for light and for dark."""

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from rlcourse.evaluation import Evaluation

WIDTH, HEIGHT = 380, 210
WIDE = 500
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 30  # margins around the plotting area
POINTS = 300  # longer runs are averaged down to this many points

Point = tuple[float, float]


def curve(points: Sequence[Point], unit: bool = False, noisy: bool = True) -> Markup:
    """A metric over the steps; where it is noisy, values faintly and their running mean on top.

    `unit` says that the axis is 0–1.
    """
    points = [(x, y) for x, y in points if math.isfinite(y)]
    if not points:
        return Markup("")
    points = _thinned(points)
    ys = [y for _, y in points]
    frame = _Frame([x for x, _ in points], [0.0, 1.0] if unit else ys)
    parts = [frame.axes("step")]
    if noisy:
        parts.append(frame.line(points, "raw"))
        points = _running_mean(points)
    parts.append(frame.line(points, "mean"))
    for point in points[-1:] if noisy else points:
        parts.append(frame.dot(point, "mean", _label(point[1])))
    return frame.svg(parts, f"last value {_label(ys[-1])}, from {_label(ys[0])}")


def pass_at_k_chart(before: Evaluation | None, after: Evaluation | None) -> Markup:
    """pass@k against k (doubling), before and after, with 95 % intervals as bands."""
    shown = [(e, name) for e, name in ((before, "before"), (after, "after")) if e is not None]
    ks = sorted(shown[0][0].pass_at)
    frame = _Frame(list(range(len(ks))), [0.0, 1.0], [str(k) for k in ks], WIDE)
    parts = [frame.axes("k, attempts")]
    for evaluation, name in shown:
        intervals = [evaluation.pass_at[k] for k in ks]
        upper = [(i, interval.high) for i, interval in enumerate(intervals)]
        lower = [(i, interval.low) for i, interval in enumerate(intervals)]
        parts.append(frame.band([*upper, *reversed(lower)], name))
        middle = [(i, interval.value) for i, interval in enumerate(intervals)]
        parts.append(frame.line(middle, name))
        for k, interval, point in zip(ks, intervals, middle, strict=True):
            parts.append(frame.dot(point, name, f"{name}: pass@{k} {interval}"))
    return frame.svg(parts, "pass@k before and after")


class _Frame:
    """Scales from data to picture, and the shapes drawn with them."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float], x_labels=None, width=WIDTH):
        self.width = width
        self.x_low, self.x_high = min(xs), max(max(xs), min(xs) + 1e-9)
        self.y_ticks = _ticks(min(ys), max(ys), 4)
        self.y_low, self.y_high = min(self.y_ticks[0], min(ys)), max(self.y_ticks[-1], max(ys))
        if x_labels is None:
            ticks = _ticks(self.x_low, self.x_high, 5, whole=True)
            inside = [x for x in ticks if self.x_low <= x <= self.x_high]
            self.x_ticks = [(x, f"{x:g}") for x in inside]
        else:
            self.x_ticks = list(zip(xs, x_labels, strict=True))

    def x(self, value: float) -> float:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return round(LEFT + share * (self.width - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    def _path(self, points: Sequence[Point]) -> str:
        return " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)

    def line(self, points: Sequence[Point], kind: str) -> str:
        return f'<polyline class="line {kind}" points="{self._path(points)}"/>'

    def band(self, points: Sequence[Point], kind: str) -> str:
        return f'<polygon class="band {kind}" points="{self._path(points)}"/>'

    def dot(self, point: Point, kind: str, title: str = "") -> str:
        x, y = point
        inner = f"<title>{escape(title)}</title>" if title else ""
        return (
            f'<circle class="dot {kind}" cx="{self.x(x)}" cy="{self.y(y)}" r="3.2">{inner}</circle>'
        )

    def axes(self, x_name: str) -> str:
        right, bottom = self.width - RIGHT, HEIGHT - BOTTOM
        parts = []
        for tick in self.y_ticks:
            y = self.y(tick)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
            parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5}">{_label(tick)}</text>')
        for value, label in self.x_ticks:
            text = (
                f'<text class="tick x" x="{self.x(value)}" y="{bottom + 14}">{escape(label)}</text>'
            )
            parts.append(text)
        middle, foot = (LEFT + right) / 2, HEIGHT - 3
        parts.append(f'<text class="tick x" x="{middle}" y="{foot}">{escape(x_name)}</text>')
        return "".join(parts)

    def svg(self, parts: list[str], description: str) -> Markup:
        return Markup(
            f'<svg viewBox="0 0 {self.width} {HEIGHT}" role="img" '
            f'aria-label="{escape(description)}">'
            f"{''.join(parts)}</svg>"
        )


def _ticks(low: float, high: float, count: int, whole: bool = False) -> list[float]:
    """About `count` round numbers that span low…high."""
    if high - low < 1e-12 * max(1.0, abs(high)):
        margin = abs(high) / 2 or 1.0
        low, high = low - margin, high + margin
    raw = (high - low) / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = size * min((1, 2, 2.5, 5, 10), key=lambda factor: abs(factor * size - raw))
    if whole:
        step = max(1.0, round(step))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _label(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.0e}" if abs(value) < 1e-3 or abs(value) >= 1e5 else f"{value:.4g}"


def _thinned(points: Sequence[Point]) -> list[Point]:
    size = math.ceil(len(points) / POINTS)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(g[-1][0], sum(y for _, y in g) / len(g)) for g in groups]


def _running_mean(points: Sequence[Point]) -> list[Point]:
    """Exponential mean over about a twentieth of the curve, without a pull toward its start."""
    keep = 1 - 2 / (max(3, len(points) / 20) + 1)
    total = weight = 0.0
    smooth = []
    for x, y in points:
        total, weight = keep * total + y, keep * weight + 1
        smooth.append((x, total / weight))
    return smooth
