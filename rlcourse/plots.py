"""One look for every picture of the course: labelled, color-blind safe, readable at half size."""

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from rlcourse import pictures

# Okabe and Ito's palette: distinct for every common form of color blindness, and in print.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = COLORS

# Inches of a panel by how many are side by side: each can be read alone, across a phone.
WIDTHS = {1: 5.8, 2: 4.4, 3: 3.5, 4: 3.5}
HEIGHT = 3.5
SHADE = 0.7  # of a curve's color, for the words next to it


def use_style() -> None:
    """Set matplotlib's defaults to the course's style. Every lesson's first cell calls it.

    In a notebook figures are shown with a description, for light pages and dark ones.
    """
    mpl.rcParams.update(
        {
            "axes.grid": True,
            "axes.labelsize": 11,
            "axes.prop_cycle": plt.cycler(color=COLORS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 120,
            "figure.facecolor": "white",
            "figure.figsize": (WIDTHS[1], HEIGHT),
            "font.size": 11,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "lines.linewidth": 2,
        }
    )
    pictures.show_described()


def smooth(values: Sequence[float], span: int = 10) -> Tensor:
    """Centred moving average over about `span` values; neighbours count less with distance.

    Centred, so that a rise appears where it happens and not some steps later.
    """
    values = torch.tensor([float(value) for value in values])
    place = torch.arange(len(values))
    distance = (place[:, None] - place).abs()
    weights = (1 - distance / (span / 2 + 1)).clamp(min=0)
    return weights @ values / weights.sum(dim=1)


def curve(ax, values: Sequence[float], label: str, color: str | None = None, span: int = 10):
    """Draw a noisy series: the raw values faint, their moving average over them."""
    (line,) = ax.plot(smooth(values, span), label=label, color=color)
    ax.plot(values, color=line.get_color(), alpha=0.3, linewidth=1)
    count_in_integers(ax)
    return line


def band(ax, runs: Sequence[Sequence[float]], label: str, color: str | None = None, x=None):
    """Draw the mean of several runs (seeds × steps) in a band from lowest to highest."""
    values = torch.as_tensor(runs, dtype=torch.float)
    x = range(values.shape[1]) if x is None else x
    count_in_integers(ax)
    (line,) = ax.plot(x, values.mean(dim=0), label=label, color=color)
    low, high = values.min(dim=0).values, values.max(dim=0).values
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    return line


def held_out(ax, runs, label: str, color: str | None = None, per_step: int = 1):
    """Greedy accuracy of training runs on *one fixed set of problems*, at step 0 and on the way.

    `runs` is a run or several (their mean, in a band from lowest to highest), trained with
    ``eval_every`` and ``eval_problems``; the set is the same before training and at every point.
    On the x axis a step counts as `per_step`, such as the number of completions that it samples.
    """
    runs = runs if isinstance(runs, Sequence) else [runs]
    places, series = [], []
    for run in runs:
        checked = [m for m in run.metrics if "eval/accuracy" in m]
        places = [0] + [m["step"] * per_step for m in checked]
        series.append([run.before.accuracy.value] + [m["eval/accuracy"] for m in checked])
    line = band(ax, series, label, color, x=places)
    line.set_marker("o")
    line.set_markersize(4)
    return line


def count_in_integers(ax) -> None:
    """No half steps on a linear x axis."""
    if ax.get_xscale() == "linear":
        ax.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10]))


def label_curves(ax) -> None:
    """Write each curve's label at its right end, in a darker shade of its color; no legend then.

    For a few curves whose ends can be told apart. Call it last, when the limits are set.
    """
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    ax.figure.draw_without_rendering()
    size = mpl.rcParams["font.size"]
    pixels = ax.figure.dpi / 72  # of a point
    ends = [(line.get_xdata()[-1], float(line.get_ydata()[-1])) for line in lines]
    heights = [ax.transData.transform(end)[1] / pixels for end in ends]
    for line, end, height, place in zip(
        lines, ends, heights, pictures.apart(heights, size), strict=True
    ):
        ax.annotate(
            line.get_label(),
            end,
            (6, place - height),
            textcoords="offset points",
            va="center",
            color=[SHADE * part for part in to_rgb(line.get_color())],
            annotation_clip=False,
        )


def figure(columns: int = 1, xlabel: str = "", ylabel: str = "", title: str = ""):
    """A figure with one or more axes side by side; labels go to the first (or only) one."""
    fig, axes = plt.subplots(1, columns, figsize=(columns * WIDTHS[columns], HEIGHT))
    first = axes if columns == 1 else axes[0]
    first.set(xlabel=xlabel, ylabel=ylabel, title=title)
    return fig, axes
