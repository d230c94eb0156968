"""Progress bars: tqdm's, and in a notebook an output that survives saving.

A widget is alive only while its kernel is; a notebook that is opened again shows an error in its
place. So in a notebook the bar is drawn as HTML, with anything else there is to see below it.
"""

import io
import os
import sys
from html import escape

from tqdm.std import tqdm
from tqdm.utils import disp_len

MIME = "application/vnd.rlcourse.bar+json"  # marks such an output, so that it can be left out
SHORTEST = 8  # characters of a bar; with less room it is left out
NARROW = 80  # columns, if their number is unknown
COLOR, REST = "#2a9d5c", "rgba(128, 128, 128, .3)"

# What a line says, from the most to the least; the first one that fits is used.
LAYOUTS = (
    "{desc}: {percentage:3.0f}%|{bar}| COUNT [{elapsed}<{remaining}, {rate_fmt}]SAID",
    "{desc}: {percentage:3.0f}%|{bar}| COUNT [{elapsed}<{remaining}]SAID",
    "{desc}: |{bar}| COUNT [{remaining} left]SAID",
    "{desc}: COUNT [{remaining} left]SAID",
    "{desc}: COUNTSAID",
    "{desc}: COUNT",
    "COUNT",
)


def bar(iterable=None, picture=None, **options) -> "Bar":
    """``tqdm(iterable, **options)``, drawn to suit a terminal or a notebook.

    `picture` is what a notebook shows below it: any object with a ``_repr_html_``, which is called
    at every update.
    """
    return NotebookBar(iterable, picture, **options) if in_notebook() else Bar(iterable, **options)


def in_notebook() -> bool:
    """Whether a notebook shows the outputs: Jupyter, VS Code, Colab."""
    if "IPython" not in sys.modules or "ipykernel" not in sys.modules:
        return False
    from ipykernel.zmqshell import ZMQInteractiveShell

    return isinstance(sys.modules["IPython"].get_ipython(), ZMQInteractiveShell)


def watched() -> bool:
    """Whether somebody may be looking at a notebook while it runs; not during grading."""
    return in_notebook() and "NBGRADER_EXECUTION" not in os.environ


class Bar(tqdm):
    """tqdm's bar on a line that is never cut off: parts that do not fit are left out."""

    def __str__(self) -> str:
        facts = self.format_dict
        if not self.total:
            return super().__str__()
        said = facts.pop("postfix") or ""
        said = f" {said}".replace("{", "{{").replace("}", "}}") if said else ""
        room = facts["ncols"] or NARROW
        for layout in LAYOUTS:
            layout = layout.replace("COUNT", "{n_fmt}/{total_fmt}")
            facts["bar_format"] = layout.replace("SAID", said)
            shortest = facts["bar_format"].replace("{bar}", f"{{bar:{SHORTEST}}}")
            least = {**facts, "bar_format": shortest, "ncols": None}
            if disp_len(self.format_meter(**least)) <= room:
                return self.format_meter(**{**facts, "ncols": room})
        return ""


class NotebookBar(Bar):
    """A bar in a separate output, which is updated in place."""

    def __init__(self, iterable=None, picture=None, **options):
        self.picture, self._output, self._said = picture, None, ""
        pace = {"mininterval": 0.5} if picture else {}  # a picture is a few thousand characters
        shape = {"ascii": False, "file": io.StringIO()}
        super().__init__(iterable, **{**pace, **options, **shape})

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the bar as it is now; an empty `msg` takes it away."""
        text = str(self) if msg is None else msg
        self._said = self._line(text) if text else ""
        self._show(text)

    def redraw_picture(self) -> None:
        """Redraw what is below the bar. The bar stays as it is, with the time that it shows."""
        self._show(str(self))

    def _show(self, text: str) -> None:
        from IPython.display import display

        below = self.picture._repr_html_() if self.picture else ""
        drawn = f'<div class="rl-bar">{self._said}{below}</div>' if text else ""
        data = {"text/html": drawn, "text/plain": text, MIME: {}}
        if self._output is None:
            self._output = display(data, raw=True, display_id=True)
        else:
            self._output.update(data, raw=True)

    def _line(self, text: str) -> str:
        """The bar and its text, which wraps if it has to."""
        if not self.total:
            return f"<div>{escape(text)}</div>"
        facts = self.format_dict
        share = f"{100 * self.n / self.total:.0f}%"
        colors = f"linear-gradient(to right, {COLOR} {share}, {REST} {share})"
        words = [f"{self.desc.removesuffix(': ')} {self.n} of {self.total}".lstrip()]
        words.append(self.format_interval(facts["elapsed"]))
        if facts["rate"] and self.n < self.total:
            left = (self.total - self.n) / facts["rate"]
            words.append(f"{self.format_interval(left)} left")
        words += (facts["postfix"] or "").replace("=", " ").split(", ")
        said = escape(" · ".join(filter(None, words)))
        return (
            f'<div style="line-height: 1.5"><span role="img" aria-label="{share}" style="display: '
            "inline-block; width: 10em; height: .6em; border-radius: .3em; margin-right: .6em; "
            f'background: {colors}"></span>{said}</div>'
        )
