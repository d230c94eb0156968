"""The rows of a step and their rewards: completions, episodes, or demonstrations.

Completions are paid the recipe's weighted sum, or by a function that was passed in; episodes by the
environments that they are played in.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.errors import UserError
from rlcourse.policy import Speaker
from rlcourse.policy.prompts import opened_by
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.turns import SOLVED, World, rows_of
from rlcourse.tasks.problem import Problem, Task
from rlcourse.tasks.rewards import FORMATS, correctness_reward, length_reward
from rlcourse.training.functions.calling import call_reward
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


def world_of(recipe: Recipe, task: Task) -> World | None:
    """Where the task's problems answer back; None where they do not."""
    return World(task.environment, recipe.max_turns) if task.environment else None


def speaker_of(policy, recipe: Recipe, generator) -> Speaker:
    """Who plays the episodes that `recipe` learns from."""
    return Speaker(
        policy,
        recipe.max_tokens,
        recipe.temperature,
        generator,
        system=recipe.system,
        top_k=recipe.top_k,
        top_p=recipe.top_p,
    )


def sampled(
    policy, problems: Sequence[Problem], recipe: Recipe, generator, world: World | None = None
) -> Rollouts:
    """`recipe.group_size` completions of each problem, with the log-probs they were sampled at.

    In a `world` they are episodes, which have their rewards.
    """
    if world is not None:
        speaker = speaker_of(policy, recipe, generator)
        episodes, rewards = world.play(speaker, problems, recipe.group_size)
        rollouts = rows_of(policy, episodes, recipe.group_size, recipe.temperature)
        return replace(rollouts, rewards=rewards.to(rollouts.mask.device))
    prompts = [policy.format_prompt(p.question, system=recipe.system) for p in problems]
    return policy.sample(
        prompts,
        group_size=recipe.group_size,
        max_tokens=recipe.max_tokens,
        temperature=recipe.temperature,
        top_k=recipe.top_k,
        top_p=recipe.top_p,
        generator=generator,
    )


def demonstrated(policy, shown: Sequence, recipe: Recipe, task: Task) -> Rollouts:
    """A row for each demonstration: its answer, or the episode that a program would have played."""
    if task.environment is None:
        prompts = [policy.format_prompt(p.question, system=recipe.system) for p in shown]
        opening = opened_by(prompts[0])
        return policy.demonstrations(prompts, [p.answer.removeprefix(opening) for p in shown])
    speaker = Speaker(policy, system=recipe.system)
    made = [(task.environment(each.problem), each.turns) for each in shown]
    return rows_of(policy, [speaker.demonstrated(*each) for each in made])


def score(
    policy,
    rollouts: Rollouts,
    problems: list[Problem],
    recipe: Recipe,
    task: Task,
    reward: Callable | None = None,
) -> tuple[Rollouts, dict[str, Tensor]]:
    """The rollouts with their rewards (N,), and each part of the reward by name, unweighted.

    A `reward` that is passed in replaces the recipe's weighted sum; it may name
    ``completions``, ``answers`` (reference solutions), ``questions`` (lists of N strings),
    ``system``, ``extract`` and ``mask``. Correctness is measured either way, to compare a proxy
    with it.
    """
    if task.environment is not None:
        assert rollouts.rewards is not None, "episodes are paid while they are played"
        paid = rollouts.rewards * recipe.rewards["correctness"]
        solved = (rollouts.rewards >= SOLVED).float().cpu()
        return replace(rollouts, rewards=paid), {"correctness": solved}
    opening = opened_by(policy.format_prompt(problems[0].question, system=recipe.system))
    completions = [opening + text for text in policy.decode(rollouts)]
    repeated = [problem for problem in problems for _ in range(rollouts.group_size)]
    answers = [problem.answer for problem in repeated]
    parts = {"correctness": correctness_reward(completions, answers, task.extract)}
    if reward is not None:
        total = parts["custom"] = call_reward(
            reward,
            completions=completions,
            answers=answers,
            questions=[problem.question for problem in repeated],
            system=recipe.system,
            extract=task.extract,
            mask=rollouts.mask,
        )
    else:
        if recipe.rewards["format"]:
            parts["format"] = FORMATS[recipe.format](completions)
        if recipe.rewards["length"]:
            parts["length"] = length_reward(rollouts.mask.sum(1)).cpu()
        total = sum(recipe.rewards[name] * part for name, part in parts.items())
    rewards = torch.as_tensor(total, device=rollouts.mask.device)
    return replace(rollouts, rewards=rewards), parts


def require_playable(recipe: Recipe, method: Method, reward, task: Task) -> None:
    """Raise ``UserError`` for what has no meaning where an environment plays and pays."""
    if task.environment is None:
        return
    name = task.name
    if method.compares_pairs or method.critic:
        reason = "compares completions" if method.compares_pairs else "has a critic"
        raise UserError(
            f"{recipe.algorithm} {reason}, and {name} is played in turns: use grpo, rloo or distill"
        )
    judged = [key for key, weight in recipe.rewards.items() if weight and key != "correctness"]
    if reward is not None or judged or recipe.extract:
        what = "reward=" if reward is not None else f"rewards.{judged[0]}" if judged else "extract"
        raise UserError(f"the environment of {name} pays its own rewards: remove {what}")
    for key in ("overlong_buffer", "fault"):
        if key in recipe.settings() and getattr(recipe, key):
            raise UserError(f"{key} is about single completions, and {name} has turns: remove it")
    if method.imitates and not all(hasattr(d, "turns") for d in task.demonstrations or [None]):
        raise UserError(f"{name} has no demonstrations with turns to imitate: use grpo, or rloo")
