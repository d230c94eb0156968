"""What a recipe costs, before anybody rents a GPU: memory, time and fit, as estimates.

Nothing is loaded and nothing is measured. Every amount is a line with its arithmetic, so that a
reader can check it by hand: memory in ``memory.py``, time in ``timing.py``, the disk in
``storage.py``, all from the rows and tokens in ``work.py`` and the model's shape in ``shapes.py``.
"""

import difflib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.evaluation.comparing import smallest_lift
from rlcourse.planning.memory import Line, Memory, memory_of, total
from rlcourse.planning.rows import Rows, rows_on, rows_table
from rlcourse.planning.storage import checkpoint_of, disk_of, disk_warning
from rlcourse.planning.timing import (
    BANDWIDTH_SHARE,
    COMPUTE_SHARES,
    GPU,
    GPUS,
    LAUNCH,
    REPLAY,
    Duration,
    duration_of,
)
from rlcourse.planning.work import Work, work_of
from rlcourse.training.recipes.recipe import load_recipe, teacher_recipe, warm_start_of
from rlcourse.training.recipes.settings import Recipe

USABLE = 0.92  # of a GPU's memory; the rest is CUDA's own and lost between tensors


@dataclass(frozen=True)
class Fit:
    """How a recipe fares on one GPU."""

    gpu: str
    memory: float  # bytes that the GPU has
    usable: float  # bytes of these that a run can have
    peak: float  # bytes that the run needs, after the changes
    changes: dict | None  # settings that make it fit, {} for none; None: nothing does
    duration: Duration | None  # with these changes; None where it does not fit
    rows: tuple[Rows, ...] = ()  # other sizes of a step, each with its largest micro-batch

    @property
    def fits(self) -> bool:
        """Whether it fits as it is."""
        return self.changes == {}

    def dollars(self, price: float | None) -> float | None:
        """What the run costs at `price` dollars an hour, where both are known."""
        if price is None or self.duration is None:
            return None
        return price * self.duration.seconds / 3600


@dataclass(frozen=True)
class Plan:
    """Memory and time of a recipe, on each GPU that was asked about."""

    recipe: Recipe
    work: Work
    memory: Memory
    fits: tuple[Fit, ...]

    def to_dict(self, price: float | None = None) -> dict:
        """Plain values: bytes, seconds and, at `price` an hour, dollars."""
        fits = [
            {
                "gpu": fit.gpu,
                "usable": fit.usable,
                "fits": fit.fits,
                "changes": fit.changes,
                "peak": fit.peak,
                "seconds": fit.duration and fit.duration.seconds,
                "step": fit.duration and [asdict(line) for line in fit.duration.step],
                "run": fit.duration and [asdict(line) for line in fit.duration.run],
                "rows": [asdict(rows) for rows in fit.rows],
                "dollars": fit.dollars(price),
            }
            for fit in self.fits
        ]
        disk = disk_of(self.work)
        return {
            "estimate": True,
            "recipe": self.recipe.to_dict(),
            "parameters": self.work.shape.parameters,
            "shape": asdict(self.work.shape),
            "lengths": asdict(self.work.lengths),
            "memory": {**asdict(self.memory), "peak": self.memory.peak},
            "disk": {"lines": [asdict(line) for line in disk], "total": total(disk)},
            "smallest_lift": lift_of(self.recipe),
            "gpus": fits,
        }


def plan(
    recipe: Recipe | str,
    gpu: str | None = None,
    prompt: int | None = None,
    completion: int | None = None,
) -> Plan:
    """The plan of a recipe, on one GPU or on all that are known.

    Args:
        gpu: a name of ``GPUS``.
        prompt, completion: mean lengths in tokens. By default those of the task, and completions
            as long as the recipe allows: the most it can cost.

    Raises:
        UserError: there is no such GPU, or the policy's shape cannot be found.
    """
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    names = [known_gpu(gpu)] if gpu is not None else list(GPUS)
    work = work_of(recipe, prompt, completion)
    fits = tuple(fit_on(name, recipe, prompt, completion) for name in names)
    return Plan(recipe, work, memory_of(work), fits)


def known_gpu(name: str) -> str:
    """The name as the table has it. Raises UserError where it is not there."""
    by_letters = {known.lower(): known for known in GPUS}
    if found := by_letters.get(name.lower()):
        return found
    close = [known for known in by_letters if known.startswith(name.lower())]
    close += difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.4)
    hint = f"did you mean {by_letters[close[0]]}? " if close else ""
    raise UserError(f"the GPU {name} is unknown: {hint}choose one of {', '.join(GPUS)}")


def fit_on(name: str, recipe: Recipe, prompt=None, completion=None) -> Fit:
    """Whether `recipe` fits on a GPU; if not, the first of `remedies` with which it does."""
    gpu = GPUS[name]
    memory, usable = gpu.memory * 1e9, USABLE * gpu.memory * 1e9
    known = [name for name in ("dtype", "eval_dtype") if name in recipe.settings()]
    asked = {name: getattr(recipe, name) for name in known}
    precision = {name: "float16" for name in asked if asked[name] and not gpu.peak(asked[name])}
    start = recipe.but(**precision)
    for changes in ({}, *remedies(start)):
        changed = start.but(**changes)
        work = work_of(changed, prompt, completion)
        needed = memory_of(work)
        if needed.peak <= usable:
            before = (_alone(first, gpu) for first in (warm_start_of(changed), taught_by(changed)))
            duration = duration_of(work, gpu, usable - needed.resident, *before)
            rows = tuple(rows_on(gpu, usable, changed, prompt, completion))
            return Fit(name, memory, usable, needed.peak, precision | changes, duration, rows)
    peak = memory_of(work_of(start, prompt, completion)).peak
    return Fit(name, memory, usable, peak, None, None)


def remedies(recipe: Recipe) -> Iterator[dict]:
    """Settings that save memory and leave the batch as it is, those that cost least first:
    micro-batches, recomputing, both, AdamW in 8 bits, and adapters in place of all weights."""
    rows = work_of(recipe).rows
    smaller: list[dict] = []
    size = recipe.micro_batch or rows
    while size > 1:
        size //= 2
        smaller.append({"micro_batch": size})
    recomputing: list[dict] = (
        [] if recipe.gradient_checkpointing else [{"gradient_checkpointing": True}]
    )
    savings = [*smaller, *recomputing, *(a | b for a in recomputing for b in smaller)]
    yield from savings
    if recipe.optimizer == "adamw":
        yield from ({"optimizer": "adamw_8bit"} | saving for saving in ({}, *savings))
    if not (recipe.lora or recipe.method.trains_head or recipe.reference_every):
        adapters: dict = {"lora": {"rank": 16, "alpha": 32.0, "targets": "all-linear"}}
        yield adapters
        yield from (adapters | saving for saving in savings)


def taught_by(recipe: Recipe) -> Recipe | None:
    """The recipe that makes the teacher, where there is one to be made."""
    return teacher_recipe(recipe) if recipe.method.taught else None


def _alone(first: Recipe | None, gpu: GPU) -> float:
    """Seconds of training by a recipe that is run first, its own warm start included."""
    if first is None:
        return 0.0
    room = gpu.memory * 1e9
    return duration_of(work_of(first), gpu, room, _alone(warm_start_of(first), gpu)).seconds


# The table that people read


def plan_table(plan: Plan, price: float | None = None) -> str:
    """A plan as text: memory, time in detail on one GPU, and a line for each GPU."""
    parts = (_memory(plan), _machine(plan), _time(plan), _evaluation(plan.recipe))
    lines = [line for part in map(list, parts) if part for line in ("", *part)]
    return "\n".join([*_head(plan), *lines, "", *_gpus(plan, price)])


def _head(plan: Plan) -> Iterator[str]:
    recipe, work, shape = plan.recipe, plan.work, plan.work.shape
    yield f"ESTIMATE, nothing was measured: {recipe.algorithm} with {recipe.policy}"
    yield "ONE GPU HAS BEEN TRIED, an H100: steps took up to a third longer, see course/scaling.md"
    bias = ", biases on q, k, v" if shape.qkv_bias else ""
    tied = "tied" if shape.tied else "untied"
    yield (
        f"{shape.parameters:,} parameters: {shape.layers} layers, width {shape.hidden}, MLP "
        f"{shape.intermediate}, {shape.heads} heads of {shape.head_size} ({shape.kv_heads} for "
        f"keys and values), {shape.vocabulary:,} words, embeddings {tied}{bias}"
    )
    lengths = work.lengths
    yield (
        f"{recipe.steps} steps of {work.rows * work.minibatches} rows, {work.piece} read at once;"
        f" prompts of {lengths.prompt} tokens (at most {lengths.longest_prompt}), completions of "
        f"{lengths.completion} (at most {lengths.longest_completion})"
    )


def _memory(plan: Plan) -> Iterator[str]:
    memory = plan.memory
    unit, name = (1e9, "GB") if memory.peak > 1e9 else (1e6, "MB")
    yield f"Memory, {name}"
    yield "  all the time"
    yield from (_row(line, line.amount / unit) for line in memory.always)
    for moment in memory.moments:
        yield f"  on top, {moment.name}"
        yield from (_row(line, line.amount / unit) for line in moment.lines)
    worst = memory.worst
    told = f"{memory.resident / unit:.2f} all the time + {worst.amount / unit:.2f} ({worst.name})"
    yield _row(Line("peak", told, memory.peak), memory.peak / unit, indent=2)


def _machine(plan: Plan) -> Iterator[str]:
    one = checkpoint_of(plan.work)
    copied = Line("memory: a copy", f"{one.arithmetic}, while it is written", one.amount)
    unit, name = (1e9, "GB") if one.amount > 1e9 else (1e6, "MB")
    yield f"Outside of the GPU, {name}"
    for line in disk_of(plan.work):
        yield _row(replace(line, name=f"disk: {line.name}"), line.amount / unit, indent=2)
    yield _row(copied, copied.amount / unit, indent=2)
    if warning := disk_warning(plan.work, Path.cwd()):
        yield f"  WARNING: {warning}"


def _row(line: Line, amount: float, indent: int = 4) -> str:
    return f"{' ' * indent}{line.name:{28 - indent}} {amount:9.2f}  {line.arithmetic}"


def _time(plan: Plan) -> Iterator[str]:
    fit = next((f for f in plan.fits if f.fits), None)
    fit = fit or next((f for f in plan.fits if f.duration), None)
    if fit is None or fit.duration is None:
        return
    changed = f" with {settings(fit.changes)}" if fit.changes else ""
    yield f"Time on {fit.gpu}{changed}, seconds"
    gpu = GPUS[fit.gpu]
    dtype = (fit.changes or {}).get("dtype", plan.recipe.dtype)
    peak = gpu.flops(dtype) / 1e12
    yield (
        f"  assumed: {COMPUTE_SHARES[dtype]:.0%} of {peak:g} TFLOP/s, {BANDWIDTH_SHARE:.0%} of "
        f"{gpu.bandwidth:g} GB/s, {1e6 * LAUNCH:.0f} microseconds a kernel"
    )
    if plan.recipe.method.samples:
        how = f"a CUDA graph a token, {1e6 * REPLAY:.0f} microseconds a kernel"
        how = how if plan.work.in_graphs else "without CUDA graphs"
        yield f"  sampling: the local engine's, {how}; vLLM: course/scaling.md"
    yield "  a training step"
    yield from (_row(line, line.amount) for line in fit.duration.step)
    yield "  the run"
    yield from (_row(line, line.amount) for line in fit.duration.run)
    seconds = fit.duration.seconds
    yield _row(Line("total", f"{seconds / 3600:.2f} hours", 0), seconds, indent=2)
    if fit.rows:
        yield f"Rows of a step that fit {fit.gpu}{changed}, read in the largest micro-batches"
        yield from rows_table(fit.rows)
        yield "  micro_batch leaves the gradient as it is; prompts_per_step is another experiment"


def lift_of(recipe: Recipe) -> float | None:
    """The smallest lift that the recipe's evaluation can show; None where it makes none."""
    if not (recipe.method.trains_policy and recipe.eval_problems):
        return None
    return smallest_lift(recipe.eval_problems, recipe.eval_samples)


def _evaluation(recipe: Recipe) -> Iterator[str]:
    lift = lift_of(recipe)
    if lift is None:
        return
    yield "Evaluation, points of sampled accuracy"
    asked = f"{recipe.eval_problems:,} problems x {recipe.eval_samples} samples"
    how = f"what {asked} show four times in five, if answers are coin flips"
    yield _row(Line("smallest lift", how, lift), 100 * lift, indent=2)


def settings(changes: dict) -> str:
    """Changes as they are written on the command line."""
    words = []
    for name, value in changes.items():
        if name == "lora":
            words.append(f"lora.rank={value['rank']}")
        else:
            words.append(f"{name}={str(value).lower()}")
    return " ".join(words)


def _gpus(plan: Plan, price: float | None) -> Iterator[str]:
    cost = f" {'dollars':>8}" if price is not None else ""
    yield f"{'GPU':10} {'GB':>5} {'usable':>7} {'needed':>7} {'hours':>7}{cost}"
    for fit in plan.fits:
        hours = f"{fit.duration.seconds / 3600:7.2f}" if fit.duration else f"{'-':>7}"
        if price is not None:
            hours += f" {fit.dollars(price):8.2f}" if fit.duration else f" {'-':>8}"
        verdict = "fits" if fit.fits else f"fits with {settings(fit.changes or {})}"
        if fit.changes is None:
            verdict = "too small, even with every change that keeps the batch the same"
        amounts = f"{fit.memory / 1e9:5.0f} {fit.usable / 1e9:7.1f} {fit.peak / 1e9:7.1f}"
        yield f"{fit.gpu:10} {amounts} {hours}  {verdict}"
    if price is not None:
        yield f"at {price:g} dollars per hour, the price that you gave"
