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
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.specs import Spec, build, observe

TORCH_GENERATOR = "torch's own generator"  # among what a call has changed
PRINTED_LIMIT = 2000  # characters kept of what one call prints
LARGEST_INTEGER = 1 << 63  # that a tensor can hold
# Tensors that are data; every other kind lacks operations that a comparison needs.
DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One call: keyword arguments, and a few words on what is special about them.

    With ``tracked`` the gradient is recorded for every floating tensor, whoever it belongs to; it
    is compared for those in ``differentiable``, and for those in ``constants``, which should get
    none. ``atol`` replaces the tolerance where results are statistical. With ``raises`` the type of
    the exception is compared, and nothing else. A case at the ``edge`` asks for care, not for the
    idea: an empty row, another dtype, an error.
    """

    label: str
    arguments: dict[str, Any]
    differentiable: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    atol: float | None = None
    raises: bool = False
    tracked: bool = False
    edge: bool = False

    @property
    def compared(self) -> tuple[str, ...]:
        """Arguments whose gradients are judged."""
        return (*self.differentiable, *self.constants)

    @cached_property
    def scale(self) -> tuple[bool, float]:
        """Whether an argument holds float32, and the largest number of all."""
        tensors = [
            t for name, t in self.arguments.items() if name != "mask" and isinstance(t, Tensor)
        ]
        single = any(t.dtype == torch.float32 for t in tensors if t.numel())
        return single, largest_number(tensors)

    def question(self) -> "Case":
        """The case without what it is there for: all that the side which answers may know."""
        return Case("", self.arguments, tracked=self.tracked)


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
    repeatable: bool | None = True  # None: called once only
    # Arguments that the call fails for where they carry a gradient, and only there: `.numpy()`, say
    refused: dict[str, Failure] = field(default_factory=dict)

    def in_training(self, case: Case) -> "Outcome":
        """What happens where `differentiable` arguments carry a gradient, and constants none."""
        errors = [e for name, e in self.refused.items() if name in case.differentiable]
        return replace(self, error=errors[0]) if errors and not self.error else self


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
    names = _floats(case) if case.tracked else ()
    outcome = _attempt(fn, case, names)
    if names and outcome.error and outcome.error.type == "RuntimeError":
        return _without_refused(fn, case, names) or outcome
    return outcome


def _without_refused(fn: Callable, case: Case, names: tuple[str, ...]) -> Outcome | None:
    """The outcome where only those arguments are tracked that can be; None if it fails as well.

    All arguments are tracked alike, so that nobody can tell which are constants. What is good code
    for a constant must not fail for that: `.numpy()`, `copy.deepcopy`.
    """
    alone = {name: _attempt(fn, case, (name,)).error for name in names}
    refused = {name: error for name, error in alone.items() if error}
    outcome = _attempt(fn, case, tuple(name for name in names if name not in refused))
    if outcome.error or not refused:
        return None
    gradients = {**outcome.gradients, **dict.fromkeys(refused)}
    return replace(outcome, gradients=gradients, refused=refused)


def _floats(case: Case) -> tuple[str, ...]:
    given = case.arguments.items()
    return tuple(n for n, a in given if isinstance(a, Tensor) and a.is_floating_point())


def _attempt(fn: Callable, case: Case, tracked: tuple[str, ...]) -> Outcome:
    leaves, arguments = _build(case, tracked)
    random_state = torch.default_generator.get_state()
    with _quiet() as said:
        try:
            with torch.enable_grad():
                value = fn(**arguments)
                gradients = _gradients(value, leaves)
            done = Outcome(
                value=as_data(value),
                gradients=gradients,
                changed=_changed(case, arguments) + _generator_used(random_state),
                after=_after(case, arguments),
            )
        except (Exception, SystemExit, GeneratorExit) as error:
            done = Outcome(error=_failure(error))
    return replace(done, **said())


def _changed(case: Case, arguments: dict[str, Any]) -> tuple[str, ...]:
    """Arguments whose content is not what it was."""
    plain = {n: given for n, given in case.arguments.items() if not isinstance(given, Spec)}
    return tuple(n for n, given in plain.items() if not identical(given, as_data(arguments[n])))


def _after(case: Case, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the call has left in objects, such as a policy's parameters."""
    return {
        f"{name}.{key}": recorded
        for name, spec in case.arguments.items()
        if isinstance(spec, Spec)
        for key, recorded in observe(spec, arguments[name]).items()
    }


def _generator_used(before: Tensor) -> tuple[str, ...]:
    return () if torch.equal(before, torch.default_generator.get_state()) else (TORCH_GENERATOR,)


def _build(case: Case, tracked: tuple[str, ...]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Fresh arguments. Tracked ones are no leaves, as in training, so writing to them works."""
    leaves: dict[str, Tensor] = {}
    arguments: dict[str, Any] = {}
    for name, given in case.arguments.items():
        if isinstance(given, Spec):
            arguments[name] = build(given, arguments)
        elif name in tracked:
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
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return value


def _gradients(value: Any, leaves: dict[str, Tensor]) -> dict[str, Tensor | None]:
    """Gradients of a weighted sum of all results; a scalar that is alone has weight 1."""
    if not leaves:
        return {}
    tensors = [t for t in _tensors(value) if t.requires_grad]
    if not tensors:
        return dict.fromkeys(leaves)
    parts = [(t * _weights(t, start)).sum() for start, t in enumerate(tensors)]
    total = sum(parts[1:], parts[0])
    grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    return {n: None if g is None else g.to_dense() for n, g in zip(leaves, grads, strict=True)}


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


def largest_number(value: Any) -> float:
    """The largest finite one of the floating tensors in `value`, without its sign; 0 of none."""
    floats = [t.detach().double() for t in _tensors(value) if t.is_floating_point() and t.numel()]
    return max((t.nan_to_num(0, 0, 0).abs().max().item() for t in floats), default=0.0)


def as_data(value: Any) -> Any:
    """`value` without graph or foreign types; what is not data becomes ``Opaque``."""
    if isinstance(value, Tensor):
        strided = value.layout == torch.strided and value.device.type == "cpu"
        if not strided or value.dtype not in DTYPES:
            dtype, layout = (str(x).removeprefix("torch.") for x in (value.dtype, value.layout))
            place = f" on {value.device.type}" if value.device.type != "cpu" else ""
            form = "" if layout == "strided" else f"{layout} "
            return Opaque(f"{form}tensor of {dtype}{place}")
        return value.detach().clone()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
        return Opaque("very large int")
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
        return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(identical(a[key], b[key]) for key in a)
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
    for path in {*sysconfig.get_paths().values(), str(Path(__file__).parents[1])}
    if path
)


@lru_cache(maxsize=1000)  # of a thousand frames of a recursion, all lie in one file
def _is_library(filename: str) -> bool:
    return str(Path(filename).resolve()).startswith(_LIBRARIES)


def _failure(error: BaseException) -> Failure:
    frames = [
        (frame.f_code, line_number)
        for frame, line_number in traceback.walk_tb(error.__traceback__)
        if not _is_library(frame.f_code.co_filename)
    ]
    place: dict[str, Any] = {}
    if frames:
        code, number = frames[-1]
        line = linecache.getline(code.co_filename, number or 0).strip()
        place = {"line_number": number, "line": line[:PRINTED_LIMIT], "function": code.co_name}
    try:
        message = re.sub(r"\s+", " ", str(error)).strip()[:PRINTED_LIMIT]
    except Exception:  # an exception of the student's own, which cannot say what it is
        message = ""
    return Failure(type(error).__name__, message, **place)


def describe(fn: Callable) -> Facts:
    """The function's name and parameters, and which names its body reads."""
    code = getattr(fn, "__code__", None)
    name = getattr(fn, "__name__", type(fn).__name__)
    if code is None:
        return Facts(name)
    count = code.co_argcount + code.co_kwonlyargcount
    parameters = code.co_varnames[:count]
    local: set[str] = set()
    uses: set[str] = set()
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
