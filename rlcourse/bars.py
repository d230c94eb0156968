"""Progress bars: tqdm's, and in a notebook an output that survives saving.

A widget is only alive while its kernel is; a notebook that is opened again shows an error where it
stood. So in a notebook the bar is drawn as HTML, with the curve of one number under it.
"""

import io
import sys
from html import escape

from tqdm.std import tqdm

MIME = "application/vnd.rlcourse.bar+json"  # marks such an output, for those who want none
WIDTH, HEIGHT = 420, 56  # of the curve, in pixels


def bar(iterable=None, **options) -> tqdm:
    """``tqdm(iterable, **options)``, drawn as fits the place; `follow` may be called either way."""
    kind = NotebookBar if in_notebook() else tqdm
    return kind(iterable, **options)


def follow(bar: tqdm, name: str, value: float | None) -> None:
    """Add a value to the curve that a notebook draws under the bar."""
    if isinstance(bar, NotebookBar) and value is not None:
        bar.name = name
        bar.values.append(value)


def in_notebook() -> bool:
    """Whether outputs are shown by a notebook: Jupyter, VS Code, Colab."""
    if "IPython" not in sys.modules or "ipykernel" not in sys.modules:
        return False
    from ipykernel.zmqshell import ZMQInteractiveShell

    return isinstance(sys.modules["IPython"].get_ipython(), ZMQInteractiveShell)


class NotebookBar(tqdm):
    """A bar in an output of its own, which is updated in place."""

    def __init__(self, iterable=None, **options):
        self.name, self.values, self._output = "", [], None
        shape = {"ncols": 90, "ascii": False}
        super().__init__(iterable, **{**shape, **options, "file": io.StringIO()})

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the bar as it is now; an empty `msg` takes it away."""
        from IPython.display import display

        text = str(self) if msg is None else msg
        drawn = f'<pre style="margin: 0">{escape(text)}</pre>{self._curve()}' if text else ""
        data = {"text/html": drawn, "text/plain": text, MIME: {}}
        if self._output is None:
            self._output = display(data, raw=True, display_id=True)
        else:
            self._output.update(data, raw=True)

    def _curve(self) -> str:
        if len(self.values) < 2:
            return ""
        low, high = min(self.values), max(self.values)
        step, span = WIDTH / (len(self.values) - 1), (high - low) or 1.0
        points = " ".join(
            f"{i * step:.1f},{HEIGHT - 4 - (value - low) / span * (HEIGHT - 8):.1f}"
            for i, value in enumerate(self.values)
        )
        words = f"{escape(self.name)}: {self.values[0]:.2f} → {self.values[-1]:.2f}"
        return (
            f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{words}" style="max-width: 100%; overflow: visible">'
            f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
            f'</svg><div style="font-size: 90%">{words} ({low:.2f} to {high:.2f})</div>'
        )
