"""Mistakes as edits of a right answer, so that several can be made at once.

    def in_full(x, mask):                  # a right answer as a student would write it
        total = (x * mask).sum()
        return total / mask.sum()

    edit = Sketch(in_full).edit

    Mistake("a sum", edit("the average", "total / mask.sum()", "total"), "…")
    Mistake("a sum over padding, too", edit("the padding", "x * mask", "x"), "…")

Every edit belongs to a *decision* that the author of the function makes. Edits of one decision
exclude each other; edits of different decisions can be made together where they do not overlap.
"""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType


@dataclass(frozen=True, eq=False)
class Edit:
    """A sketch with some of its text replaced; it can be called like the function it becomes."""

    sketch: "Sketch"
    decision: str  # "the average over rows", as one would list it
    spans: tuple[tuple[int, int, str], ...]  # (start, end, what stands there instead)

    @cached_property
    def function(self) -> Callable:
        return self.sketch.compiled((self,))

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    @property
    def text(self) -> str:
        return self.sketch.text((self,))

    @property
    def __name__(self) -> str:
        return self.function.__name__

    @property
    def __code__(self) -> CodeType:
        return self.function.__code__

    def goes_with(self, other: "Edit") -> bool:
        """Whether both can be made: another decision of the same sketch, and another place."""
        apart = all(
            end <= start_of_other or end_of_other <= start
            for start, end, _ in self.spans
            for start_of_other, end_of_other, _ in other.spans
        )
        return self.sketch is other.sketch and self.decision != other.decision and apart


class Sketch:
    """A right answer, as text that edits change. `helpers` are functions that only edits call."""

    def __init__(self, fn: Callable, *helpers: Callable):
        self.fn = fn
        self.helpers = {helper.__name__: helper for helper in helpers}
        self.source = textwrap.dedent(inspect.getsource(fn))

    def edit(self, decision: str, *texts: str) -> Edit:
        """The sketch with one text, which stands in it exactly once, replaced by the next.

        `texts` is (old, new), or several such pairs one after the other.
        """
        spans = []
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            if self.source.count(old) != 1:
                times = self.source.count(old)
                raise ValueError(f"{old!r} stands {times} times in {self.fn.__name__}, not once")
            start = self.source.index(old)
            spans.append((start, start + len(old), new))
        return Edit(self, decision, tuple(spans))

    def alone(self, *texts: str) -> Callable:
        """The same as a plain function, which is put together with no other mistake.

        For sketches that draw, or change what they are given.
        """
        edit = self.edit("", *texts)
        edit.function.text = edit.text  # type: ignore[attr-defined]  # Python keeps no source of it
        return edit.function

    def compiled(self, edits: Sequence[Edit]) -> Callable:
        """The function with all these edits made."""
        namespace = {**self.fn.__globals__, **self.helpers}
        exec(compile(self.text(edits), f"<{self.fn.__name__}, edited>", "exec"), namespace)
        return namespace[self.fn.__name__]

    def text(self, edits: Sequence[Edit]) -> str:
        parts, at = [], 0
        for start, stop, new in sorted(span for edit in edits for span in edit.spans):
            parts += [self.source[at:start], new]
            at = stop
        return "".join([*parts, self.source[at:]])
