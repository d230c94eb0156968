"""Episodes of several turns in TRL's trainer, which calls our player in place of its own sampling.

Turns are texts, drawn and kept as tokens; ``env_mask`` tells TRL which of them the policy wrote.
"""

import itertools
from collections.abc import Callable
from typing import Any

from rlcourse.policy import Policy
from rlcourse.seeds import derived_generator
from rlcourse.tasks import Task
from rlcourse.training.data.scoring import speaker_of, world_of
from rlcourse.training.recipes.settings import Recipe

PAID = "paid"  # the column in which rewards find what an episode earned


def rollout_function(policy: Policy, recipe: Recipe, task: Task, updates: int) -> Callable:
    """What TRL is to call for completions, ``rollout_func(prompts, trainer)``.

    An episode is TRL's completion: all turns after the question. `policy` has the prompts' form,
    and a step of the recipe has that many optimizer `updates`. With one process the episodes are
    those of the local engine, which draws from the same generator.
    """
    world = world_of(recipe, task)
    assert world is not None, "only a task with an environment is played"
    asked: dict[str, Any] = {
        policy.format_prompt(problem.question, system=recipe.system): problem
        for problem in task.train
    }

    def play(prompts: list[str], trainer) -> dict[str, list]:
        accelerator = trainer.accelerator
        model = accelerator.unwrap_model(trainer.model)
        player = Policy(model, trainer.processing_class)
        step, rank = trainer.state.global_step // updates, accelerator.process_index
        where = ("step", step) if accelerator.num_processes == 1 else ("step", step, "rank", rank)
        generator = derived_generator(player.device, recipe.seed, *where)
        speaker = speaker_of(player, recipe, generator)
        episodes, rewards = world.play(speaker, [asked[prompt] for prompt in prompts], 1)
        found: dict[str, list] = {"prompt_ids": [], "completion_ids": [], "logprobs": []}
        found |= {"env_mask": [], PAID: rewards.tolist()}
        for (_, question, _), *turns in episodes:
            found["prompt_ids"].append(question)
            found["completion_ids"].append(_joined(ids for _, ids, _ in turns))
            found["logprobs"].append(_joined(drawn or [0.0] * len(ids) for _, ids, drawn in turns))
            found["env_mask"].append(
                _joined([int(author == "policy")] * len(ids) for author, ids, _ in turns)
            )
        return found

    return play


def _joined(lists) -> list:
    return list(itertools.chain.from_iterable(lists))
