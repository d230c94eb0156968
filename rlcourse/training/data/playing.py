"""Episodes of several turns as a batch: played in the task's environments, or demonstrated.

The prompt of a row is the question; all later turns are its tokens. ``mask`` says which of them the
policy wrote, ``read_mask`` which it reads: also what the environment said.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from rlcourse.algorithms import action_mask
from rlcourse.errors import UserError
from rlcourse.evaluation.playing import Episode, World
from rlcourse.policy import Speaker
from rlcourse.policy.rollouts import Rollouts
from rlcourse.tasks.problem import Task
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


def world_of(recipe: Recipe, task: Task) -> World | None:
    """Where the task's problems answer back; None where they do not."""
    return World(task.environment, recipe.max_turns) if task.environment else None


def played(policy, problems: Sequence, world: World, recipe: Recipe, generator) -> Rollouts:
    """`recipe.group_size` episodes of each problem, with what the environment paid as rewards."""
    speaker = Speaker(
        policy,
        recipe.max_tokens,
        recipe.temperature,
        generator,
        system=recipe.system,
        top_k=recipe.top_k,
        top_p=recipe.top_p,
    )
    episodes, rewards = world.play(speaker, problems, recipe.group_size)
    rollouts = rows_of(policy, episodes, recipe.group_size, recipe.temperature)
    return replace(rollouts, rewards=rewards.to(rollouts.mask.device))


def demonstrated(policy, shown: Sequence, recipe: Recipe, task: Task) -> Rollouts:
    """A row for each demonstration: its answer, or the episode that a program would have played."""
    world = world_of(recipe, task)
    if world is None:
        prompts = [policy.format_prompt(p.question, system=recipe.system) for p in shown]
        return policy.demonstrations(prompts, [p.answer for p in shown])
    speaker = Speaker(policy, recipe.max_tokens, system=recipe.system)
    return rows_of(policy, [demonstrated_episode(speaker, each, world.make) for each in shown])


def demonstrated_episode(speaker: Speaker, shown, make) -> Episode:
    """What a program's turns would have been as an episode: the environment answers them."""
    environment = make(shown.problem)
    episode: Episode = [("environment", speaker.prompt(environment.reset()), [])]
    for text in shown.turns:
        tokens = speaker.demonstrated(text)
        episode.append(("policy", tokens, [0.0] * len(tokens)))
        observation, _, done = environment.step(text)
        if not done:
            episode.append(("environment", speaker.observation(observation), []))
    return episode


def rows_of(
    policy, episodes: list[Episode], group_size: int = 1, temperature: float = 1.0
) -> Rollouts:
    """Episodes as rows. Log-probs are 0 on what the environment wrote."""
    prompt_tokens, prompt_mask = policy.pad([turns[0][1] for turns in episodes], left=True)
    later = [turns[1:] for turns in episodes]
    tokens, read = policy.pad([[t for _, ids, _ in turns for t in ids] for turns in later], False)
    old = torch.zeros(tokens.shape)
    for row, turns in zip(old, later, strict=True):
        drawn = [p for _, ids, logprobs in turns for p in logprobs or [0.0] * len(ids)]
        row[: len(drawn)] = torch.tensor(drawn)
    return Rollouts(
        prompt_tokens,
        prompt_mask,
        tokens,
        mask=action_mask(later).to(policy.device),
        old_logprobs=old.to(policy.device),
        group_size=group_size,
        temperature=temperature,
        read_mask=read,
    )


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
