"""Our reward functions in TRL's signature: lists of completions and columns in, floats out."""

from collections.abc import Callable

import torch

from rlcourse.algorithms import overlong_penalty
from rlcourse.policy.prompts import opened_by
from rlcourse.tasks import FORMATS, Task, correctness_reward, length_reward
from rlcourse.training.recipes.settings import Recipe


def reward_functions(recipe: Recipe, task: Task) -> tuple[list[Callable], list[float]]:
    """The recipe's rewards and their weights. Their names are those of the metrics.

    Correctness is always among them, if only with weight 0: it is what a run reports.
    """

    def whole(prompts, completions):
        return [opened_by(prompts[0]) + text for text in completions]

    def correctness(prompts, completions, answer, **columns):
        return correctness_reward(whole(prompts, completions), answer, task.extract).tolist()

    def format(prompts, completions, **columns):
        return FORMATS[recipe.format](whole(prompts, completions)).tolist()

    def length(completion_ids, **columns):
        return length_reward(torch.tensor([len(ids) for ids in completion_ids])).tolist()

    def overlong(completion_ids, **columns):
        lengths = torch.tensor([len(ids) for ids in completion_ids])
        return overlong_penalty(lengths, recipe.max_tokens, recipe.overlong_buffer).tolist()

    functions: list[Callable] = [correctness]
    weights = [recipe.rewards["correctness"]]
    if recipe.rewards["format"]:
        functions.append(format)
        weights.append(recipe.rewards["format"])
    if recipe.rewards["length"]:
        functions.append(length)
        weights.append(recipe.rewards["length"])
    if recipe.method.uses("overlong_penalty") and recipe.overlong_buffer:
        functions.append(overlong)
        weights.append(1.0)
    return functions, weights
