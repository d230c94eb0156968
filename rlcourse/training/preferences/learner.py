"""Learning from comparisons: DPO trains the policy on them, a reward model predicts them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from rlcourse.evaluation import Interval
from rlcourse.policy.rollouts import Rollouts
from rlcourse.seeds import derived_seed
from rlcourse.tasks.problem import Task
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.functions.calling import call_by_name, call_for_tensor, call_loss
from rlcourse.training.learner import Learner, reference_for
from rlcourse.training.measuring.metrics import numbers
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.gradient_checkpointing import enable_gradient_checkpointing
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.networks.optimizer import adamw, autocast, optimizer_step, set_learning_rate
from rlcourse.training.networks.value_head import RewardModel
from rlcourse.training.online.pipeline import Carried
from rlcourse.training.preferences.pairs import Pair, held_out_pairs, training_pairs
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


def learner(
    policy,
    recipe: Recipe,
    task: Task,
    method: Method,
    reward: Callable | None = None,
    out: Path | None = None,
    progress: bool = False,
) -> Learner:
    """The learner of a method that learns from pairs: of a policy, or of a reward model."""
    carried = Carried.of(recipe, None, policy.device)
    pieces = (recipe.micro_batch, carried.scaler)
    pairs = training_pairs(policy, recipe, task, method, reward, out, progress)
    if method.trains_policy:
        module, model, accuracy = policy, None, None
        learning = MicroBatches(policy, *pieces)
        reference = reference_for(policy, recipe)
        learn = partial(
            learn_dpo, learning=learning, reference=reference, recipe=recipe, method=method
        )
    else:
        model = RewardModel.from_policy(policy, method.function("last_token_index"))
        module = model.reader
        if recipe.gradient_checkpointing:
            enable_gradient_checkpointing(module.model)
        held_out = held_out_pairs(policy, recipe, task, method, reward)
        accuracy = partial(pair_accuracy, model, held_out, recipe, method)
        learning = MicroBatches(module, *pieces)
        learn = partial(learn_rewards, model=model, learning=learning, recipe=recipe, method=method)
    optimizer = adamw(recipe, module)
    given = (learn, pairs, policy.device, optimizer, recipe)
    steps = partial(preference_steps, *given, scaler=carried.scaler)
    return Learner(module, optimizer, steps, model, accuracy, carried)


def preference_steps(
    learn: Callable[[list[Pair]], tuple[Tensor, dict]],
    pairs: Sequence[Pair],
    device: torch.device,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    first_step: int = 0,
    *,
    scaler: torch.amp.GradScaler,
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
            order = (recipe.prompts_per_step, step, recipe.seed, recipe.shuffle)
            loss, metrics = learn(problems_of_step(pairs, *order))
        metrics["grad_norm"] = optimizer_step([loss], optimizer, recipe, step, scaler).item()
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
        )
        return loss, chosen.detach(), rejected.detach()

    read = partial(shared_prompt_logprobs, policy)
    made = learning.backward(read, batch, loss_of)
    chosen, rejected = made.others
    reward = partial(
        call_for_tensor, method.function("implicit_rewards"), (len(pairs),), beta=recipe.beta
    )
    better = reward(logprobs=chosen, ref_logprobs=ref_chosen)
    worse = reward(logprobs=rejected, ref_logprobs=ref_rejected)
    return made.loss, compared(better, worse) | {"tokens": int(batch.mask.sum())}


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

    made = learning.backward(model.rewards, batch, loss_of)
    return made.loss, compared(*made.values.chunk(2)) | {"tokens": int(batch.mask.sum())}


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
