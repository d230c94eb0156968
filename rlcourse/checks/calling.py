"""The student's side of a check: call a function on a case and report what came out, as data.

Nothing here knows a right answer. A case goes in, an outcome comes out, and both are tensors,
numbers, strings and containers of them, so that a pipe can stand between this module and the judge.
"""

import dis
import io
import linecache
import re
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.specs import Spec, build, observe

TORCH_GENERATOR = "torch's own generator"  # among what a call has changed
PRINTED_LIMIT = 2000  # characters kept of what one call prints


@dataclass(frozen=True)
class Case:
    """One call: keyword arguments, and a few words on what is special about them.

    The gradient is recorded for the arguments named in ``differentiable``, and for those in
    ``constants``, which should get none. ``atol`` replaces the tolerance where results are
    statistical. With ``raises`` the type of the exception is compared, and nothing else. A case
    at the ``edge`` asks for care, not for the idea: an empty row, another dtype, an error.
    """

    label: str
    arguments: dict[str, Any]
    differentiable: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    atol: float | None = None
    raises: bool = False
    edge: bool = False

    @property
    def track(self) -> tuple[str, ...]:
        return (*self.differentiable, *self.constants)


@dataclass(frozen=True)
class Failure:
    """An exception, without its traceback: the line is the deepest one that the student wrote."""

    type: str
    message: str
    line_number: int | None = None
    line: str = ""
    function: str = ""


@dataclass(frozen=True)
class Opaque:
    """A returned thing that is not data, by the name of its type."""

    type: str


@dataclass(frozen=True)
class Outcome:
    """What a call did: its value, the gradients, and everything it did besides."""

    value: Any = None
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    changed: tuple[str, ...] = ()  # arguments whose content is not what it was, or the generator
    after: dict[str, Any] = field(default_factory=dict)  # "policy.logits": parameters afterwards
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    printed: str = ""
    repeatable: bool = True


@dataclass(frozen=True)
class Facts:
    """What can be read off the function without calling it."""

    name: str
    parameters: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()  # parameters that the body never reads
    uses: tuple[str, ...] = ()  # global names that it reads


def call_all(fn: Callable, cases: tuple[Case, ...], repeat: bool = True) -> list[Outcome]:
    """An outcome for every case; the caller's random state is as it was."""
    with torch.random.fork_rng(devices=[]), one_thread():
        return [call(fn, case, repeat) for case in cases]


@contextmanager
def one_thread():
    """Cases are tiny: on a busy machine threads that wait for each other cost seconds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def call(fn: Callable, case: Case, repeat: bool = False) -> Outcome:
    """Call `fn` on `case`. With `repeat`, call it twice and note whether the two agree."""
    outcome = _call(fn, case)
    if repeat and outcome.error is None:
        again = _call(fn, case)
        outcome = replace(outcome, repeatable=identical(outcome.value, again.value))
    return outcome


def _call(fn: Callable, case: Case) -> Outcome:
    leaves, arguments = _build(case)
    random_state = torch.default_generator.get_state()
    with _quiet() as said:
        try:
            with torch.enable_grad():
                value = fn(**arguments)
                gradients = _gradients(value, leaves)
            value = as_data(value)
        except (Exception, SystemExit) as error:
            return Outcome(error=_failure(error), **said())
    return Outcome(
        value=value,
        gradients=gradients,
        changed=tuple(
            name
            for name, given in case.arguments.items()
            if not isinstance(given, Spec) and not identical(given, as_data(arguments[name]))
        )
        + _generator_used(random_state),
        after={
            f"{name}.{key}": recorded
            for name, spec in case.arguments.items()
            if isinstance(spec, Spec)
            for key, recorded in observe(spec, arguments[name]).items()
        },
        **said(),
    )


def _generator_used(before: Tensor) -> tuple[str, ...]:
    return () if torch.equal(before, torch.default_generator.get_state()) else (TORCH_GENERATOR,)


def _build(case: Case) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Fresh arguments. Tracked ones are no leaves, as in training, so writing to them works."""
    leaves, arguments = {}, {}
    for name, given in case.arguments.items():
        if isinstance(given, Spec):
            arguments[name] = build(given, arguments)
        elif name in case.track:
            leaves[name] = given.detach().clone().requires_grad_()
            arguments[name] = leaves[name].clone()
        else:
            arguments[name] = _copy(given)
    return leaves, arguments


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(_copy(item) for item in value)
    return value


def _gradients(value: Any, leaves: dict[str, Tensor]) -> dict[str, Tensor | None]:
    """Gradients of a weighted sum of all results; a scalar that is alone has weight 1."""
    if not leaves:
        return {}
    tensors = [t for t in _tensors(value) if t.requires_grad]
    if not tensors:
        return dict.fromkeys(leaves)
    total = sum((t * _weights(t, start)).sum() for start, t in enumerate(tensors))
    grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, grads, strict=True))


def _weights(like: Tensor, start: int) -> Tensor:
    return torch.cos(torch.arange(like.numel(), dtype=like.dtype) + start).reshape(like.shape)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def as_data(value: Any) -> Any:
    """`value` without graph or foreign types; what is not data becomes ``Opaque``."""
    if isinstance(value, Tensor):
        if value.is_complex() or value.layout != torch.strided:
            return Opaque(f"{value.layout} tensor of {value.dtype}")
        return value.detach().clone()
    if value is None or isinstance(value, bool):
        return value
    for plain in (int, float, str):  # and what derives from them, such as numpy's float64
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, tuple):
        return tuple(as_data(item) for item in value)
    if isinstance(value, list):
        return [as_data(item) for item in value]
    if isinstance(value, dict):
        return {str(key): as_data(item) for key, item in value.items()}
    return Opaque(type(value).__name__)


def identical(a: Any, b: Any) -> bool:
    """Equal to the last bit, where NaN equals NaN."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return bool(((a == b) | ((a != a) & (b != b))).all())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    return type(a) is type(b) and (a == b or a != a)


class FirstWords(io.StringIO):
    """Keeps what is printed first; a loop that prints must not fill the memory."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, PRINTED_LIMIT - self.tell())])
        return len(text)


@contextmanager
def _quiet():
    """Nothing reaches the notebook; nbgrader gives 0 for anything on stderr."""
    stream = FirstWords()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with redirect_stdout(stream), redirect_stderr(stream):
            yield lambda: {
                "warnings": tuple(str(w.message)[:PRINTED_LIMIT] for w in caught),
                "printed": stream.getvalue(),
            }


_LIBRARIES = tuple(
    str(Path(path).resolve())
    for path in {*sysconfig.get_paths().values(), Path(__file__).parents[1]}
    if path
)


def _failure(error: BaseException) -> Failure:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not str(Path(frame.filename).resolve()).startswith(_LIBRARIES)
    ]
    place = {}
    if frames:
        last = frames[-1]
        line = last.line or linecache.getline(last.filename, last.lineno or 0).strip()
        place = {"line_number": last.lineno, "line": line[:PRINTED_LIMIT], "function": last.name}
    message = re.sub(r"\s+", " ", str(error)).strip()[:PRINTED_LIMIT]
    return Failure(type(error).__name__, message, **place)


def describe(fn: Callable) -> Facts:
    """The function's name and parameters, and which names its body reads."""
    code = getattr(fn, "__code__", None)
    name = getattr(fn, "__name__", type(fn).__name__)
    if code is None:
        return Facts(name)
    count = code.co_argcount + code.co_kwonlyargcount
    parameters = code.co_varnames[:count]
    local, uses = set(), set()
    for part in _codes(code):
        uses.update(part.co_names)
        for instruction in dis.get_instructions(part):
            if "LOAD" in instruction.opname:
                argval = instruction.argval
                local.update(argval if isinstance(argval, tuple) else (argval,))
    unused = tuple(p for p in parameters if p not in local)
    return Facts(name, parameters, unused, tuple(sorted(uses)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
