"""How a figure becomes a notebook output: described in words, legible on light and on dark.

JupyterLab's own pictures are white in its dark theme, and their ``alt`` is empty. An output made
here is HTML: an ``<img>`` with a description generated from the axes. On a dark page a filter turns
the light picture dark and keeps its hues, so that a text may speak of "the blue line" on both.
If HTML is sanitized, the filter is lost, and a dark-on-white picture remains.
"""

import base64
import html
import io
import math
import sys
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

INLINE = ("inline", "module://matplotlib_inline.backend_inline")
SHARPNESS = 2  # pixels in the file for each one on the page
SHADES = 64  # in the file, which is then a third as large

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
    """The figure as HTML that stands alone: a PNG within ``<img alt="…">``."""
    width, dpi, shown_on = figure.get_figwidth() * figure.dpi, figure.dpi, figure.canvas
    figure.set_dpi(dpi * SHARPNESS)
    canvas = FigureCanvasAgg(figure)  # a closed figure's own has no pixels
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    figure.set_dpi(dpi)
    figure.set_canvas(shown_on)
    png = io.BytesIO()
    pixels.quantize(SHADES, dither=Image.Dither.NONE).save(png, "PNG", optimize=True)
    description = html.escape(" ".join(map(describe, figure.axes)))
    return (
        f'<style>{DARK}</style><img class="rlcourse-picture" alt="{description}" '
        f'width="{width:.0f}" style="max-width:100%;height:auto;border-radius:4px" '
        f'src="data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}">'
    )


def describe(ax: Axes) -> str:
    """What the axes show, in words: title, labels, and curves by name with their ends."""
    across, up = (axis.get_label_text() for axis in (ax.xaxis, ax.yaxis))
    what = " against ".join(filter(None, [up, across]))
    parts = list(map(_curve, filter(_name, ax.lines)))
    said = what + (": " if what and parts else "") + "; ".join(parts)
    sentences = list(filter(None, [ax.get_title("left") or ax.get_title(), said])) or ["A picture"]
    return ". ".join(sentences) + "."


def _curve(line: Line2D) -> str:
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    seen = np.isfinite(x) & np.isfinite(y)
    x, y = x[seen], y[seen]
    if len(x) and (x == x[0]).all():  # a point, or an upright line
        return f"{_name(line)} at {x[0]:.3g}"
    ends = f" from {y[0]:.3g} at {x[0]:.3g} to {y[-1]:.3g} at {x[-1]:.3g}" if len(x) else ""
    return _name(line) + ends


def _name(artist) -> str:
    """The label that it was given; "" for matplotlib's own."""
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def apart(places: Sequence[float], gap: float, low=-math.inf, high=math.inf) -> list[float]:
    """The places of labels, moved up so that no two are nearer than `gap`, and kept within the ends
    where there is room."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for i in order:
        moved[i] = max(moved[i], low)
        low = moved[i] + gap
    for i in reversed(order):
        moved[i] = min(moved[i], high)
        high = moved[i] - gap
    return moved
