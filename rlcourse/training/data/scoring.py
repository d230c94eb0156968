"""Completions and their rewards: the recipe's weighted sum, or a function that was passed in."""

import sys
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from tqdm.std import tqdm

from rlcourse.evaluation.playing import SOLVED, World
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.static_decoding import NoMemoryForGraph
from rlcourse.tasks.problem import Problem, Task
from rlcourse.tasks.rewards import FORMATS, correctness_reward, length_reward
from rlcourse.training.data.playing import played
from rlcourse.training.functions.calling import call_reward
from rlcourse.training.recipes.settings import Recipe


def sampled(
    policy, problems: list[Problem], recipe: Recipe, generator, world: World | None = None
) -> Rollouts:
    """`recipe.group_size` completions of each problem, with the log-probs they were sampled at.

    In a `world` they are episodes, which have their rewards.

    If there is too little memory for a CUDA graph, they are drawn without one, now and later.
    """
    if world is not None:
        return played(policy, problems, world, recipe, generator)
    state = generator.get_state()
    try:
        return _drawn(policy, problems, recipe, generator)
    except NoMemoryForGraph:
        pass  # tried again outside this block, where the error holds no tensors alive
    policy.static_cache = False
    generator.set_state(state)
    torch.cuda.empty_cache()
    tqdm.write(
        "rlcourse: too little memory for a CUDA graph; sampling continues without one "
        "(static_cache=false starts there)",
        file=sys.stderr,
    )
    return _drawn(policy, problems, recipe, generator)


def _drawn(policy, problems: list[Problem], recipe: Recipe, generator) -> Rollouts:
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
        if recipe.rewards["length"]:
            parts["length"] = length_reward(rollouts.mask.sum(1)).cpu()
        total = sum(recipe.rewards[name] * part for name, part in parts.items())
    rewards = torch.as_tensor(total, device=rollouts.mask.device)
    return replace(rollouts, rewards=rewards), parts
