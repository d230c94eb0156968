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

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import CodeType
from typing import Any

import torch

RESULT = "the result"  # where a run of the lines leaves it: no name that a function can have


@dataclass(frozen=True, eq=False)
class Edit:
    """A sketch with some of its text replaced; it can be called like the function it becomes."""

    sketch: "Sketch"
    decision: str  # "the average over rows", as one would list it
    spans: tuple[tuple[int, int, str], ...]  # (start, end, what stands there instead)
    touched: frozenset[int]  # statements

    @cached_property
    def function(self) -> Callable:
        return self.sketch.compiled((self,))

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    @property
    def text(self) -> str:
        return self.sketch._text(0, len(self.sketch.source), (self,))

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


COMPILING = 4  # statements that could be run while a new one is compiled


@dataclass
class Steps:
    """How many statements may still be run. One that was not seen before costs more, as it has to
    be compiled; it does so each time, or an answer would be told more where it is not the first.
    """

    left: int
    _seen: set[tuple[int, frozenset[Edit]]] = field(default_factory=set)

    def take(self, k: int, made: Sequence[Edit]) -> bool:
        """Whether statement `k` may be run with these edits made."""
        code = k, frozenset(edit for edit in made if k in edit.touched)
        self.left -= 1 if code in self._seen else COMPILING
        self._seen.add(code)
        return self.left >= 0


class Sketch:
    """A right answer, as text that edits change. `helpers` are functions that only edits call.

    It ends in its only `return`; where all edits stand alone it may have others before it.
    """

    def __init__(self, fn: Callable, *helpers: Callable):
        self.fn = fn
        self.helpers = {helper.__name__: helper for helper in helpers}
        self.source = textwrap.dedent(inspect.getsource(fn))
        (tree,) = ast.parse(self.source).body
        if not (isinstance(tree, ast.FunctionDef) and isinstance(tree.body[-1], ast.Return)):
            raise ValueError(f"{fn.__name__} is not a function that ends in `return`")
        lines = [0]
        for line in self.source.splitlines(keepends=True):
            lines.append(lines[-1] + len(line))
        # Where each statement begins: the first one is the signature.
        begins = [0, *(lines[node.lineno - 1] for node in tree.body), lines[-1]]
        self.statements = list(pairwise(begins))
        self._codes: dict[tuple[int, frozenset[Edit]], CodeType] = {}

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
            if self.statement_at(start) != self.statement_at(start + len(old) - 1):
                raise ValueError(f"{old!r} reaches over several statements")
        touched = frozenset(self.statement_at(start) for start, _, _ in spans)
        return Edit(self, decision, tuple(spans), touched)

    def alone(self, *texts: str) -> Callable:
        """The same as a plain function, which is put together with no other mistake.

        For sketches that draw, change what they are given or return early: their lines cannot be
        run once for all that have them in common.
        """
        edit = self.edit("", *texts)
        edit.function.text = edit.text  # type: ignore[attr-defined]  # Python keeps no source of it
        return edit.function

    def compiled(self, edits: Sequence[Edit]) -> Callable:
        """The function with all these edits made."""
        namespace = {**self.fn.__globals__, **self.helpers}
        text = self._text(0, len(self.source), edits)
        exec(compile(text, f"<{self.fn.__name__}, edited>", "exec"), namespace)
        return namespace[self.fn.__name__]

    def run(
        self, arguments: dict[str, Any], options: Sequence[Edit], size: int, steps: "Steps"
    ) -> list[tuple[tuple[Edit, ...], Any]]:
        """(edits, result) of every way to make `size` of the edits at once, while `steps` last.

        What two ways have in common is computed once: statement by statement, the state is handed
        on to all that can come next. A way that raises ends there.
        """
        where: list[list[Edit]] = [[] for _ in self.statements]
        for edit in options:
            where[min(edit.touched)].append(edit)
        excluded = {
            edit: frozenset(other for other in options if not edit.goes_with(other))
            for edit in options
        }
        later = [sum(map(len, where[k + 1 :])) for k in range(len(where))]
        found: list[tuple[tuple[Edit, ...], Any]] = []

        def walk(k: int, state: dict, made: tuple[Edit, ...]) -> None:
            if k == len(self.statements):
                found.append((made, state[RESULT]))
                return
            for more in _subsets(where[k], size - len(made), made, excluded):
                chosen = (*made, *more)
                if size - len(chosen) <= later[k] and steps.take(k, chosen):
                    after = self.step(k, state, arguments, chosen)
                    if after is not None:
                        walk(k + 1, after, chosen)

        with torch.no_grad():
            walk(0, {**self.fn.__globals__, **self.helpers}, ())
        return found

    def step(self, k: int, state: dict, arguments: dict, made: tuple[Edit, ...]) -> dict | None:
        """The state after statement k; None where it raises."""
        here = frozenset(edit for edit in made if k in edit.touched)
        if (k, here) not in self._codes:
            self._codes[k, here] = self._code(k, here)
        after = dict(state)
        try:
            exec(self._codes[k, here], after)
            if k == 0:
                after |= after[self.fn.__name__](**arguments)
        except Exception:
            return None
        return after

    def _code(self, k: int, edits: frozenset[Edit]) -> CodeType:
        name = f"<{self.fn.__name__}, line by line>"
        text = textwrap.dedent(self._text(*self.statements[k], edits))
        if k == 0:
            text += "    return locals()\n"
        elif k == len(self.statements) - 1:
            return compile(_assigned(ast.parse(text)), name, "exec")
        return compile(text, name, "exec")  # twice as fast as by way of a tree

    def statement_at(self, place: int) -> int:
        return next(k for k, (begin, end) in enumerate(self.statements) if begin <= place < end)

    def _text(self, begin: int, end: int, edits) -> str:
        parts, at = [], begin
        for start, stop, new in sorted(span for edit in edits for span in edit.spans):
            if begin <= start < end:
                parts += [self.source[at:start], new]
                at = stop
        return "".join([*parts, self.source[at:end]])


def _assigned(tree: ast.Module) -> ast.Module:
    """The statements, of which the last leaves its value instead of returning it."""
    last = tree.body[-1]
    if isinstance(last, ast.Return) and last.value:
        assignment = ast.Assign([ast.Name(RESULT, ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(assignment, last))
    return tree


def _subsets(
    options: list[Edit],
    most: int,
    made: tuple[Edit, ...],
    excluded: dict[Edit, frozenset[Edit]],
) -> Iterator[tuple[Edit, ...]]:
    """Ways to choose up to `most` that go with one another and with what is made already."""
    yield ()
    if most:
        for i, edit in enumerate(options):
            if excluded[edit].isdisjoint(made):
                for more in _subsets(options[i + 1 :], most - 1, (*made, edit), excluded):
                    yield edit, *more
