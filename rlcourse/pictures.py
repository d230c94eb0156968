"""How a figure becomes a notebook output: described in words, legible on light and on dark.

JupyterLab's own pictures are white in its dark theme, and their ``alt`` is empty. An output made
here is HTML: an ``<img>`` for each column of panels, side by side where there is room and below one
another on a phone, with a description generated from the axes. On a dark page a filter turns
the light picture dark and keeps its hues, so that a text may speak of "the blue line" on both.
If HTML is sanitized, the filter is lost, and a dark-on-white picture remains.
"""

import base64
import html
import io
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, Container, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Bbox
from PIL import Image

INLINE = ("inline", "module://matplotlib_inline.backend_inline")
SHARPNESS = 2  # pixels in the file for each one on the page
SHADES = 64  # in the file, which is then a third as large
SMALLEST = 0.5  # of a panel's size; panels that would be smaller go below one another
READ_OUT = 12  # bars and dots that are read out; if there are more, their number is

# JupyterLab and nbconvert, VS Code, Colab, and pages of Sphinx, in the order of the selectors.
DARK = """\
[data-jp-theme-light="false"] .rlcourse-picture, .vscode-dark .rlcourse-picture,
html[theme="dark"] .rlcourse-picture, [data-theme="dark"] .rlcourse-picture
{ filter: invert(0.9) hue-rotate(180deg); }"""


def show_described() -> None:
    """In a notebook, show every figure as `as_html` gives it; elsewhere, do nothing.

    Looks for IPython and does not import it: if it is not loaded, there is no notebook.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or mpl.get_backend(auto_select=False) not in INLINE:
        return
    from matplotlib_inline.backend_inline import set_matplotlib_formats  # registers its own first

    set_matplotlib_formats()  # no other picture next to this one
    shell.display_formatter.formatters["text/html"].for_type(Figure, as_html)


def as_html(figure: Figure) -> str:
    """The figure as HTML that stands alone: its panels as PNG within ``<img alt="…">``."""
    pictures = []
    for png, width, description in panels(figure):
        style = (
            f"flex:{width} 1 {SMALLEST * width:.0f}px;max-width:{width}px;min-width:0;height:auto;"
            "align-self:flex-start;margin:0;border-radius:4px"
        )
        pictures.append(
            f'<img class="rlcourse-picture" alt="{html.escape(description)}" width="{width}" '
            f'style="{style}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        )
    flex = "display:flex;flex-wrap:wrap;gap:4px"
    return f'<style>{DARK}</style><div style="{flex}">{"".join(pictures)}</div>'


def panels(figure: Figure) -> list[tuple[bytes, int, str]]:
    """(PNG, width on the page in pixels, description) of each column of axes, left to right."""
    width, dpi, shown_on = figure.get_figwidth() * figure.dpi, figure.dpi, figure.canvas
    figure.set_dpi(dpi * SHARPNESS)
    canvas = FigureCanvasAgg(figure)  # a closed figure's own has no pixels
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    columns = _columns(figure)
    edges = [0, *_gaps(columns, canvas.get_renderer()), pixels.shape[1]]
    figure.set_dpi(dpi)
    figure.set_canvas(shown_on)
    found = []
    for axes, left, right in zip(columns, edges[:-1], edges[1:], strict=True):
        png = io.BytesIO()
        image = Image.fromarray(pixels[:, left:right, :3]).quantize(
            SHADES, dither=Image.Dither.NONE
        )
        image.save(png, "PNG", optimize=True)
        share = (right - left) / pixels.shape[1]
        texts = [describe(ax) for ax in axes]
        found.append((png.getvalue(), round(width * share), " ".join(filter(None, texts))))
    return found


def describe(ax: Axes) -> str:
    """What the axes show, in words: title, labels, and the place of each curve, bar or dot."""
    across, up = (axis.get_label_text() for axis in (ax.xaxis, ax.yaxis))
    what = " against ".join(filter(None, [up, across]))
    parts = [*_curves(ax), *_bars(ax), *_intervals(ax)]
    scattered = [c for c in ax.collections if isinstance(c, PathCollection)]
    dots = sum(np.asarray(c.get_offsets()).shape[0] for c in scattered)
    parts += [f"{dots} dots"] if dots else []
    said = what + (": " if what and parts else "") + "; ".join(parts)
    sentences = list(filter(None, [ax.get_title("left") or ax.get_title(), said])) or ["A picture"]
    return ". ".join(sentences) + "."


def _curves(ax: Axes) -> list[str]:
    drawn = [line for line in ax.lines if not _in_container(line, ax)]
    labelled = [line for line in drawn if _name(line)]
    return list(filter(None, map(_curve, labelled or drawn[:1])))


def _in_container(line: Line2D, ax: Axes) -> bool:
    return any(line in c.lines for c in ax.containers if isinstance(c, ErrorbarContainer))


def _curve(line: Line2D) -> str:
    name = _name(line)
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    seen = np.isfinite(x) & np.isfinite(y)
    x, y = x[seen], y[seen]
    if len(x) == 0:
        return name
    if line.get_linestyle() == "None" and len(x) > READ_OUT:
        return f"{name}: {len(x)} dots"
    if len(x) == 2 and not name:  # a line to guide the eye
        return ""
    if len(x) == 2 and x[0] == x[1]:
        return f"{name} at {x[0]:.3g}"
    if len(x) == 2 and y[0] == y[1]:
        return f"{name} at {y[0]:.3g}"
    said = f"{name} from {y[0]:.3g} at {x[0]:.3g} to {y[-1]:.3g} at {x[-1]:.3g}".strip()
    for word, i, sign in (("highest", y.argmax(), 1), ("lowest", y.argmin(), -1)):
        if min(sign * (y[i] - y[0]), sign * (y[i] - y[-1])) > 0.1 * np.ptp(y):
            said += f", {word} {y[i]:.3g} at {x[i]:.3g}"
    return said


def _bars(ax: Axes) -> list[str]:
    names = {place: text.get_text() for place, text in _ticks(ax.xaxis)}
    said = []
    for bars in (c for c in ax.containers if isinstance(c, BarContainer)):
        label = (
            f"{_name(bars) or _name(bars[0])} ".lstrip()
        )  # a histogram has its label on its first bar
        heights = [bar.get_height() for bar in bars]
        middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        near = [min(names, key=lambda p: abs(p - m), default=m) for m in middles]
        below = [names.get(place, f"{place:.3g}") for place in near]
        if len(bars) > READ_OUT:
            top = int(np.argmax(heights))
            said.append(f"{label}{len(bars)} bars, highest {heights[top]:.3g} at {below[top]}")
        else:
            pairs = zip(below, heights, strict=True)
            said.append(label + ", ".join(f"{name} {height:.3g}" for name, height in pairs))
    return said


def _intervals(ax: Axes) -> list[str]:
    names = {place: text.get_text() for place, text in _ticks(ax.yaxis)}
    said = []
    for interval in (c for c in ax.containers if isinstance(c, ErrorbarContainer)):
        if interval.lines[0] is not None and interval.has_xerr:
            x, y = (float(np.ravel(values)[0]) for values in interval.lines[0].get_data())
            low, high = (end[0] for end in interval.lines[2][0].get_segments()[0])
            said.append(f"{names.get(y, f'{y:.3g}')} {x:.3g}, from {low:.3g} to {high:.3g}")
    return said


def _name(artist: Artist | Container) -> str:
    """The label that it was given; "" for matplotlib's own."""
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _ticks(axis: Axis) -> list[tuple[float, Text]]:
    """Places and texts of ticks that were given as words."""
    if not isinstance(axis.get_major_locator(), FixedLocator | StrCategoryLocator):
        return []
    return list(zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True))


def _columns(figure: Figure) -> list[list[Axes]]:
    """Axes by their column in the grid; all in one if there is no grid."""
    columns: dict[int, list[Axes]] = {}
    for ax in figure.axes:
        place = ax.get_subplotspec()
        if place is None or len(place.colspan) > 1:
            return [list(figure.axes)]
        columns.setdefault(place.colspan.start, []).append(ax)
    if not columns or figure.texts or figure.legends:  # these belong to no one column
        return [list(figure.axes)]
    return [columns[start] for start in sorted(columns)]


def _gaps(columns: list[list[Axes]], renderer) -> list[int]:
    """Where to cut between columns, in pixels: halfway between what each draws."""
    boxes = [[ax.get_tightbbox(renderer) for ax in axes] for axes in columns]
    drawn = [Bbox.union([box for box in column if box]) for column in boxes]
    return [round((here.x1 + there.x0) / 2) for here, there in pairwise(drawn)]
