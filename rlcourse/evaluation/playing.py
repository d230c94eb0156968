"""Episodes in place of completions: a policy plays the environments of problems, and is paid."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from rlcourse.algorithms import rollout_env
from rlcourse.policy import Speaker
from rlcourse.tasks import Environment

Episode = list[tuple[str, list[int], list[float]]]
SOLVED = 1.0  # an episode paid so much, or more, counts as a problem solved


class Written(NamedTuple):
    """What was written for a problem, and what is known of it."""

    text: str
    length: int  # tokens that the policy wrote
    cut: bool  # whether it was cut off
    paid: float | None = None  # of an episode, its reward; a completion is judged by its text


@dataclass(frozen=True)
class World:
    """Where a task's problems answer back: `make` makes the environment of one."""

    make: Callable[[Any], Environment]
    max_turns: int

    def play(
        self, speaker: Speaker, problems: Sequence, times: int
    ) -> tuple[list[Episode], torch.Tensor]:
        """`times` episodes of each problem, side by side, and their rewards (N,)."""
        environments = [self.make(problem) for problem in problems for _ in range(times)]
        return rollout_env(speaker, environments, self.max_turns)


def shown(speaker: Speaker, episode: Episode) -> str:
    """An episode's words without the question, an arrow before those of the environment."""
    lines = [
        f"→ {_words(speaker, ids)}" if author == "environment" else speaker.text(ids).strip()
        for author, ids, _ in episode[1:]
    ]
    return "\n".join(lines)


def _words(speaker: Speaker, ids: list[int]) -> str:
    around = [speaker.encode(mark) for mark in (speaker.before, speaker.after)]
    inside = ids[len(around[0]) : len(ids) - len(around[1])]
    return speaker.text(inside).strip() if inside else speaker.text(ids).strip()


def played(speaker: Speaker, world: World, problems: Sequence, times: int) -> list[list[Written]]:
    """Play each problem `times` times: what was written, one list for each problem."""
    episodes, rewards = world.play(speaker, problems, times)
    ends = set(speaker.policy.eos_ids)
    rows = []
    for episode, reward in zip(episodes, rewards.tolist(), strict=True):
        turns = [ids for author, ids, _ in episode if author == "policy"]
        cut = not turns or not turns[-1] or turns[-1][-1] not in ends
        rows.append(Written(shown(speaker, episode), sum(map(len, turns)), cut, reward))
    return [rows[i : i + times] for i in range(0, len(rows), times)]
