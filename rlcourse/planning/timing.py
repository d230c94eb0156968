"""How long a run takes on a GPU: arithmetic, bytes moved and kernels launched, as an estimate.

A forward pass takes 2 FLOP for each weight of a matrix and token, its backward pass twice that;
attention's own products are left out. Writing a token reads all weights and the cache once, and
launches the same kernels however few the rows are: whichever of the three takes longest counts.
Shares and times are assumptions, stated in every plan. Those of computing and of kernels are what
Qwen2.5-0.5B's shape showed on an H100: of its peak 0.14, 26 microseconds for a kernel that Python
launches, and 4.3 or 5.9 for one of a graph's 1,138 or 480.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, isclose

from rlcourse.planning.memory import (
    Line,
    all_logits,
    average_bytes,
    cached_bytes,
    evaluation_rows,
    logits_at_once,
    scalar_parameters,
    total,
    trained_parameters,
)
from rlcourse.planning.storage import waiting
from rlcourse.planning.work import Work


@dataclass(frozen=True)
class GPU:
    """A GPU by its data sheet: GB, GB/s, and dense TFLOP/s: of bfloat16, None where it has none,
    float32, and float16 where that differs."""

    memory: float
    bandwidth: float
    bfloat16: float | None
    float32: float
    float16: float | None = None

    def peak(self, dtype: str) -> float | None:
        """FLOP/s in this precision."""
        half = {"bfloat16": self.bfloat16, "float16": self.float16 or self.bfloat16}
        tera = half.get(dtype, self.float32)
        return tera and tera * 1e12

    def flops(self, dtype: str) -> float:
        """`peak`, of a precision that it has."""
        peak = self.peak(dtype)
        assert peak is not None, f"this GPU has no {dtype}"
        return peak


GPUS = {
    "T4": GPU(16, 320, None, 8.1, 65),
    "RTX-4080": GPU(16, 717, 97.5, 48.7),
    "L4": GPU(24, 300, 121, 30.3),
    "A10G": GPU(24, 600, 70, 35),
    "RTX-4090": GPU(24, 1008, 165, 82.6),
    "A100-40GB": GPU(40, 1555, 312, 19.5),
    "A100-80GB": GPU(80, 2039, 312, 19.5),
    "H100": GPU(80, 3350, 989, 67),
    "H200": GPU(141, 4800, 989, 67),
}
# Of the peak that ordinary PyTorch reaches with small models. In 16 bits the peak is so high that
# what is added, rounded and normalized between the products takes most of the time.
COMPUTE_SHARES = {"bfloat16": 0.15, "float16": 0.15, "float32": 0.25}
BANDWIDTH_SHARE = 0.6
LAUNCH = 25e-6  # seconds a kernel, Python included
REPLAY = 6e-6  # seconds a kernel that a CUDA graph repeats
KERNELS = {False: 46, True: 85}  # a layer's forward pass launches, without and with adapters
KERNELS_OF_QK_NORM = 16  # in addition, where queries and keys are normalized
KERNELS_OUTSIDE = 34  # embedding, mask, output layer
KERNELS_OF_LOGITS = 27  # of each piece of a large vocabulary's, its gradient included
FUSED_KERNELS = 19  # of policy/fused.py
FUSED_KERNELS_OUTSIDE = 24  # the draw included


def gpu_named(name: str, size: float) -> GPU | None:
    """The data sheet of the GPU of that name and of `size` bytes, as its driver gives them.

    None where it is not known. The name is not enough: an RTX 4090 for laptops has less memory.
    """
    words = set(re.split(r"[\s-]+", name.upper()))
    for known, gpu in GPUS.items():
        has_its_words = words.issuperset(known.upper().split("-"))
        if has_its_words and isclose(size, 1e9 * gpu.memory, rel_tol=0.1):
            return gpu
    return None


@dataclass(frozen=True)
class Duration:
    """Seconds of a training step by its parts, and of all that a run does."""

    step: tuple[Line, ...]
    run: tuple[Line, ...]

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return total(self.run)


def duration_of(
    work: Work, gpu: GPU, free: float, warm_start: float = 0.0, teacher: float = 0.0
) -> Duration:
    """The time of a run; `free` bytes are left for evaluation, `warm_start` seconds and those of
    a `teacher` that is trained come before.

    Call it only where the GPU has the recipe's precision.
    """
    recipe, speed = work.recipe, _Speed(work, gpu)
    step = (*speed.sampling_lines(), *speed.training_lines())
    before = {"warm start": warm_start, "teacher": teacher}
    lines = [Line(name, "a plan of its own", amount) for name, amount in before.items() if amount]
    lines += list(speed.pair_lines())
    seconds = total(step)
    lines.append(
        Line("training", f"{recipe.steps} steps x {seconds:.2f} s", recipe.steps * seconds)
    )
    measured = evaluated(work)
    measuring = tuple(_Speed(measured, gpu).evaluation_lines(evaluation_rows(measured, free)))
    lines.append(waiting(work, seconds, recipe.steps * seconds, total(measuring) / 2))
    lines += measuring
    return Duration(step, tuple(lines))


def graphs_captured(rows: int) -> int:
    """CUDA graphs that writing takes: one, and one more at each halving of the rows, down to 8."""
    return max(1, ceil(rows).bit_length() - 3)


def evaluated(work: Work) -> Work:
    """The work in the precision of its evaluations."""
    recipe = work.recipe
    if not recipe.method.trains_policy or recipe.eval_dtype is None:
        return work
    return replace(work, recipe=recipe.but(dtype=recipe.eval_dtype))


class _Speed:
    """What a GPU makes of a recipe's work."""

    def __init__(self, work: Work, gpu: GPU):
        self.work, self.recipe, self.shape = work, work.recipe, work.shape
        self.method = work.recipe.method
        self.flops = gpu.flops(work.recipe.dtype) * COMPUTE_SHARES[work.recipe.dtype]
        self.bytes = gpu.bandwidth * 1e9 * BANDWIDTH_SHARE
        of_layer = KERNELS[bool(work.recipe.lora)] + work.shape.qk_norm * KERNELS_OF_QK_NORM
        kernels = work.shape.layers * of_layer + KERNELS_OUTSIDE
        self.launching = kernels * LAUNCH
        if work.fused:
            kernels = work.shape.layers * FUSED_KERNELS + FUSED_KERNELS_OUTSIDE
        self.of_a_token = kernels * LAUNCH
        self.repeating = kernels * (REPLAY if work.in_graphs else LAUNCH)

    def writing(self, rows: int, prompts: int) -> tuple[float, str]:
        """Seconds to write `rows` completions of `prompts` prompts, and what bounds them."""
        shape, lengths = self.shape, self.work.lengths
        tokens = self.recipe.max_tokens if self.work.imitates else lengths.completion
        keys, values = cached_bytes(self.work)
        weights = shape.matrices * (2 if self.work.rounds else 4)
        half_way = lengths.prompt + tokens / 2
        cache = shape.cached_numbers * (keys + values) * rows * half_way
        bounds = {
            "launching kernels": self.repeating,
            "reading weights and cache": (weights + cache) / self.bytes,
            "computing": 2 * shape.matrices * rows / self.flops,
        }
        slowest = max(bounds, key=lambda bound: bounds[bound])
        told = f"{tokens} tokens x {1e3 * bounds[slowest]:.1f} ms ({slowest})"
        reading = 2 * shape.matrices * prompts * lengths.prompt / self.flops
        if self.work.in_graphs:  # each is captured after an ordinary pass
            reading += graphs_captured(rows) * 2 * self.of_a_token
            told += f" + {graphs_captured(rows)} graphs captured"
        return reading + tokens * bounds[slowest], told

    def sampling_lines(self) -> Iterator[Line]:
        """A step's sampling."""
        if not self.work.samples:
            return
        seconds, told = self.writing(self.work.sampled_rows, self.recipe.prompts_per_step)
        if self.method.resamples and self.recipe.resample:
            times = 1 + self.recipe.resample
            yield Line("sampling", f"up to {times} draws x {told}", times * seconds)
        else:
            yield Line("sampling", told, seconds)

    def training_lines(self) -> Iterator[Line]:
        """A step's updates: passes over its rows, and the optimizer."""
        recipe, work = self.recipe, self.work
        m = self.shape.matrices
        updates = recipe.num_iterations
        if not self.method.trains_policy:
            m -= self.shape.vocabulary * self.shape.hidden
        first = work.in_pieces * (updates - work.known_updates)  # for the loss, without a graph
        again = first + updates * recipe.gradient_checkpointing
        if recipe.beta > 0 and self.method.trains_policy:
            yield self.passing("reference", 2 * m, 1)
        if work.teacher:
            yield self.passing("teacher", 2 * work.teacher.matrices, 1)
        yield self.passing("forward", 2 * m, updates)
        if again:
            why = ["micro-batches"] * (first > 0)
            why += ["gradient checkpointing"] * recipe.gradient_checkpointing
            yield self.passing("forward again", 2 * m, again, why=f" for {' and '.join(why)}")
        if self.method.trains_policy and logits_at_once(work) < all_logits(work):
            words, tokens = self.shape.vocabulary * self.shape.hidden, work.completion_tokens
            pieces = ceil(work.rows / work.piece) * all_logits(work) / logits_at_once(work)
            launching = work.minibatches * pieces * KERNELS_OF_LOGITS * LAUNCH
            told = f"{updates} x {2 * words / 1e9:.2f} GFLOP x {tokens:,.0f} tokens, in pieces"
            seconds = max(2 * words * tokens / self.flops, launching)
            yield Line("logits again", told, updates * seconds)
        # Frozen weights need no gradient of their own, only the activations do.
        yield self.passing("backward", 2 * m if recipe.lora else 4 * m, updates, kernels=2)
        trained = trained_parameters(work)
        if self.method.critic:
            body = m - self.shape.vocabulary * self.shape.hidden
            passes = 1 + updates * (3 + work.in_pieces + recipe.gradient_checkpointing)
            yield self.passing("critic", 2 * body, passes)
            trained += scalar_parameters(work)
        steps = updates * work.minibatches
        # AdamW reads weight, gradient and averages and writes all but the gradient: 28 bytes.
        size = 12 + 4 * average_bytes(work)
        seconds = steps * size * trained / self.bytes
        yield Line("optimizer", f"{steps} x {size:.3g} B x {trained:,} at {self.rate}", seconds)

    @property
    def rate(self) -> str:
        """The memory bandwidth, as a plan tells it."""
        return f"{self.bytes / 1e9:.0f} GB/s"

    def passing(self, name: str, flop: float, passes: float, kernels: int = 1, why="") -> Line:
        """`passes` over all rows of a step, in pieces, each of which launches its kernels."""
        work = self.work
        tokens = work.step_tokens
        pieces = ceil(work.rows / work.piece) * work.minibatches
        computing = flop * tokens / self.flops
        launching = pieces * work.readings * kernels * self.launching
        told = f"{flop / 1e9:.2f} GFLOP x {tokens:,.0f} tokens at {self.flops / 1e12:.0f} TFLOP/s"
        if launching > computing:
            told = f"launching the kernels of {pieces} pieces"
        times = f"{passes:g} x " if passes != 1 else ""
        return Line(name, times + told + why, passes * max(computing, launching))

    def pair_lines(self) -> Iterator[Line]:
        """Sampling the pairs that dpo and reward_model learn from."""
        recipe = self.recipe
        if not self.method.compares_pairs or recipe.pairs is not None:
            return
        questions = recipe.questions
        if not self.method.trains_policy:
            questions += recipe.eval_problems  # held-out pairs
        seconds, told = self.writing(
            recipe.prompts_per_step * recipe.group_size, recipe.prompts_per_step
        )
        batches = ceil(questions / recipe.prompts_per_step)
        yield Line("pairs", f"{batches} batches x {told}", batches * seconds)

    def evaluation_lines(self, rows: int) -> Iterator[Line]:
        """The evaluations before and after training, and the greedy ones on the way."""
        recipe = self.recipe
        if not recipe.eval_problems or not self.method.trains_policy:
            return
        at_once = min(recipe.eval_problems, max(1, rows // recipe.eval_samples))
        batches = ceil(recipe.eval_problems / at_once)
        samples = min(rows, recipe.eval_samples)
        turns = ceil(recipe.eval_samples / samples)  # where one problem's do not fit at once
        greedy, _ = self.writing(at_once, at_once)
        drawn, told = self.writing(at_once * samples, at_once)
        told = f"2 x {batches} batches of {at_once} problems, greedy and {recipe.eval_samples} x"
        seconds = 2 * batches * (greedy + turns * drawn)
        yield Line("evaluation", f"{told} sampled, {at_once * samples} rows at once", seconds)
        if recipe.eval_every:
            times = recipe.steps // recipe.eval_every
            batches = times * ceil(recipe.eval_problems / rows)
            at_once = min(rows, recipe.eval_problems)
            greedy, told = self.writing(at_once, at_once)
            yield Line("evaluation on the way", f"{batches} batches x {told}", batches * greedy)
