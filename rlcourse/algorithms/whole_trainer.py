"""A trainer from the choice of questions to the step, in one function."""

import random


def train_policy(policy, questions: list[str], completions: int, seed: int) -> None:
    """Train the policy from rewards of its own answers, within a budget.

    The policy's weights stay with the judge, who also draws its answers. It is judged
    by how many held-out questions of the same kind it answers rightly afterwards,
    sampled at temperature 1 with at most 32 tokens. This may take 90 seconds of a
    processor, the judge's work for you included.

    Args:
        policy: what it can do:
            `policy.answer(questions, group_size=1)` lets it write `group_size` answers
            to each question, at most 256 in one call. Each costs one completion of the
            budget; a call for more than is left raises RuntimeError. The result has
            `texts`, `tokens` (N, T), `mask` (N, T), True where the policy wrote,
            `old_logprobs` (N, T), and `rewards` (N,), 1 for a right answer, else 0;
            `policy.logprobs(answers)` are log-probs (N, T) of these answers under the
            present policy, 0 on padding; gradients flow through it;
            `policy.step(lr, max_norm=1.0)` takes one AdamW step with the gradient that
            `loss.backward()` left, clipped to this length, and clears it.
        questions: what it may be asked, about 1,000 of them, as users would type them.
        completions: the budget, a few thousand.
        seed: of whatever you draw.
    """
    rng = random.Random(seed)
    batch_size, lr, warmup = 64, 3e-4, 5
    for step in range(completions // batch_size):
        # One answer to each of 64 questions, with its reward.
        answers = policy.answer(rng.choices(questions, k=batch_size))
        # REINFORCE: the log-prob of an answer, times its reward.
        logprobs = (policy.logprobs(answers) * answers.mask).sum(dim=1)
        loss = -(answers.rewards * logprobs).mean()
        # One step; short at first, while AdamW's averages know little.
        loss.backward()
        policy.step(lr * min(1.0, (step + 1) / (warmup + 1)))
