"""GRPO from top to bottom on one page: ``python -m rlcourse.training.minimal``.

Nothing of the trainer is used here, only what lessons 01 to 06 write. The reference stays the
policy after imitation, where the paper updates it from time to time. β is 0 by default, and then
there is no second model in memory. Each completion is averaged over its own tokens, as in the paper
(lesson 07 questions that). A batch is used once, so the clip never acts; with num_iterations=4 it
does. ``rlcourse train grpo`` gives the same weights. It adds what a long run needs: recipes,
metrics, checkpoints, reports, memory for large models, and a forward pass that skips rows without
signal.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.nn.utils import clip_grad_norm_

from rlcourse.algorithms import group_normalized_advantages, grpo_loss, sft_loss
from rlcourse.policy import Policy
from rlcourse.seeds import derived_generator
from rlcourse.tasks import Task, correctness_reward, load_task


def imitate(policy: Policy, task: Task, steps=60, rows=64, lr=1e-3, warmup=5, seed=0) -> None:
    """Supervised fine-tuning in place: make the demonstrated answers likely (lesson 01)."""
    optimizer = adamw(policy)
    problems = shuffled(task.demonstrations or task.train, seed)
    for step in range(steps):
        batch = list(itertools.islice(problems, rows))
        prompts = [policy.format_prompt(problem.question) for problem in batch]
        texts = policy.demonstrations(prompts, [problem.answer for problem in batch])
        loss = sft_loss(policy.logprobs(texts), texts.mask)
        descend(loss, policy, optimizer, lr * ramp(step, warmup))


def train_grpo(
    policy: Policy,
    task: Task,
    steps: int = 100,
    prompts_per_step: int = 16,
    group_size: int = 8,
    max_tokens: int = 64,
    num_iterations: int = 1,
    lr: float = 3e-4,
    warmup: int = 5,
    clip: float = 0.2,
    beta: float = 0.0,
    seed: int = 0,
) -> Iterator[float]:
    """Group relative policy optimization in place; yields the mean reward of every step.

    Source: Shao et al. 2024 (DeepSeekMath), algorithm 1.
    """
    reference = policy.clone(frozen=True) if beta > 0 else None
    optimizer = adamw(policy)
    problems = shuffled(task.train, seed)
    for step in range(steps):
        # Sample: G completions of each question, with the log-probs they were drawn at (πold).
        batch = list(itertools.islice(problems, prompts_per_step))
        rollouts = policy.sample(
            [policy.format_prompt(problem.question) for problem in batch],
            group_size=group_size,
            max_tokens=max_tokens,
            generator=derived_generator(policy.device, seed, "step", step),
        )
        # Reward: 1 for a right answer, 0 for another.
        answers = [problem.answer for problem in batch for _ in range(group_size)]
        rewards = correctness_reward(policy.decode(rollouts), answers, task.extract)
        # Compare: within its group a completion is better or worse than its siblings.
        advantages = group_normalized_advantages(rewards, group_size).to(policy.device)
        anchor = rollouts.old_logprobs if reference is None else reference.logprobs(rollouts)
        rollouts = replace(rollouts, advantages=advantages, ref_logprobs=anchor)
        # Update: πθ moves, everything else stays as it was sampled.
        for _ in range(num_iterations):
            loss = grpo_loss(
                policy.logprobs(rollouts),
                rollouts.old_logprobs,
                rollouts.ref_logprobs,
                rollouts.advantages,
                rollouts.mask,
                clip,
                beta,
            )
            descend(loss, policy, optimizer, lr * ramp(step, warmup))
        yield rewards.mean().item()


def descend(loss: torch.Tensor, policy: Policy, optimizer, lr: float) -> None:
    """One optimizer step down the loss, the gradient no longer than 1."""
    optimizer.zero_grad()
    loss.backward()
    clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.param_groups[0]["lr"] = lr
    optimizer.step()


def adamw(policy: Policy) -> torch.optim.AdamW:
    return torch.optim.AdamW(policy.parameters(), betas=(0.9, 0.95), weight_decay=0.0, fused=True)


def ramp(step: int, warmup: int) -> float:
    """The learning rate rises over the first steps, while AdamW's averages are still poor."""
    return min(1.0, (step + 1) / (warmup + 1))


def shuffled(problems, seed: int) -> Iterator:
    """All problems, again and again, each epoch in a new order."""
    for epoch in itertools.count():
        order = list(range(len(problems)))
        random.Random(f"{seed}/epoch/{epoch}").shuffle(order)
        yield from (problems[i] for i in order)


if __name__ == "__main__":
    policy, task = Policy.load("tiny"), load_task("word_problems", seed=0)
    imitate(policy, task)
    for step, reward in enumerate(train_grpo(policy, task), 1):
        print(f"step {step:3}  reward {reward:.2f}")
