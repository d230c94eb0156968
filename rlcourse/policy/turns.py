"""Episodes of several turns: who speaks in them, how they are played, and how they become a batch.

Everything is a list of token ids, kept as it was drawn or read. For the environment, ids are turned
into text; the text that the policy wrote is never turned back into ids, because a word can be cut
into tokens in several ways, and a tokenizer produces only one of them.

`rollout_env` of lesson 14 plays. Recipes play through `World` (``training/data/scoring.py``,
``evaluation/solving.py``), the lesson by ``training/episodes.py``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jinja2 import TemplateError
from torch import Tensor

from rlcourse.algorithms import action_mask, rollout_env
from rlcourse.policy.model import Policy
from rlcourse.policy.rollouts import Rollouts

Episode = list[tuple[str, list[int], list[float]]]  # turns, as `rollout_env` has them
SOLVED = 1.0  # an episode paid so much, or more, counts as a problem solved
MARK = "†"  # stands for a turn of the policy when a template is asked what follows one


class Speaker:
    """`policy` and how it draws: at most `max_tokens` per turn, at `temperature`, from `generator`.

    `system` is put before an episode's first words; `top_k` and `top_p` narrow what is drawn.

    What an environment says becomes a message of the user, with everything that the model's chat
    template puts around it, including the beginning of the policy's next turn.
    """

    def __init__(
        self,
        policy: Policy,
        max_tokens: int = 16,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        system: str | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
    ):
        self.policy, self.system = policy, system
        self.drawn: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}
        self.drawn |= {"top_k": top_k, "top_p": top_p, "generator": generator}
        self.before, self.after = self._around_observations()

    def prompt(self, words: str) -> list[int]:
        """The ids of an episode's first words, as the policy reads them."""
        prompt = self.policy.format_prompt(words, self.system)
        return self.policy.encode_prompts([prompt])[0][0].tolist()

    def observation(self, words: str) -> list[int]:
        """The ids of what the environment says later on."""
        return self.encode(f"{self.before}{words}{self.after}")

    def encode(self, text: str) -> list[int]:
        """A text cut into tokens, with nothing added."""
        return self.policy.tokenizer(text, add_special_tokens=False)["input_ids"]

    def text(self, tokens: list[int]) -> str:
        """The words of a turn, without EOS and other special tokens."""
        return self.policy.tokenizer.decode(tokens, skip_special_tokens=True)

    def write(self, contexts: list[list[int]]) -> list[tuple[list[int], list[float]]]:
        """The policy's next turn after each context: its ids, EOS included, and their log-probs.

        Log-probs are in nats at `temperature`, or at 1 where it is 0 (greedy). A turn of
        `max_tokens` may have no EOS. Raises UserError if the context is full.
        """
        drawn = self.policy.complete(*self.policy.pad(contexts, left=True), **self.drawn)
        lengths = drawn.mask.sum(1).tolist()
        rows = zip(drawn.tokens.tolist(), drawn.old_logprobs.tolist(), lengths, strict=True)
        return [(tokens[:n], logprobs[:n]) for tokens, logprobs, n in rows]

    def demonstrated(self, environment, turns: Sequence[str]) -> Episode:
        """The episode in which a program wrote these turns: the environment answers them."""
        episode: Episode = [("environment", self.prompt(environment.reset()), [])]
        for text in turns:
            tokens = [*self.encode(text), self.policy.tokenizer.eos_token_id]
            episode.append(("policy", tokens, [0.0] * len(tokens)))
            observation, _, done = environment.step(text)
            if not done:
                episode.append(("environment", self.observation(observation), []))
        return episode

    def told(self, episode: Episode) -> str:
        """An episode's words without the question, an arrow before those of the environment."""
        lines = [
            f"→ {self._observed(ids)}" if author == "environment" else self.text(ids).strip()
            for author, ids, _ in episode[1:]
        ]
        return "\n".join(lines)

    def _observed(self, ids: list[int]) -> str:
        before, after = (len(self.encode(mark)) for mark in (self.before, self.after))
        return self.text(ids[before : len(ids) - after] or ids).strip()

    def _around_observations(self) -> tuple[str, str]:
        """What the chat template writes between two turns of the policy, around a user's words."""
        tokenizer = self.policy.tokenizer
        if not tokenizer.chat_template:
            return "\n", "\n"
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": MARK},
            {"role": "user", "content": MARK},
        ]
        try:
            text = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self.policy.template
            )
            _, between, after = text.split(MARK)
        except (TemplateError, ValueError):
            return "\n", "\n"
        return between.removeprefix(tokenizer.eos_token or ""), after


@dataclass(frozen=True)
class World:
    """Where a task's problems answer back: `make` makes the environment of one."""

    make: Callable[[Any], Any]  # of a problem → `rlcourse.tasks.Environment`
    max_turns: int

    def play(self, speaker: Speaker, problems: Sequence, times: int) -> tuple[list, Tensor]:
        """`times` episodes of each problem, side by side, and their rewards (N,)."""
        environments = [self.make(problem) for problem in problems for _ in range(times)]
        return rollout_env(speaker, environments, self.max_turns)


def side_by_side(policy: Policy, episodes: Sequence[Episode]) -> tuple[Tensor, Tensor, Tensor]:
    """All turns of each episode as a row: tokens, which of them are read, and log-probs (N, T).

    Log-probs are 0 on what the environment wrote.
    """
    tokens, read = policy.pad(
        [[t for _, ids, _ in turns for t in ids] for turns in episodes], left=False
    )
    old = torch.zeros(tokens.shape)
    for row, turns in zip(old, episodes, strict=True):
        drawn = [p for _, ids, logprobs in turns for p in logprobs or [0.0] * len(ids)]
        row[: len(drawn)] = torch.tensor(drawn)
    return tokens, read, old.to(policy.device)


def rows_of(
    policy: Policy, episodes: list[Episode], group_size: int = 1, temperature: float = 1.0
) -> Rollouts:
    """Episodes as a batch: the prompt of a row is the question, all later turns are its tokens.

    ``mask`` says which of them the policy wrote, ``read_mask`` which it reads: also what the
    environment said.
    """
    prompt_tokens, prompt_mask = policy.pad([turns[0][1] for turns in episodes], left=True)
    later = [turns[1:] for turns in episodes]
    tokens, read, old = side_by_side(policy, later)
    return Rollouts(
        prompt_tokens,
        prompt_mask,
        tokens,
        mask=action_mask(later).to(policy.device),
        old_logprobs=old,
        group_size=group_size,
        temperature=temperature,
        read_mask=read,
    )
