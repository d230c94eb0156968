"""The most bytes that a GPU is asked for: a large vocabulary's logits are never there at once."""

from functools import partial

import pretended_gpu
import pytest
import torch
from small_models import small_model, small_tokenizer

from rlcourse.policy import Policy, large_vocabulary
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.networks.optimizer import autocast

WORDS, ROWS, TOKENS = 8000, 8, 40
ALL = 4 * WORDS * ROWS * (TOKENS + 1)  # bytes of all logits in float32


def peak(at_once, dtype, monkeypatch, learning):
    """Bytes on top of what was there before, of an update or of scoring."""
    monkeypatch.setattr(large_vocabulary, "AT_ONCE", at_once)
    policy = Policy(small_model("llama", vocab_size=WORDS).cuda(), small_tokenizer())
    drawn = torch.randint(3, WORDS, (ROWS, TOKENS + 5), device="cuda")
    seen = torch.ones_like(drawn, dtype=torch.bool)
    batch = Rollouts(
        drawn[:, :5], seen[:, :5], drawn[:, 5:], seen[:, 5:], torch.zeros(ROWS, TOKENS).cuda(), 1
    )
    before = pretended_gpu.allocated()
    read = partial(shared_prompt_logprobs, policy)
    with pretended_gpu.counted() as found, autocast("cuda", dtype):
        if learning:
            MicroBatches(policy).backward(read, batch, lambda logprobs: (logprobs.sum(),))
        else:
            MicroBatches(policy).read(read, batch)
    return found.peak - before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("learning", [False, True])
def test_logits_of_a_large_vocabulary_are_not_there_at_once(dtype, learning, monkeypatch):
    at_once = peak(10**9, dtype, monkeypatch, learning)
    in_pieces = peak(WORDS * (TOKENS + 1), dtype, monkeypatch, learning)
    assert at_once > 2 * ALL
    assert in_pieces < at_once - 1.5 * ALL
    assert in_pieces < 1.2 * ALL
