"""The course's one style of picture: smoothing that does not lag, whole steps, one fixed set."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
import torch

from rlcourse import pictures, plots


@pytest.mark.parametrize("span", [4, 6, 10])
def test_smoothing_does_not_lag(span):
    """Run backwards it gives the same curve backwards, and a step is crossed where it happens."""
    values = torch.rand(40, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        plots.smooth(values.flip(0), span), plots.smooth(values, span).flip(0)
    )
    step = plots.smooth([0.0] * 20 + [1.0] * 20, span)
    assert step[19] < 0.5 < step[20]


def run(first, values, every=5):
    metrics = [{"step": s} for s in range(1, every * len(values) + 1)]
    for i, value in enumerate(values, 1):
        metrics[every * i - 1]["eval/accuracy"] = value
    before = SimpleNamespace(accuracy=SimpleNamespace(value=first))
    return SimpleNamespace(metrics=metrics, before=before)


def test_held_out_accuracy_begins_before_training_and_counts_whole_steps():
    fig, ax = plt.subplots()
    line = plots.held_out(ax, [run(0.1, [0.5, 0.7]), run(0.3, [0.5, 0.9])], label="two seeds")
    assert list(line.get_xdata()) == [0, 5, 10]
    assert line.get_ydata().tolist() == pytest.approx([0.2, 0.5, 0.8])
    one = plots.held_out(ax, run(0.1, [0.5]), label="one", per_step=128)
    assert list(one.get_xdata()) == [0, 640]
    plt.close(fig)


def test_steps_are_never_halved():
    fig, ax = plt.subplots()
    plots.curve(ax, [0.1, 0.2, 0.3], label="three steps")
    fig.canvas.draw()
    assert all(tick == int(tick) for tick in ax.get_xticks())
    plt.close(fig)


@pytest.mark.parametrize("places", [[1.0, 30.0, 60.0], [5.0, 5.1, 5.2], [9.0, 1.0, 8.0, 8.5, 40.0]])
def test_labels_at_curves_never_overlap_and_keep_their_order(places):
    moved = pictures.apart(places, gap=10)
    order = sorted(range(len(places)), key=lambda i: places[i])
    assert sorted(range(len(moved)), key=lambda i: moved[i]) == order
    steps = torch.tensor([moved[i] for i in order]).diff()
    assert steps.min() > 9.9
    if min(torch.tensor(sorted(places)).diff()) > 10:
        assert moved == places


def test_labels_stand_at_the_ends_of_their_curves():
    fig, ax = plots.figure(ylabel="share")
    for name, end in (("low", 0.1), ("high", 0.9)):
        ax.plot([0, 1], [0.5, end], label=name)
    plots.label_curves(ax)
    fig.draw_without_rendering()
    place = {text.get_text(): text.get_window_extent() for text in ax.texts}
    for name, end in (("low", 0.1), ("high", 0.9)):
        x, y = ax.transData.transform((1, end))
        assert place[name].x0 > x and place[name].y0 < y < place[name].y1
    assert not ax.get_legend()
    plt.close(fig)
