"""Objects that a notebook shows even if the cell continues after them.

Jupyter shows only the last value of a cell. What a student asks for is shown when it is asked for,
so that ``hint(f); progress()`` shows both, and is not shown again as the cell's value.
"""

import sys


def notebook():
    """The running IPython shell, or None."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def show(thing) -> None:
    """Show in a notebook; elsewhere print."""
    if notebook():
        from IPython.display import display

        display(thing)
    else:
        print(thing)


class Shown:
    """Base of what has a ``_repr_html_`` and is shown once in a cell, by ``at_once``."""

    def at_once(self):
        """Show it now in a notebook, and return it; elsewhere it waits to be printed."""
        if shell := notebook():
            self._ipython_display_()
            self._cell = shell.execution_count
        return self

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if getattr(self, "_cell", None) != notebook().execution_count:
            display({"text/html": self._repr_html_(), "text/plain": repr(self)}, raw=True)

    def _repr_html_(self) -> str:
        raise NotImplementedError
