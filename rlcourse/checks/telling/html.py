"""The HTML that Jupyter shows, in the colors of the reader's theme."""

import re
from collections.abc import Sequence
from html import escape as html_escape
from typing import TYPE_CHECKING

from torch import Tensor

from rlcourse.checks.judging.comparing import Difference, Tolerance
from rlcourse.checks.telling.show import WRONG

if TYPE_CHECKING:  # a result shows itself by what is here
    from rlcourse.checks.telling.result import Example, Result

GREEN, AMBER, RED = "#2a9d5c", "#c98a1b", "#d1553b"  # readable on white and on black
GREY = "rgba(128, 128, 128, .6)"
POSITIVE, NEGATIVE = "0, 114, 178", "213, 94, 0"  # blue and vermilion, told apart by everyone
HATCH = "repeating-linear-gradient(45deg, transparent 0 4px, rgba(128, 128, 128, .45) 4px 5px)"
LARGEST_GRID = 12  # rows or columns of a heat table


def escape(text: str) -> str:
    """Text as HTML in which JupyterLab finds no formula between two dollar signs."""
    return html_escape(text).replace("$", "<span>$</span>")


def box(content: str, color: str) -> str:
    """A calm frame with a colored left edge."""
    return (
        f'<div style="border-left: 4px solid {color}; padding: .2em 0 .2em .9em; '
        f"margin: .3em 0; color: var(--jp-content-font-color1, currentColor); "
        f'max-width: 52em; line-height: 1.5">{content}</div>'
    )


def prose(text: str) -> str:
    """Escaped text, with `code` and *emphasis*."""
    parts = re.split(r"`([^`]+)`", escape(text))
    for i, part in enumerate(parts):
        emphasized = re.sub(r"\*(\w[^*]*)\*", r"<em>\1</em>", part)
        parts[i] = f"<code>{part}</code>" if i % 2 else emphasized
    return "".join(parts)


def folded(summary: str, content: str, is_open: bool = False) -> str:
    return (
        f'<details{" open" if is_open else ""} style="margin: .3em 0">'
        f'<summary style="cursor: pointer">{prose(summary)}</summary>'
        f'<div style="padding-left: 1em">{content}</div></details>'
    )


def hints_html(hints: Sequence[str]) -> str:
    """Hints folded into each other: the second is visible only after unfolding the first."""
    html = ""
    for i, text in reversed(list(enumerate(hints))):
        html = folded("The next hint" if i else "A hint", hint_html(text) + html)
    return html


def hint_html(text: str) -> str:
    """Prose, and indented code after a blank line as it stands."""
    words, _, code = text.partition("\n\n")
    return prose(words) + (f'<pre style="background: none">{escape(code)}</pre>' if code else "")


def result_html(result: "Result") -> str:
    """A check's verdict."""
    head, _, tail = result.headline.partition("   ")
    parts = [f"<div><strong>{prose(head)}</strong> &ensp;{prose(tail)}</div>"]
    if result.mistake:
        first, *rest = result.advice
        parts.append(f"<div><strong>{prose(first)}</strong></div>")
        parts += map(_sentence, rest)
    else:
        parts += [f"<div>{prose(sentence)}</div>" for sentence in result.advice]
    if result.example:
        parts.append(_example_html(result.example))
    parts += [f'<div style="opacity: .8">{prose(note)}</div>' for note in result.notes]
    if not result.passed:
        parts.append(hints_html(result.hints))
        parts.append(f'<div style="opacity: .7">{prose(result.footer)}</div>')
    almost = result.edges or result.once
    return box("".join(parts), AMBER if almost else GREEN if result.passed else RED)


def _sentence(text: str) -> str:
    """A sentence on a line of its own; in a list of what is wrong, after a mark."""
    if not text.startswith(WRONG):
        return f"<div>{prose(text)}</div>"
    mark = f'<span style="color: {RED}">✗</span> <strong>{WRONG.strip()}</strong>'
    style = "padding-left: 1.3em; text-indent: -1.3em; margin: .15em 0"
    return f'<div style="{style}">{mark} {prose(text.removeprefix(WRONG))}</div>'


def _example_html(example: "Example") -> str:
    drawn = _drawable(example)
    rows = "".join(
        f'<tr style="background: none">'
        f'<td style="text-align: left; padding: 0 1em 0 0; opacity: .75">{escape(name)}</td>'
        f'<td style="text-align: left; padding: 0; font-family: var(--jp-code-font-family, '
        f'monospace); overflow-wrap: anywhere">{escape(value)}</td></tr>'
        for name, value in example.lines(without=drawn)
    )
    picture = _grids_html(example, drawn) if drawn else ""
    label = prose(example.heading)
    table = f'<table style="margin: .2em 0; border: 0; background: none">{rows}</table>'
    return f'<div style="margin-top: .4em">{label}</div>{table}{picture}'


def _drawable(example: "Example") -> Difference | None:
    """The first difference between two (N, T) tensors that fit on a screen: worth a picture."""
    for difference in example.differences:
        pair = difference.expected, difference.actual
        if difference.kind in ("value", "gradient") and all(
            isinstance(t, Tensor) and t.ndim == 2 and max(t.shape) <= LARGEST_GRID for t in pair
        ):
            return difference
    return None


def _grids_html(example: "Example", difference: Difference) -> str:
    mask = example.case.arguments.get("mask")
    if not isinstance(mask, Tensor) or mask.shape != difference.expected.shape:
        mask = None
    largest = max(
        float(t.double().nan_to_num(0, 0, 0).abs().max())
        for t in (difference.expected, difference.actual)
    )
    what = f"gradient of {difference.name}" if difference.kind == "gradient" else "result"
    tables = [
        _heat_table(title, values, difference.expected, mask, largest or 1.0, example)
        for title, values in (
            (f"{what}, expected", difference.expected),
            (f"{what}, yours", difference.actual),
        )
    ]
    style = "display: flex; gap: 2em; flex-wrap: wrap; align-items: flex-start"
    return f'<div style="{style}">{"".join(tables)}</div>'


def _heat_table(title, values, expected, mask, largest, example) -> str:
    rule = Tolerance.of(example.case)
    rows = []
    for i, row in enumerate(values):
        cells = []
        for j, value in enumerate(row):
            wrong = values.shape == expected.shape and not rule.close(expected[i, j], value)
            padding = mask is not None and not bool(mask[i, j])
            cells.append(_cell(float(value), largest, padding, wrong))
        rows.append(f'<tr style="background: none">{"".join(cells)}</tr>')
    return (
        f'<table style="border-collapse: separate; border-spacing: 2px; margin: .2em 0">'
        f'<caption style="text-align: left; white-space: nowrap; opacity: .75">'
        f"{escape(title)}</caption>"
        f"{''.join(rows)}</table>"
    )


def _cell(value: float, largest: float, padding: bool, wrong: bool) -> str:
    strength = min(abs(value) / largest, 1.0) * 0.6 if value == value else 0.0
    color = f"rgba({POSITIVE if value > 0 else NEGATIVE}, {strength:.2f})"
    layers = f"{HATCH}, " * padding + f"linear-gradient({color}, {color})"
    outline = f"2px solid {RED}" if wrong else "1px solid rgba(128, 128, 128, .35)"
    return (
        f'<td style="background: {layers}; outline: {outline}; padding: .15em .5em; '
        f'text-align: right; font-variant-numeric: tabular-nums">{value + 0.0:.3g}</td>'
    )
