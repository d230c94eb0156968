"""The student's side of a check: call a function on a case and report what came out, as data.

Nothing here knows a right answer. A case goes in, an outcome comes out, and both are tensors,
numbers, strings and containers of them, so that a pipe can separate this module from the judge.
"""

import linecache
import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import CoroutineType, FunctionType
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.case import Case, tensors_in
from rlcourse.checks.asking.causes import cause_of
from rlcourse.checks.asking.names import GLOBAL, names_in, read_in_text
from rlcourse.checks.asking.output import PRINTED_LIMIT, kept_output
from rlcourse.checks.asking.scene import Scene
from rlcourse.checks.asking.specs import Spec, build, observe

TORCH_GENERATOR = "torch's own generator"  # among what a call has changed
MOST_WRAPPERS = 100  # around a function
LARGEST_RESULT = 1 << 21  # numbers in a tensor that is returned
LARGEST_INTEGER = 1 << 63  # that a tensor can hold
# Tensors that are data; every other kind lacks operations that a comparison needs.
DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip

_WRAPPERS = (FunctionType, type(lru_cache(len)))  # what functools.wraps makes, and caches


@dataclass(frozen=True)
class Failure:
    """An exception without its traceback; the line is the deepest one that the student wrote.

    ``cause`` is a sentence on what stood there, where that explains it; ``called_from`` is the
    student's outermost line, if that is another one.
    """

    type: str
    message: str
    line_number: int | None = None
    line: str = ""
    function: str = ""
    cause: str = ""
    called_from: int | None = None


@dataclass(frozen=True)
class Opaque:
    """A returned object that is not data, by the name of its type."""

    type: str


@dataclass(frozen=True)
class Outcome:
    """What a call did: its value, the gradients, and everything it did besides."""

    value: Any = None
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    changed: tuple[str, ...] = ()  # arguments whose content has changed, or the generator
    after: dict[str, Any] = field(default_factory=dict)  # "policy.logits": parameters afterwards
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    printed: str = ""
    repeatable: bool | None = True  # None: called once only
    # Arguments for which the call fails only if they carry a gradient, as `.numpy()` does
    refused: dict[str, Failure] = field(default_factory=dict)

    def in_training(self, case: Case) -> "Outcome":
        """What happens if `differentiable` arguments carry a gradient, and constants do not."""
        errors = [e for name, e in self.refused.items() if name in case.differentiable]
        return replace(self, error=errors[0]) if errors and not self.error else self


@dataclass(frozen=True)
class Facts:
    """What is known about the function without calling it."""

    name: str
    parameters: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()  # parameters that no line of the body reads
    uses: tuple[str, ...] = ()  # global names that it reads, itself or by functions beside it


def call_all(fn: Callable, cases: tuple[Case, ...], repeat: bool = True) -> list[Outcome]:
    """An outcome for every case; the caller's random state is left as it was."""
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


@contextmanager
def usual_settings():
    """torch as it begins, whatever student code has switched; afterwards as it was before."""
    before = torch.is_grad_enabled(), torch.get_default_dtype()
    strict, printing = torch.are_deterministic_algorithms_enabled(), torch._tensor_str
    digits = printing.PRINT_OPTS
    try:
        _set(True, torch.float32, False)
        printing.PRINT_OPTS = type(digits)()
        yield
    finally:
        printing.PRINT_OPTS = digits
        _set(*before, strict)


def _set(gradients: bool, dtype: torch.dtype, deterministic: bool) -> None:
    torch.set_grad_enabled(gradients)
    torch.set_default_dtype(dtype)
    if torch.are_deterministic_algorithms_enabled() != deterministic:  # it imports a compiler
        torch.use_deterministic_algorithms(deterministic)


def call(fn: Callable, case: Case, repeat: bool = False) -> Outcome:
    """Call `fn` on `case`. With `repeat`, call it twice and note whether the two agree."""
    outcome = _call(fn, case)
    if repeat and outcome.error is None:
        again = _call(fn, case)
        outcome = replace(outcome, repeatable=repeats(outcome.value, again.value))
    return outcome


def _call(fn: Callable, case: Case) -> Outcome:
    names = _floats(case) if case.tracked else ()
    outcome = _attempt(fn, case, names)
    if names and outcome.error and outcome.error.type == "RuntimeError":
        return _without_refused(fn, case, names) or outcome
    return outcome


def _without_refused(fn: Callable, case: Case, names: tuple[str, ...]) -> Outcome | None:
    """The outcome when only those arguments are tracked that can be; None if all of them can.

    All arguments are tracked alike, so that a function cannot tell which are constants. Good code
    for a constant, such as `.numpy()` or `copy.deepcopy`, must not fail because of that.
    """
    alone = {name: _attempt(fn, case, (name,)).error for name in names}
    refused = {name: error for name, error in alone.items() if error}
    outcome = _attempt(fn, case, tuple(name for name in names if name not in refused))
    if not refused or (outcome.error and "grad" in outcome.error.message):
        return None
    if outcome.error:  # one that comes without any gradient is told first
        return outcome
    gradients = {**outcome.gradients, **dict.fromkeys(refused)}
    return replace(outcome, gradients=gradients, refused=refused)


def _floats(case: Case) -> tuple[str, ...]:
    given = case.arguments.items()
    return tuple(n for n, a in given if isinstance(a, Tensor) and a.is_floating_point())


def _attempt(fn: Callable, case: Case, tracked: tuple[str, ...]) -> Outcome:
    with usual_settings(), kept_output() as said:
        leaves, arguments = _build(case, tracked)
        random_state = torch.default_generator.get_state()
        try:
            value = fn(**arguments)
            torch.set_grad_enabled(True)
            gradients = _gradients(value, leaves)
            done = Outcome(
                value=as_data(value),
                gradients=gradients,
                changed=_changed(case, arguments) + _generator_used(random_state),
                after=_after(case, arguments),
            )
        except (Exception, SystemExit, GeneratorExit) as error:
            done = Outcome(error=failure_of(error))
    return replace(done, **said())


def _changed(case: Case, arguments: dict[str, Any]) -> tuple[str, ...]:
    """Arguments whose content has changed."""
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
    """Fresh arguments. Tracked ones are not leaves, as in training, so writing to them works."""
    leaves: dict[str, Tensor] = {}
    arguments: dict[str, Any] = {}
    for name, given in case.arguments.items():
        if isinstance(given, Spec):
            arguments[name] = build(given, arguments)
        elif name in tracked:
            leaves[name] = given.detach().clone().requires_grad_()
            arguments[name] = leaves[name].clone()
        else:
            arguments[name] = as_copies(given)
    return leaves, arguments


def arguments_of(case: Case) -> dict[str, Any]:
    """Fresh arguments to call a function with; none records a gradient."""
    return _build(case, ())[1]


def as_copies(value: Any) -> Any:
    """The value with tensors and containers of its own."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(as_copies(item) for item in value)
    if isinstance(value, dict):
        return {key: as_copies(item) for key, item in value.items()}
    return value


def _gradients(value: Any, leaves: dict[str, Tensor]) -> dict[str, Tensor | None]:
    """Gradients of a weighted sum of all results; a single scalar has weight 1."""
    if not leaves:
        return {}
    tensors = [t for t in tensors_in(value) if t.requires_grad and not _is_too_large(t)]
    if not tensors:
        return dict.fromkeys(leaves)
    parts = [(t * _weights(t, start)).sum() for start, t in enumerate(tensors)]
    total = sum(parts[1:], parts[0])
    grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    return {n: None if g is None else g.to_dense() for n, g in zip(leaves, grads, strict=True)}


def _weights(like: Tensor, start: int) -> Tensor:
    return torch.cos(torch.arange(like.numel(), dtype=like.dtype) + start).reshape(like.shape)


def _is_too_large(tensor: Tensor) -> bool:
    """Whether a tensor is too large for any exercise: `expand` can make one out of a single number,
    which would fill the memory when it is copied."""
    return tensor.layout == torch.strided and tensor.numel() > LARGEST_RESULT


def as_data(value: Any) -> Any:
    """`value` without graph or foreign types; what is not data becomes ``Opaque``."""
    if isinstance(value, Tensor):
        strided = value.layout == torch.strided and value.device.type == "cpu"
        if not strided or value.dtype not in DTYPES:
            dtype, layout = (str(x).removeprefix("torch.") for x in (value.dtype, value.layout))
            place = f" on {value.device.type}" if value.device.type != "cpu" else ""
            form = "" if layout == "strided" else f"{layout} "
            return Opaque(f"{form}tensor of {dtype}{place}")
        if _is_too_large(value):
            return Opaque(f"tensor of {value.numel()} numbers")
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
    if isinstance(value, CoroutineType):
        value.close()  # or Python warns that nobody has waited for it
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


def repeats(a: Any, b: Any) -> bool:
    """Whether two results are the same except for rounding: the place of numbers in memory decides
    the order in which `torch.linalg` adds them up, and so the last digits."""
    if isinstance(a, float) and isinstance(b, float):
        a, b = (torch.tensor(x, dtype=torch.float64) for x in (a, b))
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.is_floating_point():
        relative = 1e-9 if a.dtype == torch.float64 else 1e-6
        same_kind = a.shape == b.shape and a.dtype == b.dtype
        return same_kind and torch.allclose(a, b, relative, 1e-12, equal_nan=True)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(repeats, a, b))
    return identical(a, b)


def failure_of(error: BaseException) -> Failure:
    """What is told of an exception."""
    scene = Scene.of(error.__traceback__)
    place: dict[str, Any] = {}
    if scene:
        code, number = scene.frame.f_code, scene.line_number
        line = linecache.getline(code.co_filename, number).strip()[:PRINTED_LIMIT]
        place = {"line_number": number, "line": line, "function": code.co_name}
        place["called_from"] = scene.outer[-1].f_lineno if scene.outer else None
    try:
        message = re.sub(r"\s+", " ", str(error)).strip()[:PRINTED_LIMIT]
    except Exception:  # a student's own exception, which cannot be printed
        message = ""
    return Failure(type(error).__name__, message, **place, cause=cause_of(error, scene))


def describe(fn: Callable) -> Facts:
    """The function's name and parameters, and which names its body reads."""
    code = getattr(fn, "__code__", None)
    name = getattr(fn, "__name__", type(fn).__name__)
    uses = tuple(sorted(_global_names(fn)))
    if code is None:
        return Facts(name, uses=uses)
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    read = read_in_text(code)
    unused = () if read is None else tuple(p for p in parameters if p not in read)
    return Facts(name, parameters, unused, uses)


def written(fn: Any) -> FunctionType | None:
    """The function inside decorators and ``functools.partial``; None if there is none."""
    for _ in range(MOST_WRAPPERS):
        if isinstance(fn, partial):
            fn = fn.func
        elif isinstance(fn, _WRAPPERS) and "__wrapped__" in vars(fn):
            fn = vars(fn)["__wrapped__"]
    return fn if isinstance(fn, FunctionType) else None


def _global_names(fn: Callable) -> set[str]:
    """The names that it reads, and those that the functions under these names read."""
    found: set[str] = set()
    open_ends = [own] if (own := written(fn)) else []
    while open_ends:
        function = open_ends.pop()
        read = names_in(function.__code__, GLOBAL)
        beside = (written(function.__globals__.get(name)) for name in read - found)
        open_ends += [f for f in beside if f and f.__globals__ is function.__globals__]
        found |= read
    return found
