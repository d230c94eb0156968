"""The models that can be built, and the recipe that each is trained by."""

from dataclasses import dataclass
from math import ceil

from rlcourse.errors import UserError
from rlcourse.training import Recipe

CONTEXT = 1024  # tokens that a model reads at most
TOKENS_PER_WEIGHT = 20  # Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models"
WARMUP = 0.03  # the share of all steps in which the learning rate rises
LONGEST_SOLUTION = 320  # tokens, in evaluation and in the recipe for GRPO


@dataclass(frozen=True)
class Size:
    """A Llama's shape, and how it is trained."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    vocabulary: int  # at most: a small corpus has fewer pieces
    rows: int  # documents in a step
    at_once: int  # of these, read together
    lr: float
    reads: str = "gsm8k"  # and generated problems; or "stories"
    longest: int = LONGEST_SOLUTION  # tokens of a completion


SIZES = {
    "smallest": Size(2, 96, 256, 4, vocabulary=1024, rows=32, at_once=8, lr=3e-3),
    "stories": Size(
        5, 128, 352, 4, vocabulary=1024, rows=16, at_once=16, lr=2e-3, reads="stories", longest=80
    ),
    "small": Size(6, 256, 704, 4, vocabulary=2048, rows=256, at_once=64, lr=2e-3),
    "medium": Size(8, 512, 1408, 8, vocabulary=4096, rows=256, at_once=64, lr=1e-3),
}


def size_named(name: str) -> Size:
    """The size of that name. Raises UserError where there is none."""
    if name not in SIZES:
        raise UserError(f"there is no size {name!r}: choose {', '.join(SIZES)}")
    return SIZES[name]


def recipe_of(size: Size, start: str, steps: int, settings: dict) -> Recipe:
    """Imitation from random weights: `steps` batches, warm-up and a cosine to zero.

    `start` is the directory of these weights; `settings` are the user's own.
    """
    values = {
        "algorithm": "sft",
        "policy": start,
        "steps": steps,
        "prompts_per_step": size.rows,
        "micro_batch": size.at_once,
        "lr": size.lr,
        "schedule": "cosine",
        "warmup": ceil(WARMUP * steps),
        "weight_decay": 0.01,
        "max_tokens": size.longest,
        "shuffle": False,  # the documents have their own order, see documents.py
        "eval_problems": 0,  # what came out is measured by build.py, on two tasks
        "checkpoint_every": max(10, min(500, steps // 20)),
    }
    return Recipe.of(values | settings)
