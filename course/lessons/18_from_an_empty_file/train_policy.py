from functools import cache

import torch

from rlcourse.checks.judging.contest import Contest, World
from rlcourse.policy.undecided import undecided
from rlcourse.tasks import extract_answer
from rlcourse.tasks.dialects import dialect, known_beforehand

MOST_KNOWN = 0.5  # a variant on which more can be had without training is passed over


@cache
def world(variant):
    """The dialect of a variant: the first, from its number on, that cannot be known beforehand."""
    for seed in range(1_000 * variant, 1_000 * variant + 1_000):
        task = dialect(seed, train_size=1_000)
        if known_beforehand(task.evaluation) <= MOST_KNOWN:
            break
    return World(
        problems={problem.question: problem.answer for problem in task.train},
        held_out={problem.question: problem.answer for problem in task.evaluation},
        floor=known_beforehand(task.evaluation),
    )


def right(completion, answer):
    return extract_answer(completion) == extract_answer(answer)


contest = Contest(
    world=world,
    right=right,
    policy=undecided,
    start="undecided",
    completions=6_144,
    seconds=90,
    levels=((0.60, 0.7), (0.65, 1.0)),
)
cases, alternatives = contest.cases, ()


# Trainers with one thing wrong; a twelfth of the budget shows it.


def short(policy, questions, reward, seed, weigh, steps, lr=3e-4):
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=lr, weight_decay=0.0)
    for step in range(steps):
        asked = questions[64 * step : 64 * step + 64]
        prompts = [policy.format_prompt(question) for question in asked]
        rollouts = policy.sample(prompts, max_tokens=32, generator=generator)
        weights = weigh(reward(asked, policy.decode(rollouts)))
        loss = -(weights * policy.logprobs(rollouts).sum(dim=1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def turned(policy, questions, reward, completions, seed):
    short(policy, questions, reward, seed, lambda rewards: -rewards, min(8, completions // 64))


def unchanged(policy, questions, reward, completions, seed):
    short(policy.clone(), questions, reward, seed, lambda rewards: rewards, 2)


def greedy_spender(policy, questions, reward, completions, seed):
    for start in range(0, completions + 1, 1_024):
        reward(questions[:1], ["#### 1"]) if start else None
        reward(questions[:1] * 1_024, ["#### 1"] * 1_024)


def broken(policy, questions, reward, completions, seed):
    short(policy, questions, reward, seed, lambda rewards: rewards / 0.0, 1)
