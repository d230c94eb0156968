"""One look for every picture of the course: labelled, color-blind safe, readable at half size."""

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from torch import Tensor

# Okabe and Ito's palette: distinct for every common form of color blindness, and in print.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = COLORS


def use_style() -> None:
    """Set matplotlib's defaults to the course's style. Every lesson's first cell calls it."""
    mpl.rcParams.update(
        {
            "axes.grid": True,
            "axes.labelsize": 12,
            "axes.prop_cycle": plt.cycler(color=COLORS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 12,
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "figure.figsize": (7, 3.6),
            "font.size": 11,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "lines.linewidth": 2,
        }
    )


def smooth(values: Sequence[float], span: int = 10) -> Tensor:
    """Exponential moving average over about `span` values, free of the pull toward its start."""
    decay = 1 - 2 / (span + 1)
    average, weight, smoothed = 0.0, 0.0, []
    for value in values:
        average = decay * average + (1 - decay) * float(value)
        weight = decay * weight + (1 - decay)
        smoothed.append(average / weight)
    return torch.tensor(smoothed)


def curve(ax, values: Sequence[float], label: str, color: str | None = None, span: int = 10):
    """Draw a noisy series: the raw values faint, their moving average over them."""
    (line,) = ax.plot(smooth(values, span), label=label, color=color)
    ax.plot(values, color=line.get_color(), alpha=0.3, linewidth=1)
    return line


def band(ax, runs: Sequence[Sequence[float]], label: str, color: str | None = None, x=None):
    """Draw the mean of several runs (seeds × steps) in a band from lowest to highest."""
    values = torch.as_tensor(runs, dtype=torch.float)
    x = range(values.shape[1]) if x is None else x
    (line,) = ax.plot(x, values.mean(dim=0), label=label, color=color)
    low, high = values.min(dim=0).values, values.max(dim=0).values
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    return line


def figure(columns: int = 1, xlabel: str = "", ylabel: str = "", title: str = ""):
    """A figure with one or more axes side by side; labels go to the first (or only) one."""
    fig, axes = plt.subplots(1, columns, figsize=(7 if columns == 1 else 4.6 * columns, 3.6))
    first = axes if columns == 1 else axes[0]
    first.set(xlabel=xlabel, ylabel=ylabel, title=title)
    return fig, axes
