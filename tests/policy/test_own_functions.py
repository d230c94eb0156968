"""A subclass of Policy draws and scores with functions of its own, as lesson 01 does."""

import torch

from rlcourse.algorithms import sample_tokens, token_logprobs
from rlcourse.policy import Policy


class Counting(Policy):
    calls = {"drawn": 0, "scored": 0}  # noqa: RUF012  (shared by the copies on purpose)

    @staticmethod
    def sample_tokens(logits, **options):
        Counting.calls["drawn"] += 1
        return sample_tokens(logits, **options)

    @staticmethod
    def token_logprobs(logits, tokens, temperature=1.0):
        Counting.calls["scored"] += 1
        return token_logprobs(logits, tokens, temperature)


def test_own_functions_draw_and_score_and_survive_a_clone():
    policy = Counting.load("tiny", device="cpu").clone()
    assert isinstance(policy, Counting)
    prompts = [policy.format_prompt("Leo has 3 pens. How many?")]
    rollouts = policy.sample(prompts, max_tokens=5, generator=torch.Generator().manual_seed(0))
    assert Counting.calls["drawn"] == rollouts.tokens.shape[1]
    logprobs = policy.logprobs(rollouts)
    assert Counting.calls["scored"] == 1
    torch.testing.assert_close(logprobs, rollouts.old_logprobs, atol=1e-4, rtol=1e-4)
