"""How many rows a step could have on a GPU, and how many of them it could read at once.

Micro-batches do not change the gradient, so the largest that fits is simply the fastest. More
questions in a step do change the experiment: steps are fewer for the same questions, and `lr` has
to be chosen again. So that is shown, and nothing is decided.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rlcourse.planning.memory import memory_of, total
from rlcourse.planning.timing import GPU, duration_of
from rlcourse.planning.work import work_of
from rlcourse.training.recipes.settings import Recipe

MOST_ROWS = 1024
WORTHWHILE = 1.05  # times as many rows a second


@dataclass(frozen=True)
class Rows:
    """A size of a step: its questions and rows, the largest micro-batch that fits, and the rate."""

    prompts_per_step: int
    rows: int
    micro_batch: int
    peak: float  # bytes
    seconds: float  # of a step

    @property
    def rate(self) -> float:
        """Rows a second that are sampled and learned from."""
        return self.rows / self.seconds


def rows_on(gpu: GPU, usable: float, recipe: Recipe, prompt=None, completion=None) -> list[Rows]:
    """Sizes of a step that fit into `usable` bytes: the recipe's, then twice as many questions each
    time. The last one that is listed gains less than `WORTHWHILE`, or no larger one fits."""
    found: list[Rows] = []
    for size in _doubled(recipe):
        fitting = _largest(gpu, usable, recipe.but(prompts_per_step=size), prompt, completion)
        if fitting is None:
            break
        found.append(fitting)
        if len(found) > 1 and fitting.rate < WORTHWHILE * found[-2].rate:
            break
    return found


def _doubled(recipe: Recipe) -> Iterator[int]:
    size = recipe.prompts_per_step
    while recipe.method.rows(size, recipe.group_size) <= MOST_ROWS:
        yield size
        size *= 2


def _largest(gpu: GPU, usable: float, recipe: Recipe, prompt, completion) -> Rows | None:
    """The step with the largest micro-batch that fits, all rows first; None where none does."""
    all_at_once = work_of(recipe.but(micro_batch=None), prompt, completion)
    piece = all_at_once.rows
    while True:
        work = work_of(recipe.but(micro_batch=piece), prompt, completion)
        peak = memory_of(work).peak
        if peak <= usable:
            step = duration_of(work, gpu, usable - memory_of(work).resident).step
            rows = work.rows * work.minibatches
            return Rows(recipe.prompts_per_step, rows, piece, peak, total(step))
        if piece == 1:
            return None
        piece //= 2


def rows_table(found: Iterable[Rows]) -> Iterator[str]:
    """The sizes as lines of a plan."""
    heads = ("prompts_per_step", "rows", "micro_batch", "GB", "s a step", "rows/s")
    yield f"  {heads[0]:>16} {heads[1]:>6} {heads[2]:>12} {heads[3]:>6} {heads[4]:>9} {heads[5]:>7}"
    for one in found:
        yield (
            f"  {one.prompts_per_step:16} {one.rows:6} {one.micro_batch:12} "
            f"{one.peak / 1e9:6.1f} {one.seconds:9.2f} {one.rate:7.1f}"
        )
