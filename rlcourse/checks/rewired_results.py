"""A function that is given the wrong arguments, or whose result is changed afterwards."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.case import Case
from rlcourse.checks.rewired import Given, Rewiring, moved, of_arguments


def rewirings(
    reference: Callable, cases: tuple[Case, ...], results: list[Any]
) -> tuple[Rewiring, ...]:
    """All that the arguments of an exercise's function and its `results` on them allow."""
    given = Given(reference, cases)
    return (*of_arguments(given), *of_results(given, results))


RESULTS: tuple[tuple[str, Callable[[Tensor], Any]], ...] = (
    ("negated", lambda x: -x),
    ("averaged over everything", torch.mean),
    ("averaged over rows", lambda x: _two(x).mean(0)),
    ("averaged over columns", lambda x: _two(x).mean(1)),
    ("summed over everything", torch.sum),
    ("summed over rows", lambda x: _two(x).sum(0)),
    ("summed over columns", lambda x: _two(x).sum(1)),
    ("replaced by its running sum", lambda x: x.cumsum(-1)),
    ("its reciprocal", lambda x: 1 / x),
    ("subtracted from 1", lambda x: 1 - x),
    ("squared", lambda x: x * x),
    ("replaced by its square root", torch.sqrt),
    ("exponentiated", torch.exp),
    ("put through a logarithm", torch.log),
    ("replaced by its absolute value", torch.abs),
    ("replaced by its sign", torch.sign),
    ("doubled", lambda x: 2 * x),
    ("halved", lambda x: x / 2),
    ("100 times as large", lambda x: 100 * x),
    ("at least 0", lambda x: x.clamp(min=0)),
    ("at most 0", lambda x: x.clamp(max=0)),
    ("at most 1", lambda x: x.clamp(max=1)),
    ("between 0 and 1", lambda x: x.clamp(0, 1)),
    ("rounded", torch.round),
    ("rounded down", torch.floor),
    ("reduced by its mean", lambda x: x - x.mean()),
    ("divided by its sum", lambda x: x / x.sum()),
    ("standardized", lambda x: (x - x.mean()) / x.std()),
    ("put through a softmax", lambda x: x.softmax(-1)),
    ("put through a sigmoid", torch.sigmoid),
    ("one place early, with 0 at the end", lambda x: moved(x, -1)),
    ("one place late, with 0 at the beginning", lambda x: moved(x, 1)),
    ("moved one place on, the last one to the front", lambda x: x.roll(1, -1)),
    ("moved one place back, the first one to the end", lambda x: x.roll(-1, -1)),
    ("in reverse order", lambda x: x.flip(-1)),
    ("transposed", lambda x: _two(x).T),
    ("flattened", lambda x: _two(x).flatten()),
    ("given one more dimension, of size 1", lambda x: x.unsqueeze(-1)),
    ("given one more dimension, in front", lambda x: x.unsqueeze(0)),
    ("without its last column", lambda x: x[..., :-1]),
    ("without its first column", lambda x: x[..., 1:]),
    ("detached", torch.detach),
    ("converted to an integer", lambda x: x.long()),
    ("a Python number", lambda x: x.item()),
    ("a list", lambda x: x.tolist()),
)
PLAIN: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("turned around", lambda x: not _is(x, bool)),
    ("negated", lambda x: -_is(x, float, int)),
    ("subtracted from 1", lambda x: 1 - _is(x, float)),
    ("its reciprocal", lambda x: 1 / _is(x, float)),
    ("squared", lambda x: _is(x, float) ** 2),
    ("replaced by its square root", lambda x: math.sqrt(_is(x, float))),
    ("100 times as large", lambda x: 100 * _is(x, float)),
    ("one larger", lambda x: _is(x, int) + 1),
    ("one smaller", lambda x: _is(x, int) - 1),
    ("rounded to a whole number", lambda x: float(round(_is(x, float)))),
    ("rounded down", lambda x: float(math.floor(_is(x, float)))),
    ("rounded to two decimals", lambda x: round(_is(x, float), 2)),
    ("rounded to four decimals", lambda x: round(_is(x, float), 4)),
    ("a tensor", lambda x: torch.tensor(_is(x, float, int, bool))),
    ("a text", lambda x: str(_is(x, float, int))),
    ("a number", lambda x: float(_is(x, str, int, bool))),
    ("0 where it should be None", lambda x: "0" if x is None else x),
    ("an empty string where it should be None", lambda x: "" if x is None else x),
    ("without its sign", lambda x: _is(x, str).lstrip("-")),
    ("without leading zeros", lambda x: _is(x, str).lstrip("0")),
    ("cut at the decimal point", lambda x: _is(x, str).partition(".")[0]),
    ("in reverse order", lambda x: _is(x, list)[::-1]),
    ("sorted", lambda x: sorted(_is(x, list))),
)


def _two(x: Tensor) -> Tensor:
    """The tensor itself, if it has rows and columns."""
    if x.dim() < 2:
        raise ValueError("it has no rows")
    return x


def _is(x: Any, *types: type) -> Any:
    """The value itself, if it has one of these types."""
    if type(x) not in types:
        raise TypeError("it is of another type")
    return x


def of_results(given: Given, results: list[Any]) -> Iterator[Rewiring]:
    numbers = given.of(int, float)
    for place, which in ((None, "the result"), (0, "the first result"), (1, "the second result")):
        parts = [_part(result, place) for result in results]
        tensors = any(isinstance(part, Tensor) for part in parts)
        plain = any(isinstance(part, bool | int | float | str | list) for part in parts)
        for words, change in (*(RESULTS if tensors else ()), *(PLAIN if plain else ())):
            yield _changed(f"{which} is {words}", change, place)
        for name in numbers if tensors or any(isinstance(part, float) for part in parts) else ():
            for word, change in (("multiplied", torch.mul), ("divided", torch.div)):
                yield _scaled(
                    given, f"{which} is {word} by `{name}` once more", name, change, place
                )
    if any(isinstance(result, tuple) and len(result) == 2 for result in results):
        yield Rewiring("the results are exchanged", _second_first)


def _part(result: Any, place: int | None) -> Any:
    if place is None:
        return None if isinstance(result, tuple) else result
    return result[place] if isinstance(result, tuple) and place < len(result) else None


def _changed(words: str, change: Callable, place: int | None) -> Rewiring:
    def of(fn: Callable) -> Callable:
        return lambda **arguments: _at(fn(**arguments), place, change)

    return Rewiring(words, of)


def _scaled(given: Given, words: str, name: str, change: Callable, place) -> Rewiring:
    def of(fn: Callable) -> Callable:
        def scaled(**arguments):
            number = given.complete(arguments)[name]
            scaling = lambda x: change(torch.as_tensor(x), number)  # noqa: E731
            return _at(fn(**arguments), place, scaling)

        return scaled

    return Rewiring(words, of)


def _at(value: Any, place: int | None, change: Callable) -> Any:
    """The value, changed in one place."""
    if place is None:
        if isinstance(value, tuple):
            raise TypeError("there are several results")
        plain = not isinstance(value, Tensor)
        return _done(value, change, plain)
    if not isinstance(value, tuple):
        raise TypeError("there is one result")
    return tuple(
        _done(v, change, not isinstance(v, Tensor)) if i == place else v
        for i, v in enumerate(value)
    )


def _done(value: Any, change: Callable, plain: bool) -> Any:
    changed = change(value)
    if plain and isinstance(changed, Tensor) and isinstance(value, float) and changed.dim() == 0:
        return changed.item() if change not in KEPT else changed
    return changed


KEPT = frozenset(change for words, change in PLAIN if words == "a tensor")


def _second_first(fn: Callable) -> Callable:
    def exchanged(**arguments):
        first, second = fn(**arguments)
        return second, first

    return exchanged
