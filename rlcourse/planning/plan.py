"""What a recipe costs, before anybody rents a GPU: memory, time and fit, as estimates.

Nothing is loaded and nothing is measured. Every amount is a line with its arithmetic, so that a
reader can check it by hand: memory in ``memory.py``, time in ``timing.py``, both from the rows and
tokens in ``work.py`` and the model's shape in ``shapes.py``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from rlcourse.errors import UserError
from rlcourse.evaluation.comparing import smallest_lift
from rlcourse.planning.memory import Line, Memory, memory_of, total
from rlcourse.planning.timing import (
    BANDWIDTH_SHARE,
    COMPUTE_SHARES,
    GPUS,
    LAUNCH,
    REPLAY,
    seconds_of,
)
from rlcourse.planning.work import Work, work_of
from rlcourse.training.recipes.recipe import load_recipe
from rlcourse.training.recipes.settings import Recipe

USABLE = 0.92  # of a GPU's memory; the rest is CUDA's own and lost between tensors


@dataclass(frozen=True)
class Fit:
    """How a recipe fares on one GPU."""

    gpu: str
    peak: float  # bytes that the run needs, after the changes
    changes: dict | None  # settings that make it fit, {} for none; None: nothing does
    step: list[Line]  # seconds with these changes; none where it does not fit
    run: list[Line]

    @property
    def fits(self) -> bool:
        """Whether it fits as it is."""
        return self.changes == {}


@dataclass(frozen=True)
class Plan:
    """Memory and time of a recipe, on each GPU that was asked about."""

    recipe: Recipe
    work: Work
    memory: Memory
    fits: list[Fit]


def plan(recipe: Recipe | str, gpu: str | None = None, completion: int | None = None) -> Plan:
    """The plan of a recipe, on one GPU of ``GPUS`` or on all of them.

    `completion` is a mean length in tokens. By default completions are as long as the recipe
    allows: the most it can cost.

    Raises:
        UserError: there is no such GPU, or the policy's shape cannot be found.
    """
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    names = [name for name in GPUS if gpu is None or name.lower() == gpu.lower()]
    if not names:
        raise UserError(f"the GPU {gpu} is unknown: choose one of {', '.join(GPUS)}")
    work = work_of(recipe, completion)
    fits = [fit_on(name, recipe, completion) for name in names]
    return Plan(recipe, work, memory_of(work), fits)


def fit_on(name: str, recipe: Recipe, completion: int | None = None) -> Fit:
    """Whether `recipe` fits on a GPU; if not, the first of `remedies` with which it does."""
    gpu, usable = GPUS[name], USABLE * GPUS[name].memory * 1e9
    precision = {}
    if not gpu.bfloat16:
        known = [key for key in ("dtype", "eval_dtype") if key in recipe.settings()]
        precision = {key: "float16" for key in known if getattr(recipe, key) == "bfloat16"}
    start = recipe.but(**precision)
    for changes in remedies(start):
        changed = start.but(**changes)
        work = work_of(changed, completion)
        needed = memory_of(work)
        if needed.peak <= usable:
            return Fit(name, needed.peak, precision | changes, *seconds_of(work, gpu))
    return Fit(name, memory_of(work_of(start, completion)).peak, None, [], [])


def remedies(recipe: Recipe) -> Iterator[dict]:
    """No change, and settings that save memory and leave the batch as it is, those that cost least
    first: micro-batches, recomputing, both, and AdamW in 8 bits."""
    size = recipe.micro_batch or work_of(recipe).rows
    smaller = [{}, *({"micro_batch": size >> n} for n in range(1, size.bit_length()))]
    recomputing = [{}, {"gradient_checkpointing": True}][: 2 - recipe.gradient_checkpointing]
    eight_bits = [{}, {"optimizer": "adamw_8bit"}][: 1 + (recipe.optimizer == "adamw")]
    for optimizer, again, pieces in product(eight_bits, recomputing, smaller):
        yield optimizer | again | pieces


# The table that people read


def plan_table(plan: Plan) -> str:
    """A plan as text: memory, time in detail on one GPU, and a line for each GPU."""
    parts = (_head(plan), _memory(plan), _time(plan), _gpus(plan))
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part)


def _head(plan: Plan) -> Iterator[str]:
    recipe, work, lengths = plan.recipe, plan.work, plan.work.lengths
    yield f"ESTIMATE, nothing was measured: {recipe.algorithm} with {recipe.policy}"
    yield "ONE GPU HAS BEEN TRIED, an H100: steps took up to a third longer, see course/scaling.md"
    yield (
        f"{recipe.steps} steps of {work.rows * recipe.minibatches} rows, {work.piece} read at once;"
        f" prompts of {lengths.prompt} tokens (at most {lengths.longest_prompt}), completions of "
        f"{lengths.completion} (at most {lengths.longest_completion})"
    )


def _memory(plan: Plan) -> Iterator[str]:
    memory = plan.memory
    unit, name = (1e9, "GB") if memory.peak > 1e9 else (1e6, "MB")
    yield f"Memory, {name}"
    yield from _rows("all the time", memory.always, unit)
    for moment, lines in memory.moments.items():
        yield from _rows(f"on top, {moment}", lines, unit)
    told = f"all the time, and {memory.worst}"
    yield from _rows("", [Line("peak", told, memory.peak)], unit)


def _rows(title: str, lines: Iterable[Line], unit: float = 1.0) -> Iterator[str]:
    if title:
        yield f"  {title}"
    for line in lines:
        yield f"    {line.name:22} {line.amount / unit:9.2f}  {line.arithmetic}"


def _time(plan: Plan) -> Iterator[str]:
    ordered = sorted(plan.fits, key=lambda fit: not fit.fits)  # the first that it fits as it is
    fit = next((fit for fit in ordered if fit.step), None)
    if fit is None:
        return
    gpu, changes = GPUS[fit.gpu], fit.changes or {}
    dtype = changes.get("dtype", plan.recipe.dtype)
    yield f"Time on {fit.gpu}{' with ' * bool(changes)}{settings(changes)}, seconds"
    yield (
        f"  assumed: {COMPUTE_SHARES[dtype]:.0%} of {gpu.peak(dtype):g} TFLOP/s, "
        f"{BANDWIDTH_SHARE:.0%} of {gpu.bandwidth:g} GB/s, {1e6 * LAUNCH:.0f} microseconds a "
        f"kernel, {1e6 * REPLAY:.2g} in a CUDA graph; sampling is the local engine's"
    )
    yield from _rows("a training step", fit.step)
    yield from _rows("the run", fit.run)
    seconds = total(fit.run)
    yield from _rows("", [Line("total", f"{seconds / 3600:.2f} hours", seconds)])
    if plan.recipe.method.trains_policy and plan.recipe.eval_problems:
        problems, samples = plan.recipe.eval_problems, plan.recipe.eval_samples
        told = f"points of accuracy that {problems:,} problems x {samples} samples show four "
        lift = Line("smallest lift", f"{told}times in five", 100 * smallest_lift(problems, samples))
        yield from _rows("the evaluation", [lift])


def settings(changes: dict) -> str:
    """Changes as they are written on the command line."""
    return " ".join(f"{name}={str(value).lower()}" for name, value in changes.items())


def _gpus(plan: Plan) -> Iterator[str]:
    yield f"{'GPU':10} {'GB':>5} {'usable':>7} {'needed':>7} {'hours':>7}"
    for fit in plan.fits:
        hours = f"{total(fit.run) / 3600:7.2f}" if fit.run else f"{'-':>7}"
        verdict = f"fits with {settings(fit.changes)}" if fit.changes else "fits"
        if fit.changes is None:
            verdict = "too small, even with every change that keeps the batch the same"
        size = GPUS[fit.gpu].memory
        amounts = f"{size:5} {USABLE * size:7.1f} {fit.peak / 1e9:7.1f}"
        yield f"{fit.gpu:10} {amounts} {hours}  {verdict}"
