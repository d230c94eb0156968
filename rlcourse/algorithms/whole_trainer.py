"""A trainer from sampling to update, in one function."""

import random
from collections.abc import Callable

import torch
from torch import Tensor


def train_policy(
    policy,
    questions: list[str],
    reward: Callable[[list[str], list[str]], Tensor],
    completions: int,
    seed: int,
) -> None:
    """Train the policy in place, from rewards alone, within a budget.

    It is judged by the weights that it leaves in `policy`: by how many held-out
    questions of the same kind this answers rightly, sampled at temperature 1 with at
    most 32 tokens. It may take 90 seconds of a processor.

    Args:
        policy: a language model, `rlcourse.policy.Policy`.
        questions: what it may be asked, about 1,000 of them, as users would type them.
        reward: takes N questions and N completions and returns N rewards, a tensor
            with 1 for a right completion and 0 for another. Each of the N costs one
            completion of the budget. A call for more than is left raises RuntimeError.
        completions: the budget, a few thousand.
        seed: of whatever it draws.
    """
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(
        policy.parameters(), betas=(0.9, 0.95), weight_decay=0.0
    )
    batch_size, lr, warmup = 64, 3e-4, 5
    for step in range(completions // batch_size):
        # Sample one answer to each of 64 questions, and ask what they are worth.
        asked = rng.choices(questions, k=batch_size)
        prompts = [policy.format_prompt(question) for question in asked]
        rollouts = policy.sample(prompts, max_tokens=32, generator=generator)
        rewards = reward(asked, policy.decode(rollouts))
        # REINFORCE: the log-prob of a completion, times its reward.
        logprobs = (policy.logprobs(rollouts) * rollouts.mask).sum(dim=1)
        loss = -(rewards * logprobs).mean()
        # One step; short at first, while AdamW's averages know little.
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = lr * min(1.0, (step + 1) / (warmup + 1))
        optimizer.step()
