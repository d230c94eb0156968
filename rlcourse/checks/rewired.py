"""A function that is given the wrong arguments.

Made for any function from the arguments of an exercise's cases, with words that complete "The same
numbers come out if …". Changes of the result are in ``rewired_results``.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.case import Case

Arguments = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Rewiring:
    """One change to a function's arguments or result."""

    words: str
    of: Callable[[Callable], Callable]
    is_likely: bool = False  # enough to come together with another mistake


class Given:
    """The parameters of a function, by what the cases put into them."""

    def __init__(self, reference: Callable, cases: tuple[Case, ...]):
        parameters = inspect.signature(reference).parameters
        self.defaults = {
            name: p.default for name, p in parameters.items() if p.default is not p.empty
        }
        self.values: dict[str, list] = {}
        for name in parameters:
            found = [case.arguments[name] for case in cases if name in case.arguments]
            if name in self.defaults:
                found.append(self.defaults[name])
            self.values[name] = found

    def of(self, *types: type) -> list[str]:
        """The parameters that hold these and nothing else, None aside."""
        return [name for name, found in self.values.items() if _all_are(found, types)]

    @property
    def floats(self) -> list[str]:
        """The parameters that hold tensors of real numbers."""
        return [
            name
            for name in self.of(Tensor)
            if name != "mask" and any(v.is_floating_point() for v in self.values[name])
        ]

    def dims(self, name: str) -> set[int]:
        return {v.dim() for v in self.values[name] if isinstance(v, Tensor)}

    def complete(self, arguments: Arguments) -> Arguments:
        return {**self.defaults, **arguments}


def _all_are(found: list, types: tuple[type, ...]) -> bool:
    present = [value for value in found if value is not None]
    return bool(present) and all(
        isinstance(v, types) and (bool in types or not isinstance(v, bool)) for v in present
    )


def are(name: str) -> str:
    """ "`mask` is", "`rewards` are"."""
    plural = name.endswith("s") and not name.endswith(("ss", "eps", "tokens", "is"))
    return f"`{name}` {'are' if plural else 'is'}"


# Arguments

LIKELY = ("ignored", "0", "1", "squared", "subtracted from 1", "read one place late")
SMALL = 0.01  # a smaller default is one that keeps a division finite

NUMBERS: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("0", lambda x: type(x)(0)),
    ("1", lambda x: type(x)(1)),
    ("squared", lambda x: x * x),
    ("subtracted from 1", lambda x: 1 - x),
    ("its reciprocal", lambda x: 1 / x),
    ("its square root", math.sqrt),
    ("doubled", lambda x: 2 * x),
    ("halved", lambda x: x / 2),
    ("one larger", lambda x: x + 1),
    ("one smaller", lambda x: x - 1),
    ("negated", lambda x: -x),
)
TENSORS: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("negated", torch.neg),
    ("ignored, all 0", torch.zeros_like),
    ("ignored, all 1", torch.ones_like),
    ("replaced by the absolute value", torch.abs),
    ("replaced by the sign", torch.sign),
    ("exponentiated", torch.exp),
    ("put through a logarithm", torch.log),
    ("squared", torch.square),
    ("replaced by the square root", torch.sqrt),
    ("subtracted from 1", lambda x: 1 - x),
    ("centered on the mean of all", lambda x: x - x.mean()),
    ("divided by the mean of all", lambda x: x / x.mean()),
    ("divided by the sum of all", lambda x: x / x.sum()),
    ("divided by the largest", lambda x: x / x.max()),
    ("rescaled to the range from 0 to 1", lambda x: (x - x.min()) / (x.max() - x.min())),
    ("standardized over all", lambda x: (x - x.mean()) / x.std()),
    ("replaced by the mean of all", lambda x: x.mean().expand_as(x)),
    ("put through a softmax", lambda x: x.softmax(-1)),
    ("put through a log-softmax", lambda x: x.log_softmax(-1)),
    ("replaced by the last value everywhere", lambda x: x[..., -1:].expand_as(x)),
    ("replaced by the first value everywhere", lambda x: x[..., :1].expand_as(x)),
    ("read in reverse order", lambda x: x.flip(-1)),
    ("read one place early", lambda x: x.roll(-1, -1)),
    ("read one place late", lambda x: x.roll(1, -1)),
    ("one place early, with 0 at the end", lambda x: moved(x, -1)),
    ("one place late, with 0 at the beginning", lambda x: moved(x, 1)),
    ("replaced by the running sum", lambda x: x.cumsum(-1)),
    ("at least 0", lambda x: x.clamp(min=0)),
    ("between −1 and 1", lambda x: x.clamp(-1, 1)),
    ("between 0 and 1", lambda x: x.clamp(0, 1)),
    ("rounded", torch.round),
    ("transposed", lambda x: _if_square(x).T),
    ("doubled", lambda x: 2 * x),
    ("halved", lambda x: x / 2),
    ("detached", torch.detach),
)
MASKS: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("ignored", torch.ones_like),
    ("inverted, so that padding counts and tokens do not", lambda m: (~m.bool()).to(m.dtype)),
    ("read one place early", lambda m: moved(m, -1)),
    ("read one place late", lambda m: moved(m, 1)),
    ("without the first token", lambda m: _without(m, 0)),
    ("without the last column", lambda m: _without(m, -1)),
    ("without each row's last token", lambda m: m * moved(m, -1)),
    ("only each row's last token", lambda m: m.to(m.dtype) * (1 - moved(m, -1).int()).to(m.dtype)),
    ("only the first token", lambda m: m * (torch.arange(m.shape[-1]) == 0)),
)
TEXTS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("stripped first", str.strip),
    ("lowercased first", str.lower),
    ("stripped of all spaces first", lambda s: s.replace(" ", "")),
    ("stripped of all white space first", lambda s: "".join(s.split())),
    ("stripped of all commas first", lambda s: s.replace(",", "")),
    ("stripped of all dollar signs first", lambda s: s.replace("$", "")),
    ("stripped of line breaks first", lambda s: s.replace("\n", " ")),
    ("cut to its first line", lambda s: (s.splitlines() or [""])[0]),
    ("cut to its last line", lambda s: (s.splitlines() or [""])[-1]),
    ("cut to its last nonempty line", lambda s: (s.strip().splitlines() or [""])[-1]),
)
LISTS: tuple[tuple[str, Callable[[list], list]], ...] = (
    ("read in reverse order", lambda x: x[::-1]),
    ("sorted first", sorted),
    ("without duplicates", lambda x: list(dict.fromkeys(x))),
    ("without its first item", lambda x: x[1:]),
    ("without its last item", lambda x: x[:-1]),
    ("without its None items", lambda x: [v for v in x if v is not None]),
    (
        "changed so that None becomes the text 'None'",
        lambda x: ["None" if v is None else v for v in x],
    ),
    ("stripped, every item", lambda x: [v if v is None else v.strip() for v in x]),
    ("lowercased, every item", lambda x: [v if v is None else v.lower() for v in x]),
    ("converted to numbers, every item", lambda x: [v if v is None else float(v) for v in x]),
)


def moved(x: Tensor, by: int) -> Tensor:
    """Moved along the last dimension, with zeros filled in."""
    moved = x.roll(by, -1).clone()
    moved[..., 0 if by > 0 else -1] = 0
    return moved


def _without(mask: Tensor, column: int) -> Tensor:
    mask = mask.clone()
    mask[:, column] = 0
    return mask


def _if_square(x: Tensor) -> Tensor:
    if x.dim() != 2 or x.shape[0] != x.shape[1]:
        raise ValueError("it has no transpose of its shape")
    return x


def of_arguments(given: Given) -> Iterator[Rewiring]:
    yield from _exchanged(given)
    numbers = given.of(int, float)
    for name in numbers:
        default = given.defaults.get(name)
        if isinstance(default, int | float):
            yield _set(
                given,
                f"{are(name)} {default:g} whatever the caller passes",
                name,
                lambda _, d=default: d,
            )
    kinds = ((given.floats, TENSORS), (given.of(str), TEXTS), (given.of(list, tuple), LISTS))
    masks = [name for name in given.of(Tensor) if name == "mask"]
    for names, changes in ((masks, MASKS), *kinds, (numbers, NUMBERS)):
        for name in names:
            for words, change in changes:
                likely = words in LIKELY and changes in (NUMBERS, MASKS)
                yield replace(_set(given, f"{are(name)} {words}", name, change), is_likely=likely)
    for name in given.floats:
        for number in numbers:
            yield from _times(given, name, number)
    for name in numbers:
        if 0 < (given.defaults.get(name) or 0) < SMALL:
            for small in (1e-3, 1e-4, 1e-5, 1e-6, 1e-8):
                yield _set(given, f"{are(name)} {small:g}", name, _always(small))
    yield from _laid_out(given)
    if "group_size" in given.values:
        yield from _grouped(given)


def _always(value: Any) -> Callable:
    return lambda _: value


def _times(given: Given, name: str, number: str) -> Iterator[Rewiring]:
    for word, change in (("multiplied", torch.mul), ("divided", torch.div)):
        words = f"{are(name)} {word} by `{number}`"
        yield _with(given, words, partial(_combined, change, name, number))


def _combined(change: Callable, name: str, number: str, k: Arguments) -> Arguments:
    return {**k, name: change(k[name], k[number])}


def _set(given: Given, words: str, name: str, change: Callable) -> Rewiring:
    def changed(k: Arguments) -> Arguments:
        return {**k, name: change(k[name])}

    return _with(given, words, changed)


def _with(given: Given, words: str, change: Callable[[Arguments], Arguments]) -> Rewiring:
    def of(fn: Callable) -> Callable:
        return lambda **arguments: fn(**change(given.complete(arguments)))

    return Rewiring(words, of)


def _exchanged(given: Given) -> Iterator[Rewiring]:
    """One argument where another belongs, or two exchanged."""
    for alike in (given.floats, given.of(int, float), given.of(str), given.of(list)):
        for a, b in permutations(alike, 2):
            if a < b:
                both = f"`{a}` and `{b}` are exchanged"
                yield _with(given, both, partial(_taken, {a: b, b: a}))
            yield _with(given, f"`{a}` is used where `{b}` belongs", partial(_taken, {b: a}))


def _taken(sources: dict[str, str], k: Arguments) -> Arguments:
    return {**k, **{name: k[source] for name, source in sources.items()}}


def _laid_out(given: Given) -> Iterator[Rewiring]:
    """Rows against columns: (N,) that meets (N, T), or (n,) that meets (n, 1)."""
    grids = [name for name in given.of(Tensor) if 2 in given.dims(name)]
    for name in given.floats:
        if grids and 1 in given.dims(name):

            def along_tokens(k: Arguments, name=name) -> Arguments:
                grid = next(k[g] for g in grids if k[g].dim() == 2)
                one = k[name].dim() == 1 and grid.shape[0] == grid.shape[1]
                return {**k, name: k[name].expand(grid.shape)} if one else k

            yield _with(
                given, f"{are(name)} spread along the tokens where N equals T", along_tokens
            )
    vectors = [name for name in given.floats if given.dims(name) == {1}]
    if len(vectors) == 2 and not grids:
        a, b = vectors

        def every_pair(k: Arguments) -> Arguments:
            n, m = len(k[a]), len(k[b])
            return {**k, a: k[a].repeat_interleave(m), b: k[b].repeat(n)}

        yield _with(
            given, f"every value of `{a}` is combined with every value of `{b}`", every_pair
        )


def _grouped(given: Given) -> Iterator[Rewiring]:
    """Wrong groups."""
    vectors = [n for n in given.of(Tensor) if given.dims(n) == {1}] + given.of(list)
    if not vectors:
        return
    count = vectors[0]
    yield _with(
        given,
        "the whole batch is one group",
        lambda k: {**k, "group_size": len(k[count])},
    )
    yield _with(
        given,
        "`group_size` is used as the number of groups",
        lambda k: {**k, "group_size": len(k[count]) // k["group_size"]},
    )
    for words, across in (("interleaved", False), ("made across the questions", True)):
        regrouped = partial(_regrouped, given, vectors, across)
        yield Rewiring(f"groups are {words}", regrouped)


def _regrouped(given: Given, vectors: list[str], across: bool, fn: Callable) -> Callable:
    def regrouped(**arguments):
        k = given.complete(arguments)
        size, total = k["group_size"], len(k[vectors[0]])
        stride = size if across else total // size
        order = [b + j * stride for b in range(stride) for j in range(total // stride)]
        for name in vectors:
            v = k[name]
            k[name] = v[torch.tensor(order)] if isinstance(v, Tensor) else [v[i] for i in order]
        k["group_size"] = total // stride
        out = fn(**k)
        if isinstance(out, Tensor) and out.dim() == 1 and len(out) == total:
            return out[torch.tensor(order).argsort()]
        return out

    return regrouped
