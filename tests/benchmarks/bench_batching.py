"""What unequal lengths cost on GSM8K: padding in an update, places of rows that have ended.

    python tests/benchmarks/bench_batching.py [--data gsm8k/]

A completion is taken to be as long as its problem's solution (2.4 letters a token, as `rlcourse
plan` counts), times a factor that is log-normal with the given spread. Token steps are what the
sampler makes; seconds are by the arithmetic of `rlcourse plan` for Qwen2.5-0.5B. Nothing is run.
"""

import argparse
import heapq
import random

from rlcourse.planning.shapes import KNOWN
from rlcourse.planning.timing import (
    BANDWIDTH_SHARE,
    COMPUTE_SHARES,
    FUSED_KERNELS,
    FUSED_KERNELS_OUTSIDE,
    GPUS,
    LAUNCH,
    REPLAY,
)
from rlcourse.planning.work import ANSWER_CHARACTERS
from rlcourse.policy.static_decoding import ASK_EVERY, FEWEST_ROWS
from rlcourse.tasks import load_task
from rlcourse.training.networks.packing import PLACES

MAX_TOKENS, GROUP, PROMPTS, PROMPT_TOKENS = 300, 8, 4, 80
SHAPE = KNOWN["Qwen/Qwen2.5-0.5B"]
KERNELS = SHAPE.layers * FUSED_KERNELS + FUSED_KERNELS_OUTSIDE


def completions(solutions: list[int], problems: int, samples: int, spread: float) -> list[int]:
    """Lengths of `samples` completions of each of some problems."""

    def length(solution: int) -> int:
        return min(MAX_TOKENS, max(5, round(solution * random.lognormvariate(0, spread))))

    return [length(s) for s in random.sample(solutions, problems) for _ in range(samples)]


def pieces_of(lengths: list[int], micro_batch: int) -> list[list[int]]:
    """The pieces of micro_batches.py."""
    groups = [sorted(lengths[i : i + GROUP]) for i in range(0, len(lengths), GROUP)]
    ordered = [length for group in sorted(groups, key=max) for length in group]
    return [ordered[i : i + micro_batch] for i in range(0, len(ordered), micro_batch)]


def padding(lengths: list[int], micro_batch: int) -> float:
    """The share of an update's places that is padding."""
    pieces = pieces_of(lengths, micro_batch)
    return 1 - sum(lengths) / sum(max(piece) * len(piece) for piece in pieces)


def arithmetic(lengths: list[int], micro_batch: int, packed: bool) -> float:
    """FLOP of a forward pass, attention to all places included, those that a mask hides, too."""
    total = 0.0
    head = SHAPE.vocabulary * SHAPE.hidden
    pair = 4 * SHAPE.layers * SHAPE.heads * SHAPE.head_size
    for piece in pieces_of(lengths, micro_batch):
        prompts = -(-len(piece) // GROUP) * PROMPT_TOKENS
        read = sum(piece) if packed else max(piece) * len(piece)
        total += 2 * (SHAPE.matrices - head) * (prompts + read) + 2 * head * read
        if packed:
            texts = -(-(prompts + read) // PLACES)
            total += pair * (prompts + read) ** 2 / texts
        else:
            total += pair * read * (PROMPT_TOKENS + max(piece))
    return total


def of_a_token(rows: int, gpu: str) -> float:
    """Seconds of a token in each of so many rows."""
    card = GPUS[gpu]
    dtype = "bfloat16" if card.bfloat16 else "float16"
    cache = 4 * SHAPE.cached_numbers * rows * (PROMPT_TOKENS + MAX_TOKENS / 2)
    read = (2 * SHAPE.matrices + cache) / (card.bandwidth * 1e9 * BANDWIDTH_SHARE)
    computed = 2 * SHAPE.matrices * rows / (card.flops(dtype) * COMPUTE_SHARES[dtype])
    return max(KERNELS * REPLAY, read, computed)


def smaller(size: int, alive: int) -> int:
    """The rows that a decoder of `size` goes on with."""
    while alive and size >= max(2 * alive, 2 * FEWEST_ROWS):
        size = -(-size // 2)
    return size


def leaving(lengths: list[int], at_once: int, gpu: str) -> float:
    """Seconds to write them in batches whose rows leave by halves."""
    seconds = 0.0
    for i in range(0, len(lengths), at_once):
        batch = lengths[i : i + at_once]
        size = len(batch)
        for step in range(0, max(batch), ASK_EVERY):
            size = smaller(size, sum(length > step for length in batch))
            seconds += ASK_EVERY * of_a_token(size, gpu)
    return seconds


def refilled(lengths: list[int], at_once: int, gpu: str) -> float:
    """Seconds to write them where ended rows are refilled, as soon as a quarter has ended."""
    waiting, left, seconds, size = lengths[at_once:], lengths[:at_once], 0.0, at_once
    dtype = "bfloat16" if GPUS[gpu].bfloat16 else "float16"
    while any(length > 0 for length in left):
        ended = [row for row, length in enumerate(left) if length <= 0]
        if waiting and len(ended) >= at_once // 4:
            tokens = len(ended) / GROUP * PROMPT_TOKENS
            seconds += KERNELS * LAUNCH
            seconds += (
                2 * SHAPE.matrices * tokens / (GPUS[gpu].flops(dtype) * COMPUTE_SHARES[dtype])
            )
            for row in ended[: len(waiting)]:
                left[row] = waiting.pop()
        alive = sum(length > 0 for length in left)
        size = size if waiting else smaller(size, alive)
        seconds += ASK_EVERY * of_a_token(size, gpu)
        left = [length - ASK_EVERY for length in left]
    return seconds


def slots(lengths: list[int], at_once: int) -> int:
    """Token steps in `at_once` rows that are refilled at once."""
    until = [0] * at_once
    for length in lengths:
        heapq.heapreplace(until, until[0] + length)
    return max(until)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a directory with GSM8K's files; by default, the hub's")
    parser.add_argument("--spread", type=float, default=0.3)
    asked = parser.parse_args()
    random.seed(0)
    problems = load_task("gsm8k", asked.data).train
    solutions = [round(len(problem.answer) / ANSWER_CHARACTERS) for problem in problems]
    steps = [completions(solutions, PROMPTS, GROUP, asked.spread) for _ in range(300)]
    for micro_batch in (2, 4, 8, 32):
        share = sum(padding(step, micro_batch) for step in steps) / len(steps)
        flop = [
            sum(arithmetic(step, micro_batch, packed) for step in steps) for packed in (True, False)
        ]
        told = f"{share:.0%} of the places is padding; packed {flop[0] / flop[1]:.2f} of the FLOP"
        print(f"an update in micro-batches of {micro_batch}: {told}")
    whole = sum(map(max, steps)) / len(steps)
    half = sum(slots(step, len(step) // 2) for step in steps) / len(steps)
    told = f"{whole:.0f} token steps at once, {half:.0f} in half the rows, refilled"
    print(f"a step of {PROMPTS * GROUP}: {told}")
    lengths = completions(solutions, min(1319, len(solutions)), GROUP, asked.spread)
    for gpu in ("T4", "A100-40GB", "H100"):
        found = [way(lengths[:], 512, gpu) for way in (leaving, refilled)]
        told = f"{found[0]:.0f} s by halves, {found[1]:.0f} s refilled"
        print(f"an evaluation of {len(lengths):,} on one {gpu}, 512 at once: {told}")


if __name__ == "__main__":
    main()
