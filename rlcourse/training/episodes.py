"""Training in environments: play → pack → advantages → one update, on a page.

The loop of `loop.py` for episodes of several turns, without recipes and checkpoints: what differs
is who wrote a token. The functions of lesson 14 come in as arguments, so a notebook passes its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlcourse.algorithms import (
    action_mask,
    dapo_loss,
    group_normalized_advantages,
    masked_mean,
    rollout_env,
    sft_loss,
)
from rlcourse.errors import UserError
from rlcourse.policy.model import Policy
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.turns import Episode, Speaker, side_by_side
from rlcourse.seeds import derived_generator
from rlcourse.tasks.calculator import CalculatorEnvironment, Demonstration
from rlcourse.tasks.environment import Environment
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.minimal import adamw, descend, ramp

MakeEnvironment = Callable[[Any], Environment]  # of one problem
Advantages = Callable[[Rollouts, Tensor, Tensor], Tensor]  # (rollouts, rewards, mask) → (N[, T])
LONGEST = 4  # turns of one episode
WARMUP = 5  # steps in which the learning rate rises


def packed_episodes(
    policy: Policy, episodes: list[Episode], mask_of: Callable[[list], Tensor] = action_mask
) -> tuple[Rollouts, Tensor]:
    """Episodes as a batch, and the mask (N, T) of what is learned from.

    There are two masks. `rollouts.mask` is what the model *reads*: every token that is not padding,
    the environment's included. The second one, `mask_of`'s, is what it *wrote*. The prompt of the
    batch is the first token alone, so that all the rest, questions too, is in its T columns;
    `old_logprobs` are 0 where the environment wrote.

    Raises:
        UserError: `mask_of` does not return one entry for each token.
    """
    tokens, read, old = side_by_side(policy, episodes)
    wrote = mask_of(episodes)
    if wrote.shape != tokens.shape:
        raise UserError(
            f"The mask of these episodes has shape {tuple(wrote.shape)}: it must have one entry "
            f"for each token, {tuple(tokens.shape)}."
        )
    first, rest = slice(0, 1), slice(1, None)
    rollouts = Rollouts(
        prompt_tokens=tokens[:, first],
        prompt_mask=read[:, first],
        tokens=tokens[:, rest],
        mask=read[:, rest],
        old_logprobs=old[:, rest],
        group_size=1,
    )
    return rollouts, wrote[:, rest].to(policy.device)


def imitate_episodes(
    policy: Policy,
    demonstrations: Sequence[Demonstration],
    make: MakeEnvironment = CalculatorEnvironment,
    *,
    steps: int = 60,
    rows: int = 48,
    lr: float = 2e-3,
    seed: int = 0,
    mask_of: Callable[[list], Tensor] = action_mask,
) -> None:
    """Supervised fine-tuning in place on the turns that a program wrote, and on these alone."""
    speaker, optimizer = Speaker(policy), adamw(policy)
    episodes = [speaker.demonstrated(make(each.problem), each.turns) for each in demonstrations]
    for step in range(steps):
        batch = problems_of_step(episodes, rows, step, seed)
        rollouts, mask = packed_episodes(policy, batch, mask_of)
        loss = sft_loss(policy.logprobs(rollouts), mask)
        descend(loss, policy, optimizer, lr * ramp(step, WARMUP))


def train_episodes(
    policy: Policy,
    problems: Sequence,
    make: MakeEnvironment = CalculatorEnvironment,
    *,
    steps: int = 20,
    prompts_per_step: int = 8,
    group_size: int = 8,
    lr: float = 5e-4,
    max_turns: int = LONGEST,
    max_tokens: int = 16,
    seed: int = 0,
    rollout: Callable = rollout_env,
    mask_of: Callable[[list], Tensor] = action_mask,
    advantages_of: Advantages | None = None,
    loss_of: Callable[..., Tensor] = dapo_loss,
) -> Iterator[dict[str, float]]:
    """Train `policy` in place and yield the metrics of each step.

    `make` turns a problem into an environment; each problem is played `group_size` times. By
    default advantages are GRPO's, of the episodes' rewards. `loss_of(logprobs, old_logprobs,
    advantages, mask)` is minimized, with one update for each batch.

    Raises:
        UserError: an environment or one of the functions returned something it should not.
    """
    optimizer = adamw(policy)
    for step in range(steps):
        chosen = problems_of_step(problems, prompts_per_step, step, seed)
        environments = [make(problem) for problem in chosen for _ in range(group_size)]
        generator = derived_generator(policy.device, seed, "episodes", step)
        speaker = Speaker(policy, max_tokens, generator=generator)
        episodes, rewards = rollout(speaker, environments, max_turns)
        rollouts, mask = packed_episodes(policy, episodes, mask_of)
        if advantages_of is None:
            advantages = group_normalized_advantages(rewards, group_size)
        else:
            advantages = advantages_of(rollouts, rewards, mask)
        logprobs = policy.logprobs(rollouts)
        # The environment's tokens were not drawn: a mask that counts them gets a ratio of 1.
        drawn = rollouts.old_logprobs != 0
        rollouts = replace(
            rollouts, old_logprobs=torch.where(drawn, rollouts.old_logprobs, logprobs.detach())
        )
        loss = loss_of(logprobs, rollouts.old_logprobs, advantages.to(policy.device), mask)
        descend(loss, policy, optimizer, lr * ramp(step, WARMUP))
        yield {
            "step": step + 1,
            "reward": rewards.mean().item(),
            "advantage": masked_mean(_columns(advantages).to(mask.device) + 0 * mask, mask).item(),
            "turns": sum(author == "policy" for e in episodes for author, _, _ in e)
            / len(episodes),
            "tokens": int(mask.sum()),
            "episodes": len(episodes) * (step + 1),
        }


@torch.no_grad()
def evaluate_episodes(
    policy: Policy,
    problems: Sequence,
    make: MakeEnvironment = CalculatorEnvironment,
    *,
    samples: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    max_turns: int = LONGEST,
    max_tokens: int = 16,
    rollout: Callable = rollout_env,
) -> float:
    """The mean reward of `samples` episodes in each problem's environment, greedy by default."""
    generator = derived_generator(policy.device, seed, "evaluation")
    speaker = Speaker(policy, max_tokens, temperature=temperature, generator=generator)
    environments = [make(problem) for problem in problems for _ in range(samples)]
    _, rewards = rollout(speaker, environments, max_turns)
    return rewards.mean().item()


def _columns(advantages: Tensor) -> Tensor:
    return advantages[:, None] if advantages.dim() == 1 else advantages
