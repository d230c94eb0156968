"""What a lesson calls.

The functions that students use in a notebook::

    check(reinforce_loss)     compare with the reference and show the result
    hint(reinforce_loss)      a nudge, the idea, nearly the code
    progress()                what passes, over all lessons, and what is next
    ready(reinforce_loss)     True when it is written; for demo cells
    borrow(reinforce_loss)    the course's version in its place for now, without points
"""

from rlcourse.on_first_use import on_first_use

_HOMES = {
    "borrow": ".borrowing",
    "check": ".checking",
    "hint": ".hints",
    "ready": ".checking",
    "progress": ".panel",
}
__all__ = sorted(_HOMES)
__getattr__ = on_first_use(__name__, _HOMES)
