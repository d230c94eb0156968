"""Pictures as SVG without a script; the page's style sheet colors them, for light and dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

from rlcourse.pictures import apart
from rlcourse.reports.run_record import is_finite

WIDTH, HEIGHT = 380, 210
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 10, 32  # margins around the plotting area
LETTER, LABEL_GAP = 8, 12  # a label's width a letter, and the least distance between two
POINTS = 300  # longer lines are averaged down to this many points

Point = tuple[float, float]


def svg(
    size: tuple[float, float], parts: Sequence[str], label: str, style: str = "", **attributes
) -> str:
    """A picture that is described by `label`; a file of its own needs ``xmlns`` and a style."""
    box = "0 0 {:g} {:g}".format(*size)
    named = {"viewBox": box, "role": "img", "aria-label": label}
    said = " ".join(f'{name}="{escape(value)}"' for name, value in (named | attributes).items())
    style = f"<style>{style}</style>" if style else ""
    return f"<svg {said}>{style}{''.join(parts)}</svg>"


def texts(lines: Sequence[tuple[str, str]], x: float, y: float, step: float) -> str:
    """Lines of text below one another: (class, text) each."""
    return "".join(
        f'<text class="{kind}" x="{x:g}" y="{y + i * step:g}">{escape(text)}</text>'
        for i, (kind, text) in enumerate(lines)
    )


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    points: Sequence[Point]
    style: str = "after"  # the CSS class that colors it
    label: str = ""  # written at its right end
    band: Sequence[tuple[float, float, float]] = ()  # (x, low, high)
    look: str = "raw"  # "raw": values faintly, running mean on top; "dots": every value; "plain"

    def finite(self) -> "Line":
        """The points that can be drawn."""
        points = [point for point in self.points if all(map(is_finite, point))]
        return replace(self, points=points, band=[b for b in self.band if all(map(is_finite, b))])


def plot(
    lines: Sequence[Line],
    x_name: str = "step",
    share: bool = False,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    **attributes,
) -> Markup:
    """The lines in one frame; nothing if none has a finite value.

    `share` says that the vertical axis is 0–1.
    """
    lines = [line for line in map(Line.finite, lines) if line.points]
    if not lines:
        return Markup("")
    lines = [replace(line, points=thinned(line.points)) for line in lines]
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    ys += [y for line in lines for _, low, high in line.band for y in (low, high)]
    margin = RIGHT + LETTER * max(len(line.label) for line in lines)
    frame = _Frame(xs, [*((0.0, 1.0) if share else ()), *ys], size, margin)
    parts = [frame.axes(x_name)]
    ends = []
    for line in lines:
        parts += _drawn(frame, line)
        ends.append((running_mean(line.points) if line.look == "raw" else line.points)[-1])
    parts += frame.labels([line.label for line in lines], [line.style for line in lines], ends)
    last = lines[0].points[-1][1]
    label = f"last value {last:.4g}, from {lines[0].points[0][1]:.4g}"
    return Markup(svg(size, parts, **{"label": label, **attributes}))


def _drawn(frame: "_Frame", line: Line) -> list[str]:
    parts = []
    if len(line.band) > 1:
        upper = [(x, high) for x, _, high in line.band]
        lower = [(x, low) for x, low, _ in line.band]
        parts.append(frame.band([*upper, *reversed(lower)], line.style))
    points = line.points
    if line.look == "raw":
        parts.append(frame.line(points, f"raw {line.style}"))
        points = running_mean(points)
    parts.append(frame.line(points, line.style))
    for point in points if line.look == "dots" else points[-1:]:
        title = f"{line.label}: " if line.label else ""
        parts.append(frame.dot(point, line.style, f"{title}{point[1]:.4g}"))
    return parts


class _Frame:
    """Scales from data to picture, and the shapes drawn with them."""

    def __init__(self, xs, ys, size, right):
        self.right, self.bottom = size[0] - right, size[1] - BOTTOM
        self.x_low, self.x_high = min(xs), max(xs)
        if self.x_low == self.x_high:  # one step: in the middle
            self.x_low, self.x_high = self.x_low - 0.5, self.x_high + 0.5
        self.y_ticks = _ticks(min(ys), max(ys), 4)
        self.y_low, self.y_high = min(self.y_ticks[0], min(ys)), max(self.y_ticks[-1], max(ys))
        ticks = _ticks(self.x_low, self.x_high, 5, whole=True)
        ticks = [x for x in ticks if self.x_low <= x <= self.x_high]
        self.x_ticks = dict(zip(ticks, tick_texts(ticks), strict=True))
        self.y_texts = tick_texts(self.y_ticks)
        self.left = max(LEFT, 12 + LETTER * max(map(len, self.y_texts)))

    def x(self, value: float) -> float:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return round(self.bottom - share * (self.bottom - TOP), 1)

    def _path(self, points: Sequence[Point]) -> str:
        return " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)

    def line(self, points: Sequence[Point], kind: str) -> str:
        return f'<polyline class="line {kind}" points="{self._path(points)}"/>'

    def band(self, points: Sequence[Point], kind: str) -> str:
        return f'<polygon class="band {kind}" points="{self._path(points)}"/>'

    def dot(self, point: Point, kind: str, title: str) -> str:
        place = f'cx="{self.x(point[0])}" cy="{self.y(point[1])}" r="3.2"'
        return f'<circle class="dot {kind}" {place}><title>{escape(title)}</title></circle>'

    def labels(self, texts: Sequence[str], kinds: Sequence[str], ends: Sequence[Point]):
        """Each text next to the end of its line, moved apart if two would overlap."""
        parts = []
        order = [i for i, text in enumerate(texts) if text]
        order.sort(key=lambda i: self.y(ends[i][1]))
        while order:
            x = self.x(ends[order[0]][0])
            near = [i for i in order if abs(self.x(ends[i][0]) - x) < LETTER * 2]
            order = [i for i in order if i not in near]
            heights = apart([self.y(ends[i][1]) for i in near], LABEL_GAP, TOP, self.bottom)
            for i, y in zip(near, heights, strict=True):
                place = f'x="{round(self.x(ends[i][0]) + 8, 1)}" y="{round(y + 4, 1)}"'
                parts.append(f'<text class="label {kinds[i]}" {place}>{escape(texts[i])}</text>')
        return parts

    def axes(self, x_name: str) -> str:
        parts = []
        for tick, text in zip(self.y_ticks, self.y_texts, strict=True):
            y = self.y(tick)
            parts.append(
                f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{y}" y2="{y}"/>'
            )
            parts.append(f'<text class="tick" x="{self.left - 6}" y="{y + 4}">{text}</text>')
        for value, label in self.x_ticks.items():
            place = f'x="{self.x(value)}" y="{self.bottom + 15}"'
            parts.append(f'<text class="tick x" {place}>{escape(label)}</text>')
        place = f'x="{(self.left + self.right) / 2}" y="{self.bottom + BOTTOM - 3}"'
        parts.append(f'<text class="tick x" {place}>{escape(x_name)}</text>')
        return "".join(parts)


def _ticks(low: float, high: float, count: int, whole: bool = False) -> list[float]:
    """About `count` round numbers that span low…high."""
    if high - low <= 1e-8 * max(abs(low), abs(high)):  # less than float32 can hold
        margin = abs(high) / 2 or 1.0
        low, high = low - margin, high + margin
    locator = MaxNLocator(count, steps=[1, 2, 2.5, 5, 10], integer=whole)
    return [round(float(tick), 12) for tick in locator.tick_values(low, high)]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """The ticks of one axis, with as many decimals as all of them need."""
    steps = [after - before for before, after in pairwise(ticks)]
    decimals = next(d for d in range(9) if d == 8 or all(_is_round(step, d) for step in steps))
    if 0 < max(map(abs, ticks)) < 1e-3:
        return [f"{tick:.3g}" for tick in ticks]
    return [f"{tick:,.{decimals}f}" if tick else "0" for tick in ticks]


def _is_round(value: float, decimals: int) -> bool:
    return abs(round(value, decimals) - value) < 1e-6 * abs(value)


def thinned(points: Sequence[Point], most: int = POINTS) -> Sequence[Point]:
    """At most `most` points, each the mean of neighbors."""
    size = math.ceil(len(points) / most)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(g[-1][0], sum(y for _, y in g) / len(g)) for g in groups]


def running_mean(points: Sequence[Point]) -> list[Point]:
    """Exponential mean over about a tenth of the curve, without a pull toward its start."""
    keep = 1 - 2 / (max(3, len(points) / 10) + 1)
    total = weight = 0.0
    smooth = []
    for x, y in points:
        total, weight = keep * total + y, keep * weight + 1
        smooth.append((x, total / weight))
    return smooth
