"""Evaluations of what is trained: before, after, and along the way."""

import shutil
from collections.abc import Callable

from rlcourse.evaluation import (
    Evaluation,
    Interval,
    evaluate_policy,
    greedy_accuracy,
    read_evaluation,
)
from rlcourse.files import write_json
from rlcourse.tasks.problem import Task
from rlcourse.tasks.rewards import FORMATS
from rlcourse.training.data.scoring import world_of
from rlcourse.training.networks.optimizer import autocast
from rlcourse.training.recipes.settings import Recipe


def evaluation_of(policy, recipe, task, out, when: str, progress: bool) -> Evaluation | None:
    """The evaluation before or after training, read back if an earlier attempt wrote it."""
    if recipe.eval_problems == 0 or not recipe.method.trains_policy:
        return None
    if out and (out / f"evaluation_{when}.json").exists():
        return read_evaluation(out / f"evaluation_{when}.json")
    going_on = out and out / f"evaluation_{when}"  # where it is kept until it is finished
    with autocast(policy.device, recipe.eval_dtype or recipe.dtype):
        evaluation = evaluate_policy(
            policy,
            task.evaluation[: recipe.eval_problems],
            recipe.eval_samples,
            recipe.eval_temperature,
            max_tokens=recipe.max_tokens,
            extract=task.extract,
            format_reward=FORMATS[recipe.format] if recipe.rewards["format"] else None,
            system=recipe.system,
            top_k=recipe.eval_top_k,
            top_p=recipe.eval_top_p,
            seed=recipe.seed,
            progress=progress,
            out=going_on,
            resume=True,
            world=world_of(recipe, task),
        )
    if out:
        write_json(out / f"evaluation_{when}.json", evaluation.to_dict())
        shutil.rmtree(going_on)
    return evaluation


def held_out_metrics(
    policy,
    recipe: Recipe,
    task: Task,
    pair_accuracy: Callable[[], Interval | None] | None = None,
) -> dict[str, float]:
    """The current quality of what is trained, as a metric: `pair_accuracy`, or the task's."""
    if pair_accuracy is not None:
        name, interval = "eval/pair_accuracy", pair_accuracy()
    else:
        problems = task.evaluation[: recipe.eval_problems or 200]
        with autocast(policy.device, recipe.eval_dtype or recipe.dtype):
            share = greedy_accuracy(
                policy,
                problems,
                recipe.max_tokens,
                task.extract,
                recipe.system,
                world=world_of(recipe, task),
            )
        right = round(share * len(problems))
        scores = [1.0] * right + [0.0] * (len(problems) - right)
        name, interval = "eval/accuracy", Interval.of(scores)
    if interval is None:
        return {}
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
