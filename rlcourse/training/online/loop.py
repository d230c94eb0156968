"""The training loop: sample → score → advantages → μ updates → metrics.

Every algorithm of the course runs through this page. What differs between them is one row of
``methods.METHODS``; what a run needs around it (checkpoints, evaluation, files) is in ``run.py``.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from rlcourse.policy.rollouts import Rollouts, truncated
from rlcourse.seeds import derived_generator, derived_seed
from rlcourse.tasks.problem import Task
from rlcourse.training.data.batches import minibatches, problems_of_step
from rlcourse.training.data.scoring import demonstrated, sampled, score, world_of
from rlcourse.training.functions.calling import call_estimator, call_step
from rlcourse.training.measuring.metrics import (
    Metrics,
    WeightSample,
    advantage_metrics,
    first_metrics,
    numbers,
    over_updates,
    rollout_metrics,
    stopped,
    update_metrics,
)
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.networks.optimizer import autocast, optimizer_step, set_learning_rate
from rlcourse.training.online.critic import critic_backward, with_values
from rlcourse.training.online.distilling import taught
from rlcourse.training.online.dynamic_sampling import (
    draw_enough,
    with_overlong_penalty,
    with_signal,
)
from rlcourse.training.online.objective import Objective
from rlcourse.training.online.off_policy import (
    scores_anew,
    weighed,
    with_old_policy,
)
from rlcourse.training.online.pipeline import Carried, renew
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe

KEPT = 1.0  # rejection sampling learns from completions of this reward or more


def training_steps(
    policy,
    reference,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    task: Task,
    method: Method,
    reward: Callable | None = None,
    first_step: int = 0,
    critic: nn.Module | None = None,
    carried: Carried | None = None,
    sampler=None,
    keep: Callable[[int, Rollouts], None] | None = None,
    teacher=None,
) -> Iterator[dict[str, float]]:
    """Train `policy` in place and yield the metrics of each step, from `first_step` on.

    `reference` is the frozen policy of the KL penalty, or None where ``recipe.beta`` is 0; `critic`
    is ppo's, `carried` what a checkpoint brought back; `sampler` draws the completions, by default
    `policy` itself; `keep` is shown each step's completions with their advantages; `teacher` is the
    frozen policy that a method with a teacher learns from.
    Raises ``UserError`` where a function that was passed in is unfinished or returns nonsense.
    """
    carried = carried or Carried.of(recipe, reference, policy.device)
    pieces = (recipe.micro_batch, carried.scaler)
    learning = MicroBatches(policy, *pieces)
    valuing = MicroBatches(critic, *pieces) if critic is not None else None
    precision = partial(autocast, policy.device, recipe.dtype)
    sampler = policy if sampler is None else sampler
    weights = WeightSample(policy)
    for step in range(first_step, recipe.steps):
        started = time.perf_counter()
        torch.manual_seed(derived_seed(recipe.seed, "torch", step))
        generator = derived_generator(policy.device, recipe.seed, "step", step)
        lr = set_learning_rate(optimizer, recipe, step)

        if recipe.reference_every and step and step % recipe.reference_every == 0:
            renew(reference, policy)

        with precision():
            if method.imitates:
                rollouts = demonstrations_of(policy, task, recipe, step)
                rewards: dict[str, torch.Tensor] = {}
            else:
                settings = (sampler, recipe, task, method, reward)
                sample = partial(batch_of, *settings, {step: generator})
                rollouts, rewards = carried.pipeline.batch_for(step, sample)
        sampling_seconds = time.perf_counter() - started
        metrics = rollout_metrics(rollouts, rewards, policy.eos_ids)

        if method.resamples and recipe.resample is not None:
            rollouts, facts = with_signal(rollouts, recipe, method)
            metrics |= facts
        rollouts, facts = with_overlong_penalty(rollouts, recipe, method)
        metrics |= facts
        with precision():
            if reference is not None:
                read = partial(shared_prompt_logprobs, reference)
                rollouts = replace(rollouts, ref_logprobs=learning.read(read, rollouts))
            if scores_anew(recipe, method):
                read = partial(shared_prompt_logprobs, policy)
                rollouts = with_old_policy(rollouts, learning.read(read, rollouts))
            if teacher is not None:
                read = partial(shared_prompt_logprobs, teacher)
                rollouts = replace(rollouts, teacher_logprobs=learning.read(read, rollouts))
            if not method.imitates:
                rollouts, facts = with_advantages(rollouts, valuing, recipe, method)
                metrics |= facts | advantage_metrics(rollouts, method)
                rollouts, facts = weighed(rollouts, recipe, method)
                metrics |= facts
        if keep is not None:
            keep(step + 1, rollouts)
        if method.keeps_rewarded and rollouts.rewards is not None:
            rollouts = rollouts.rows(rollouts.rewards >= KEPT)
            metrics["kept"] = len(rollouts)
        if recipe.overlong_filter:
            rollouts = rollouts.rows(~truncated(rollouts, policy.eos_ids))
            metrics["kept"] = len(rollouts)

        if method.step is not None:
            with precision(keep_rounded=False):
                metrics["loss"] = call_step(method.step, policy, optimizer, rollouts, recipe)
        else:
            parts = (learning, valuing, carried.scaler)
            metrics |= update(parts, optimizer, rollouts, recipe, method, generator, step)
        metrics["weights_changed"] = weights.changed()
        metrics = numbers(metrics)
        seconds = time.perf_counter() - started
        metrics |= {
            "step": step + 1,
            "lr": lr,
            "seconds": seconds,
            "seconds/sampling": sampling_seconds,
            "tokens_per_second": metrics["tokens"] / seconds,
        }
        yield metrics


def batch_of(policy, recipe, task, method, reward, generators, place):
    """The completions that step `place` learns from, and their rewards."""
    generator = generators.get(place) or derived_generator(
        policy.device, recipe.seed, "step", place
    )
    draw = partial(drawn, policy, recipe, task, reward, generator, place)
    again = method.resamples and recipe.resample is not None
    return draw_enough(draw, recipe, method) if again else draw()


def drawn(policy, recipe, task, reward, generator, step, attempt=0):
    """Completions of this step's problems (or of others, at another attempt), and their rewards."""
    place = step + attempt * recipe.steps
    problems = problems_of_step(
        task.train, recipe.prompts_per_step, place, recipe.seed, recipe.shuffle
    )
    rollouts = sampled(policy, problems, recipe, generator, world_of(recipe, task))
    return score(policy, rollouts, problems, recipe, task, reward)


def with_advantages(rollouts, critic, recipe, method) -> tuple[Rollouts, Metrics]:
    """The rollouts with their advantages: by the method's estimator, critic or teacher."""
    if critic is not None:
        rollouts, facts = with_values(critic, rollouts, recipe, method)
        return rollouts, {**facts}
    if method.taught:
        return taught(rollouts, recipe, method)
    scored = (rollouts.rewards, rollouts.mask, recipe.arguments())
    advantages = call_estimator(method.advantages, *scored, tokens=rollouts.tokens)
    return replace(rollouts, advantages=advantages), {}


def update(parts, optimizer, rollouts, recipe, method, generator, step) -> Metrics:
    """μ passes over the rollouts in minibatches, one optimizer step each; the mean metrics."""
    learning, critic, scaler = parts
    objective = Objective(method, recipe)
    read = partial(objective.read, learning.network)
    updates: list[Metrics] = []
    for batch in minibatches(rollouts, recipe, generator):
        # πθ is still the πold that sampled
        first = not updates and not method.imitates and not recipe.sampler_staleness
        keep = not recipe.gradient_checkpointing  # copies of all weights would undo what it saves
        with autocast(batch.tokens.device, recipe.dtype, keep):
            loss_of = partial(objective.loss, batch=batch)
            made = learning.backward(read, batch, loss_of, first and objective.skips_rows)
            error = critic and critic_backward(critic, batch, recipe, method)
        losses = [made.loss] if error is None else [made.loss, error]
        norm = optimizer_step(losses, optimizer, recipe, step, scaler)
        logprobs, clip_fraction = objective.logprobs(made.values), made.others[0]
        facts = update_metrics(made.loss, norm, logprobs, batch, recipe, method, clip_fraction)
        if first:
            learned = objective.logprobs(made.gradient).ne(0)
            learned |= stopped(logprobs, batch, recipe, method)
            facts |= first_metrics(logprobs, batch, made.rows, learned, learning.network.eos_ids)
        updates.append(facts | ({} if error is None else {"value_loss": error}))
    return over_updates(updates)


def demonstrations_of(policy, task: Task, recipe: Recipe, step: int) -> Rollouts:
    """The demonstrations of this step. Imitation is REINFORCE with a reward of 1 for each."""
    demonstrations = task.train if task.demonstrations is None else task.demonstrations
    problems = problems_of_step(
        demonstrations, recipe.prompts_per_step, step, recipe.seed, recipe.shuffle
    )
    rollouts = demonstrated(policy, problems, recipe, task)
    ones = torch.ones(len(rollouts), device=rollouts.mask.device)
    return replace(rollouts, rewards=ones, advantages=ones)
