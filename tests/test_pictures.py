"""A picture in a notebook: described in words, legible on light and dark pages."""

import base64
import html
import io
import re

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image

from rlcourse import pictures, plots
from rlcourse.authoring.kernel import run_cells

PLOTTED = """
from rlcourse import plots
plots.use_style()
fig, (left, right) = plots.figure(columns=2, xlabel="step", ylabel="loss & more")
left.plot([0, 1, 2], [3, 2, 1], label="loss")
right.bar(["a", "b"], [1, 2]);
"""


@pytest.fixture
def figure():
    made = []

    def make(columns=1, **labels):
        fig, axes = plots.figure(columns, **labels)
        made.append(fig)
        return fig, axes

    with plt.rc_context():
        plots.use_style()
        yield make
    for fig in made:
        plt.close(fig)


@pytest.mark.slow
def test_a_notebook_shows_html_with_a_description_and_nothing_beside_it(tmp_path):
    cells = [new_code_cell(PLOTTED), new_code_cell("fig")]
    for cell in cells:
        cell.id = f"plot-{cells.index(cell)}"
    notebook = new_notebook(cells=cells)
    assert run_cells(notebook, tmp_path, timeout=120, stop_on_error=True, progress=False) is None
    nbformat.validate(notebook)
    for cell in notebook.cells:  # shown when the cell ends, and as a value
        (output,) = cell.outputs
        assert set(output.data) == {"text/html", "text/plain"}
        (said,) = re.findall(r'<img [^>]*alt="([^"]*)"', output.data["text/html"])
        left = "loss & more against step: loss from 3 at 0 to 1 at 2."
        assert html.unescape(said) == f"{left} A picture."
        for data in re.findall(r'src="data:image/png;base64,([^"]*)"', output.data["text/html"]):
            assert Image.open(io.BytesIO(base64.b64decode(data))).width > 600


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda ax: ax.plot([1, 2, 3], [0.25, 0.9, 0.5], label="β = 1"),
         "β = 1 from 0.25 at 1 to 0.5 at 3."),
        (lambda ax: ax.axhline(0.3), "A picture."),
        (lambda ax: ax.plot([], [], label="arrow"), "arrow."),
        (lambda ax: ax.plot([0, 1, 2], [np.nan, 1, 2], label="b"), "b from 1 at 1 to 2 at 2."),
        (lambda ax: ax.axvline(0.2, label="start"), "start at 0.2."),
    ],
)  # fmt: skip
def test_what_is_drawn_is_said(figure, draw, said):
    _, ax = figure()
    draw(ax)
    assert pictures.describe(ax) == said


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def on_a_dark_page(color):
    """CSS's invert(0.9) and hue-rotate(180deg), as Filter Effects define them."""
    amount = float(re.search(r"invert\(([\d.]+)\) hue-rotate\(180deg\)", pictures.DARK)[1])
    inverted = np.array([amount * (1 - c) + (1 - amount) * c for c in color])
    turned = [[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]] @ inverted
    return turned.clip(0, 1)


@pytest.mark.parametrize("seen", [np.asarray, on_a_dark_page], ids=["light", "dark"])
def test_colors_stand_out_on_light_and_on_dark(seen):
    paper = seen(np.ones(3))
    for color in plots.COLORS[:4] + plots.COLORS[6:]:  # those that curves are drawn in
        rgb = np.array(plots.to_rgb(color))
        assert contrast(seen(rgb), paper) > 3, color
        assert contrast(seen(plots.SHADE * rgb), paper) > 4.5, color  # of its label
    assert contrast(seen(np.zeros(3)), paper) > 12


def test_hues_are_kept_on_a_dark_page():
    """A text speaks of the blue line on every page."""
    for color in plots.COLORS[:6]:
        rgb = np.array(plots.to_rgb(color))
        assert on_a_dark_page(rgb).argmax() == rgb.argmax(), color
