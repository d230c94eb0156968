"""How long a run takes on a GPU: arithmetic, bytes moved and kernels launched, as an estimate.

A forward pass takes 2 FLOP for each weight of a matrix and token, its backward pass twice that;
attention's own products are left out. Writing a token reads all weights and the cache once, and
launches the same kernels however few the rows are: whichever of the three takes longest counts.
Shares and times are assumptions, stated in every plan. Those of computing and of kernels are what
Qwen2.5-0.5B's shape showed on an H100: of its peak 0.14, 26 microseconds for a kernel that Python
launches, and 4.3 for one that a graph repeats.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from rlcourse.planning.memory import Line, all_logits, average_bytes, logits_at_once, total
from rlcourse.planning.work import Work


@dataclass(frozen=True)
class GPU:
    """A GPU by its data sheet: GB, GB/s, and dense TFLOP/s: of float32, and of the 16 bits that it
    is used in, which are float16 where it has no bfloat16."""

    memory: float
    bandwidth: float
    float32: float
    half: float
    bfloat16: bool = True

    def peak(self, dtype: str) -> float:
        """TFLOP/s in this precision."""
        return self.float32 if dtype == "float32" else self.half


GPUS = {
    "T4": GPU(16, 320, 8.1, 65, bfloat16=False),
    "RTX-4080": GPU(16, 717, 48.7, 97.5),
    "L4": GPU(24, 300, 30.3, 121),
    "A100-40GB": GPU(40, 1555, 19.5, 312),
    "A100-80GB": GPU(80, 2039, 19.5, 312),
    "H100": GPU(80, 3350, 67, 989),
    "H200": GPU(141, 4800, 67, 989),
}
# Of the peak that ordinary PyTorch reaches with small models. In 16 bits the peak is so high that
# what is added, rounded and normalized between the products takes most of the time.
COMPUTE_SHARES = {"bfloat16": 0.15, "float16": 0.15, "float32": 0.25}
BANDWIDTH_SHARE = 0.6
LAUNCH = 25e-6  # seconds a kernel, Python included
REPLAY = 4.5e-6  # seconds a kernel that a CUDA graph repeats
KERNELS = {False: 46, True: 85}  # a layer's forward pass launches, without and with adapters
KERNELS_OUTSIDE = 34  # embedding, mask, output layer
AT_ONCE = 512  # completions that an evaluation writes


def seconds_of(work: Work, gpu: GPU) -> tuple[list[Line], list[Line]]:
    """Seconds of a training step by its parts, and of all that a run does, without the runs that
    make its start or its teacher. Call it only where the GPU has the recipe's precision."""
    recipe, speed = work.recipe, _Speed(work, gpu)
    step = list(speed.step_lines())
    told = f"{recipe.steps} steps x {total(step):.2f} s"
    run = [*speed.pair_lines(), Line("training", told, recipe.steps * total(step))]
    if recipe.method.trains_policy and recipe.eval_dtype:
        work = replace(work, recipe=recipe.but(dtype=recipe.eval_dtype))
    return step, [*run, *_Speed(work, gpu).evaluation_lines()]


class _Speed:
    """What a GPU makes of a recipe's work."""

    def __init__(self, work: Work, gpu: GPU):
        self.work, self.recipe, self.shape = work, work.recipe, work.shape
        self.method, dtype = work.recipe.method, work.recipe.dtype
        self.flops = gpu.peak(dtype) * 1e12 * COMPUTE_SHARES[dtype]
        self.bytes = gpu.bandwidth * 1e9 * BANDWIDTH_SHARE
        kernels = work.shape.layers * KERNELS[bool(work.recipe.lora)] + KERNELS_OUTSIDE
        self.launching = kernels * LAUNCH
        self.of_a_token = kernels * (REPLAY if work.in_graphs else LAUNCH)
        # A graph is captured after a first pass.
        self.capturing = work.in_graphs * 2 * kernels * LAUNCH

    def writing(self, rows: int, prompts: int) -> float:
        """Seconds to write `rows` completions of `prompts` prompts: launching kernels, reading
        weights and cache, or computing, whichever takes longest."""
        shape, lengths, size = self.shape, self.work.lengths, 2 if self.work.rounds else 4
        tokens = self.recipe.max_tokens if self.method.imitates else lengths.completion
        read = shape.matrices + 2 * shape.cached_numbers * rows * (lengths.prompt + tokens / 2)
        computing = 2 * shape.matrices * rows / self.flops
        slowest = max(self.of_a_token, size * read / self.bytes, computing)
        reading = 2 * shape.matrices * prompts * lengths.prompt / self.flops
        return reading + tokens * slowest + self.capturing

    def step_lines(self) -> Iterator[Line]:
        """A step's sampling, passes over its rows, and the optimizer's steps."""
        recipe, work, updates = self.recipe, self.work, self.recipe.num_iterations
        if self.method.samples:
            draws = 1 + (recipe.resample or 0 if self.method.resamples else 0)
            seconds = self.writing(work.sampled_rows, recipe.prompts_per_step)
            told = f"{draws} x {work.lengths.completion} tokens in each of {work.sampled_rows} rows"
            yield Line("sampling", told, draws * seconds)
        words = self.shape.words
        m = self.shape.matrices - words * (not self.method.trains_policy)
        if recipe.beta > 0 and self.method.trains_policy:
            yield self.passing("reference", 2 * m, 1)
        if work.teacher:
            yield self.passing("teacher", 2 * work.teacher.matrices, 1)
        yield self.passing("forward", 2 * m, updates)
        again = work.in_pieces * (updates - self.method.samples)  # for the loss, without a graph
        again += updates * recipe.gradient_checkpointing
        if again:
            yield self.passing("forward again", 2 * m, again)
        if self.method.trains_policy and logits_at_once(work) < all_logits(work):
            seconds = updates * 2 * words * work.completion_tokens / self.flops
            yield Line("logits again", "in pieces", seconds)
        # Frozen weights need no gradient of their own, only the activations do.
        yield self.passing("backward", 2 * m if recipe.lora else 4 * m, updates, kernels=2)
        trained = work.trained
        if self.method.critic:
            passes = 1 + updates * (3 + work.in_pieces + recipe.gradient_checkpointing)
            yield self.passing("critic", 2 * (m - words), passes)
            trained += work.scalar
        # AdamW reads weight, gradient and averages and writes all but the gradient: 28 bytes.
        steps, size = updates * recipe.minibatches, 12 + 4 * average_bytes(work)
        told = f"{steps} x {size:.3g} B x {trained:,}"
        yield Line("optimizer", told, steps * size * trained / self.bytes)

    def passing(self, name: str, flop: float, passes: float, kernels: int = 1) -> Line:
        """`passes` over all rows of a step, in pieces, each of which launches its kernels, twice
        where rows share prompts, which are then read first."""
        work, tokens = self.work, self.work.step_tokens
        pieces = ceil(work.rows / work.piece) * self.recipe.minibatches
        computing = flop * tokens / self.flops
        launching = pieces * (1 + (work.piece_prompts < work.piece)) * kernels * self.launching
        told = f"{passes:g} x {flop / 1e9:.2f} GFLOP x {tokens:,.0f} tokens"
        return Line(name, told, passes * max(computing, launching))

    def pair_lines(self) -> Iterator[Line]:
        """Sampling the pairs that dpo and reward_model learn from."""
        recipe, prompts = self.recipe, self.recipe.prompts_per_step
        if self.method.compares_pairs and recipe.pairs is None:
            held_out = 0 if self.method.trains_policy else recipe.eval_problems
            batches = ceil((recipe.questions + held_out) / prompts)
            seconds = batches * self.writing(self.work.sampled_rows, prompts)
            yield Line("pairs", f"{batches} batches", seconds)

    def evaluation_lines(self) -> Iterator[Line]:
        """The evaluations before and after training; greedy ones on the way are not counted."""
        recipe = self.recipe
        if not recipe.eval_problems or not self.method.trains_policy:
            return
        problems, samples = recipe.eval_problems, recipe.eval_samples
        at_once = min(problems, max(1, AT_ONCE // samples))
        batches = ceil(problems / at_once)
        greedy, drawn = (self.writing(n * at_once, at_once) for n in (1, samples))
        told = f"2 x {batches} batches of {at_once} problems, greedy and {samples} x sampled"
        yield Line("evaluation", told, 2 * batches * (greedy + drawn))
