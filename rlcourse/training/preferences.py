"""Learning from comparisons: DPO trains the policy on them, a reward model learns to make them.

A pair is a question and two completions, the better one first. It comes from a file, or the
starting policy answers every question several times and the reward says which answers are better.
Pairs are text, as in every preference data set; each completion is closed with EOS when it is read.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from rlcourse.bars import bar
from rlcourse.errors import UserError
from rlcourse.evaluation import Interval
from rlcourse.files import write_text
from rlcourse.policy.rollouts import Rollouts
from rlcourse.seeds import derived_generator, derived_seed
from rlcourse.tasks.problem import Problem, Task
from rlcourse.training.batches import problems_of_step
from rlcourse.training.calling import call_by_name, call_for_tensor, call_loss
from rlcourse.training.forward import shared_prompt_logprobs
from rlcourse.training.methods import Method
from rlcourse.training.metrics import numbers
from rlcourse.training.micro_batches import MicroBatches
from rlcourse.training.optimizer import autocast, optimizer_step, set_learning_rate
from rlcourse.training.recipe import Recipe
from rlcourse.training.scoring import sampled, score
from rlcourse.training.value_head import RewardModel


@dataclass(frozen=True)
class Pair:
    """Two completions of a question, the better one first. A line of ``pairs.jsonl``."""

    prompt: str
    chosen: str
    rejected: str


def preference_steps(
    learn: Callable[[list[Pair]], tuple[Tensor, dict]],
    pairs: Sequence[Pair],
    device: torch.device,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    first_step: int = 0,
) -> Iterator[dict[str, float]]:
    """Train on `prompts_per_step` pairs a step and yield its metrics, from `first_step` on.

    `learn` from a list of pairs leaves the gradient of its loss in the weights, and returns the
    loss and what to report with it.
    """
    for step in range(first_step, recipe.steps):
        started = time.perf_counter()
        torch.manual_seed(derived_seed(recipe.seed, "torch", step))
        lr = set_learning_rate(optimizer, recipe, step)
        with autocast(device, recipe.dtype, keep_rounded=not recipe.gradient_checkpointing):
            loss, metrics = learn(
                problems_of_step(pairs, recipe.prompts_per_step, step, recipe.seed)
            )
        metrics["grad_norm"] = optimizer_step([loss], optimizer, recipe, step).item()
        seconds = time.perf_counter() - started
        metrics |= {"loss": loss.item(), "step": step + 1, "lr": lr, "seconds": seconds}
        yield metrics | {"tokens_per_second": metrics["tokens"] / seconds}


# DPO


def learn_dpo(
    pairs: Sequence[Pair], learning: MicroBatches, reference, recipe: Recipe, method: Method
) -> tuple[Tensor, dict[str, float]]:
    """DPO's loss of some pairs, its gradient left in the policy, and the implicit rewards: of
    chosen, of rejected, their margin."""
    policy = learning.network
    batch = as_rows(pairs, policy, recipe)
    total = partial(call_for_tensor, method.function("sequence_logprobs"), (len(batch),))
    read_reference = partial(shared_prompt_logprobs, reference)
    ref_logprobs = total(logprobs=learning.read(read_reference, batch), mask=batch.mask)
    ref_chosen, ref_rejected = ref_logprobs.chunk(2)

    def loss_of(logprobs: Tensor):
        chosen, rejected = total(logprobs=logprobs, mask=batch.mask).chunk(2)
        loss, _ = call_loss(
            method.loss,
            of="chosen_logprobs",
            chosen_logprobs=chosen,
            rejected_logprobs=rejected,
            ref_chosen_logprobs=ref_chosen,
            ref_rejected_logprobs=ref_rejected,
            beta=recipe.beta,
            label_smoothing=recipe.label_smoothing,
        )
        return loss, chosen.detach(), rejected.detach()

    read = partial(shared_prompt_logprobs, policy)
    loss, _, chosen, rejected = learning.backward(read, batch, loss_of)
    reward = partial(
        call_for_tensor, method.function("implicit_rewards"), (len(pairs),), beta=recipe.beta
    )
    better = reward(logprobs=chosen, ref_logprobs=ref_chosen)
    worse = reward(logprobs=rejected, ref_logprobs=ref_rejected)
    return loss, compared(better, worse) | {"tokens": int(batch.mask.sum())}


def as_rows(pairs: Sequence[Pair], policy, recipe: Recipe) -> Rollouts:
    """The pairs as one batch: first all chosen completions, then all rejected ones."""
    prompts = [policy.format_prompt(pair.prompt, system=recipe.system) for pair in pairs]
    completions = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
    batch = policy.demonstrations(prompts + prompts, completions)
    return replace(batch, temperature=recipe.temperature)


def compared(chosen: Tensor, rejected: Tensor) -> dict[str, float]:
    """What is reported of rewards (n,) of chosen and rejected completions."""
    return numbers(
        {
            "rewards/chosen": chosen.mean(),
            "rewards/rejected": rejected.mean(),
            "rewards/margins": (chosen - rejected).mean(),
            "rewards/accuracies": (chosen > rejected).float().mean(),
        }
    )


# Reward models


def learn_rewards(
    pairs: Sequence[Pair],
    model: RewardModel,
    learning: MicroBatches,
    recipe: Recipe,
    method: Method,
) -> tuple[Tensor, dict[str, float]]:
    """The Bradley–Terry loss of some pairs, its gradient left in the model, and how far their
    rewards are apart."""
    questions = [pair.prompt for pair in pairs]
    completions = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
    batch = model.batch(questions + questions, completions, recipe.system)

    def loss_of(rewards: Tensor):
        chosen, rejected = rewards.chunk(2)
        return call_loss(method.loss, of="chosen", chosen=chosen, rejected=rejected)

    loss, rewards, _ = learning.backward(model.rewards, batch, loss_of)
    return loss, compared(*rewards.chunk(2)) | {"tokens": int(batch.mask.sum())}


def pair_rewards(
    model: RewardModel, pairs: Sequence[Pair], system: str | None = None
) -> tuple[Tensor, Tensor]:
    """The model's rewards of the chosen and of the rejected completions, (n,) each."""
    questions = [pair.prompt for pair in pairs]
    chosen = model(questions, [pair.chosen for pair in pairs], system)
    return chosen, model(questions, [pair.rejected for pair in pairs], system)


def pair_accuracy(
    model: RewardModel, pairs: Sequence[Pair], recipe: Recipe, method: Method
) -> Interval | None:
    """Share of `pairs` that the model puts in the right order; None where there are no pairs."""
    if not pairs:
        return None
    with autocast(model.device, recipe.dtype):
        chosen, rejected = pair_rewards(model, pairs, recipe.system)
    accuracy = method.function("reward_accuracy")
    share = call_by_name(accuracy, "the function", chosen=chosen, rejected=rejected)
    interval = Interval.of((chosen > rejected).float().tolist())
    return replace(interval, value=float(share))


# Pairs


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
    problems = problems_of_step(task.train, min(recipe.questions, len(task.train)), 0, recipe.seed)
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
    """Whether a file's pair is kept for evaluation: one prompt in eight, always the same ones."""
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
        UserError: no such file, no pairs in it, or a line that cannot be used; it is named.
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
        raise UserError(f"{place} is not JSON ({error}): mend or remove it") from None
    row = row if isinstance(row, dict) else {}
    texts = [row.get(name) for name in ("prompt", "chosen", "rejected")]
    texts = [text for text in texts if isinstance(text, str)]
    if len(texts) < 3:
        raise UserError(f"{place} must hold the texts prompt, chosen, rejected: mend or remove it")
    return Pair(*texts)
