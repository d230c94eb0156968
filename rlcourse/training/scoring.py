"""Completions and their rewards: the recipe's weighted sum, or a function that was passed in."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.policy.rollouts import Rollouts
from rlcourse.tasks.problem import Problem, Task
from rlcourse.tasks.rewards import FORMATS, correctness_reward
from rlcourse.training.calling import call_reward
from rlcourse.training.recipe import Recipe


def sampled(policy, problems: list[Problem], recipe: Recipe, generator) -> Rollouts:
    """`recipe.group_size` completions of each problem, with the log-probs they were sampled at."""
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


def score(
    policy,
    rollouts: Rollouts,
    problems: list[Problem],
    recipe: Recipe,
    task: Task,
    reward: Callable | None = None,
) -> tuple[Rollouts, dict[str, Tensor]]:
    """The rollouts with their rewards (N,), and each part of the reward by name, unweighted.

    A `reward` that is passed in takes the place of the recipe's weighted sum; it may name
    ``completions``, ``answers`` (reference solutions), ``questions`` (lists of N strings),
    ``system``, ``extract`` and ``mask``. Correctness is measured either way, to compare a proxy
    with it.
    """
    completions = policy.decode(rollouts)
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
        total = sum(recipe.rewards[name] * part for name, part in parts.items())
    rewards = torch.as_tensor(total, device=rollouts.mask.device)
    return replace(rollouts, rewards=rewards), parts
