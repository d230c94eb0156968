"""Episodes of several turns in TRL's trainer: our own player, and our environments as TRL's.

There are two ways. A recipe whose task is an environment is played by `rollout_function`, which
TRL calls in place of its own sampling: turns are texts, drawn and kept as tokens, and ``env_mask``
tells TRL which of them the policy wrote. A program of your own that trains a chat model with
tool calls can hand `ToolEnvironment` to TRL's ``environment_factory`` instead.
"""

import itertools
from collections.abc import Callable
from typing import Any

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.seeds import derived_generator
from rlcourse.tasks import Environment, Problem, Reply, Task
from rlcourse.training.data.scoring import speaker_of, world_of
from rlcourse.training.recipes.settings import Recipe

PAID = "paid"  # the column in which rewards find what an episode earned
OVER = "The episode is over."


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


class ToolEnvironment:
    """One of our environments in the form that TRL's ``environment_factory`` takes.

    ``reset`` begins an episode from a row of the data, ``step`` is the one tool, and ``get_reward``
    the sum of what was paid. OpenEnv's environments are wrapped in the same way: theirs, too,
    are reset and stepped, and answer with an observation, a reward and whether they are done::

        GRPOTrainer(..., environment_factory=lambda: ToolEnvironment(CalculatorEnvironment))

    A row's columns ``question`` and ``answer`` are the problem.
    """

    def __init__(self, make: Callable[[Problem], Environment]):
        self._make = make
        self._environment: Environment | None = None
        self._reply = Reply("")
        self._paid = 0.0

    def reset(self, question: str = "", answer: str = "", **row) -> str:
        """Begin an episode: its first words, which TRL appends to the prompt."""
        self._environment = self._make(Problem(question, answer))
        self._reply, self._paid = Reply(""), 0.0
        return self._environment.reset()

    def step(self, text: str) -> str:
        """Say something to the environment, and read what it answers.

        Args:
            text: A call such as "12 * 17", or the final answer such as "#### 204".

        Returns:
            What the environment answers.
        """
        if self._environment is None:
            raise UserError("No episode is running: call reset() first.")
        if self._reply.done:
            return OVER
        self._reply = self._environment.step(str(text))
        self._paid += self._reply.reward
        return OVER if self._reply.done else self._reply.observation

    def get_reward(self) -> float:
        """What the environment has paid in this episode."""
        return self._paid
