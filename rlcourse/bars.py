"""Progress bars: tqdm's, and in a notebook an output that survives saving.

A widget is alive only while its kernel is; a notebook that is opened again shows an error in its
place. So in a notebook the bar is drawn as HTML.
"""

import io
import sys
import threading
import time
from html import escape

from tqdm.std import tqdm

MIME = "application/vnd.rlcourse.bar+json"  # marks such an output, so that it can be left out


def bar(iterable=None, **options) -> tqdm:
    """``tqdm(iterable, **options)``, drawn to suit a terminal or a notebook."""
    if in_notebook():
        return NotebookBar(iterable, **options)
    return tqdm(iterable, dynamic_ncols=True, **options)


def in_notebook() -> bool:
    """Whether a notebook shows the outputs: Jupyter, VS Code, Colab."""
    if "IPython" not in sys.modules or "ipykernel" not in sys.modules:
        return False
    from ipykernel.zmqshell import ZMQInteractiveShell

    return isinstance(sys.modules["IPython"].get_ipython(), ZMQInteractiveShell)


class Tokens:
    """Shows in a bar's description how many tokens have been drawn, and how fast.

    Call it with each number of tokens. A batch that takes less than two seconds leaves the bar as
    it is; after that, it is redrawn every two seconds.
    """

    EVERY = 2.0

    def __init__(self, shown: tqdm, desc: str):
        self.shown, self.desc, self.drawn = shown, desc, 0
        self.started = self.told = time.monotonic()
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        """Redraw a terminal's bar until it is closed: its clock runs during a long step."""
        while not (self.shown.disable or in_notebook()):
            time.sleep(self.EVERY)
            self.shown.refresh()

    def __call__(self, tokens: int) -> None:
        self.drawn += tokens
        now = time.monotonic()
        if now - self.told >= self.EVERY:
            self.told = now
            rate = self.drawn / (now - self.started)
            self.shown.set_description(f"{self.desc}, {self.drawn:,} tokens, {rate:,.0f}/s")

    def begin(self) -> None:
        """Count from 0: the next batch begins."""
        self.drawn = 0
        self.started = self.told = time.monotonic()
        self.shown.set_description(self.desc, refresh=False)


class NotebookBar(tqdm):
    """A bar in a separate output, which is updated in place."""

    def __init__(self, iterable=None, **options):
        self._output = None
        super().__init__(iterable, **{**options, "file": io.StringIO()})

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the bar as it is now; an empty `msg` takes it away."""
        from IPython.display import display

        facts = self.format_dict | {"bar_format": "{l_bar}{r_bar}"}
        text = self.format_meter(**facts).replace("||", "|") if msg is None else msg
        share = f' value="{self.n}" max="{self.total}"' if self.total else ""
        drawn = f"<div><progress{share}></progress> {escape(text)}</div>"
        data: dict = {"text/html": drawn if text else "", "text/plain": text, MIME: {}}
        if self._output is None:
            self._output = display(data, raw=True, display_id=True)
        else:
            self._output.update(data, raw=True)
