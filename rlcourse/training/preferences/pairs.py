"""Pairs of completions, the better one first, and where they come from.

They come from a file, or the starting policy answers every question several times and the reward
says which answers are better. Pairs are text, as in every preference data set; each completion is
closed with EOS when it is read.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from rlcourse.bars import bar
from rlcourse.errors import UserError
from rlcourse.files import write_text
from rlcourse.seeds import derived_generator
from rlcourse.tasks.problem import Problem, Task
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.data.scoring import sampled, score
from rlcourse.training.functions.calling import call_by_name
from rlcourse.training.networks.optimizer import autocast
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


@dataclass(frozen=True)
class Pair:
    """Two completions of a question, the better one first. A line of ``pairs.jsonl``."""

    prompt: str
    chosen: str
    rejected: str


def training_pairs(
    policy,
    recipe: Recipe,
    task: Task,
    method: Method,
    reward: Callable | None = None,
    out: Path | None = None,
    progress: bool = False,
) -> list[Pair]:
    """The pairs to train on: from ``recipe.pairs``, or sampled and kept in ``out/pairs.jsonl``.

    Raises:
        UserError: the file cannot be used, or no question got answers of different worth.
    """
    if recipe.pairs is not None:
        pairs = read_pairs(recipe.pairs)
        if not method.trains_policy:
            pairs = [pair for pair in pairs if not is_held_out(pair)]
        if not pairs:
            raise UserError(f"{recipe.pairs} holds too few pairs: one prompt in eight is held out")
        return pairs
    kept = out / "pairs.jsonl" if out else None
    if kept is not None and kept.exists():
        return read_pairs(kept)
    count = min(recipe.questions, len(task.train))
    problems = problems_of_step(task.train, count, 0, recipe.seed, recipe.shuffle)
    pairs = sampled_pairs(policy, problems, recipe, task, method, reward, progress=progress)
    if not pairs:
        raise UserError(
            f"all completions of each of the {len(problems)} questions earned the same, so there "
            "is nothing to compare: raise questions, group_size or temperature"
        )
    if kept is not None:
        write_pairs(kept, pairs)
    return pairs


def held_out_pairs(
    policy, recipe: Recipe, task: Task, method: Method, reward: Callable | None = None
) -> list[Pair]:
    """Pairs that are never trained on: of the task's evaluation problems, or one in eight."""
    if recipe.pairs is not None:
        return [p for p in read_pairs(recipe.pairs) if is_held_out(p)]
    problems = task.evaluation[: recipe.eval_problems]
    return sampled_pairs(policy, problems, recipe, task, method, reward, purpose="held-out pairs")


def is_held_out(pair: Pair) -> bool:
    """Whether a pair is kept for evaluation: one prompt in eight, always the same ones."""
    return sha256(pair.prompt.encode()).digest()[0] % 8 == 0


def sampled_pairs(
    policy,
    problems: Sequence[Problem],
    recipe: Recipe,
    task: Task,
    method: Method,
    reward: Callable | None = None,
    purpose: str = "pairs",
    progress: bool = False,
) -> list[Pair]:
    """What ``preference_pairs`` makes of ``recipe.group_size`` completions of each problem."""
    generator = derived_generator(policy.device, recipe.seed, purpose)
    pairs = []
    starts = range(0, len(problems), recipe.prompts_per_step)
    for start in bar(starts, desc=purpose, leave=False, disable=not progress):
        some = list(problems[start : start + recipe.prompts_per_step])
        with autocast(policy.device, recipe.dtype):
            rollouts = sampled(policy, some, recipe, generator)
            rollouts, _ = score(policy, rollouts, some, recipe, task, reward)
        texts = policy.decode(rollouts)
        indices = call_by_name(
            method.function("preference_pairs"),
            "the function",
            rewards=rollouts.rewards,
            group_size=recipe.group_size,
        )
        for chosen, rejected in _checked_indices(indices, len(rollouts)):
            question = some[chosen // recipe.group_size].question
            pairs.append(Pair(question, texts[chosen], texts[rejected]))
    return pairs


def _checked_indices(indices, n: int) -> list[list[int]]:
    """Rows (chosen, rejected) as numbers. Raises ``UserError`` if they are not (n_pairs, 2) long"""
    fits = isinstance(indices, Tensor) and indices.ndim == 2 and indices.shape[1] == 2
    if not fits or indices.dtype != torch.long:
        raise UserError(
            "the function preference_pairs must return pairs of row numbers, (n, 2) long"
        )
    if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < n:
        raise UserError(f"the function preference_pairs returned a row outside 0 … {n - 1}")
    return indices.tolist()


def write_pairs(path: str | Path, pairs: Sequence[Pair]) -> None:
    """One JSON object a line, with prompt, chosen and rejected."""
    lines = [json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs]
    write_text(Path(path), "".join(lines))


def read_pairs(path: str | Path) -> list[Pair]:
    """The pairs of a JSONL file whose lines hold the texts prompt, chosen and rejected.

    The prompt is the bare question; the policy's own chat template is put around it.

    Raises:
        UserError: no such file, no pairs in it, or a line that cannot be used; it says which.
    """
    path = Path(path).expanduser()
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the pairs {path} cannot be read: {error}") from None
    pairs = [_pair(line, f"{path}, line {i}") for i, line in enumerate(lines, 1) if line.strip()]
    if not pairs:
        raise UserError(f"{path} holds no pairs: put one JSON object on each line")
    return pairs


def _pair(line: str, place: str) -> Pair:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"{place} is not JSON ({error}): fix or remove it") from None
    row = row if isinstance(row, dict) else {}
    texts = [row.get(name) for name in ("prompt", "chosen", "rejected")]
    texts = [text for text in texts if isinstance(text, str)]
    if len(texts) < 3:
        raise UserError(f"{place} must hold the texts prompt, chosen, rejected: fix or remove it")
    return Pair(*texts)
