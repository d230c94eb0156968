"""Progress bars: tqdm's, and in a notebook an output that survives saving.

A widget is alive only while its kernel is; a notebook that is opened again shows an error in its
place. So in a notebook the bar is drawn as HTML, with anything else there is to see below it.
"""

import io
import os
import sys
from html import escape

from tqdm.std import tqdm

MIME = "application/vnd.rlcourse.bar+json"  # marks such an output, so that it can be left out


def bar(iterable=None, picture=None, **options) -> tqdm:
    """``tqdm(iterable, **options)``, drawn to suit a terminal or a notebook.

    `picture` is what a notebook shows below it: any object with a ``_repr_html_``, which is called
    at every update.
    """
    if in_notebook():
        return NotebookBar(iterable, picture, **options)
    return tqdm(iterable, dynamic_ncols=True, **options)


def in_notebook() -> bool:
    """Whether a notebook shows the outputs: Jupyter, VS Code, Colab."""
    if "IPython" not in sys.modules or "ipykernel" not in sys.modules:
        return False
    from ipykernel.zmqshell import ZMQInteractiveShell

    return isinstance(sys.modules["IPython"].get_ipython(), ZMQInteractiveShell)


def watched() -> bool:
    """Whether somebody may be looking at a notebook while it runs; not during grading."""
    return in_notebook() and "NBGRADER_EXECUTION" not in os.environ


class NotebookBar(tqdm):
    """A bar in a separate output, which is updated in place."""

    def __init__(self, iterable=None, picture=None, **options):
        self.picture, self._output, self._text = picture, None, ""
        pace = {"mininterval": 0.5} if picture else {}  # a picture is a few thousand characters
        super().__init__(iterable, **{**pace, **options, "file": io.StringIO()})

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the bar as it is now; an empty `msg` takes it away."""
        facts = self.format_dict | {"bar_format": "{l_bar}{r_bar}"}
        self._text = self.format_meter(**facts).replace("||", "|") if msg is None else msg
        self.redraw_picture()

    def redraw_picture(self) -> None:
        """Redraw what is below the bar. The bar stays as it is, with the time that it shows."""
        from IPython.display import display

        share = f' value="{self.n}" max="{self.total}"' if self.total else ""
        below = self.picture._repr_html_() if self.picture else ""
        drawn = f"<div><progress{share}></progress> {escape(self._text)}</div>{below}"
        data = {"text/html": drawn if self._text else "", "text/plain": self._text, MIME: {}}
        if self._output is None:
            self._output = display(data, raw=True, display_id=True)
        else:
            self._output.update(data, raw=True)
