"""Lesson 01: a language model is a policy.

The state is the prefix, the action is the next token, and the policy is πθ(token |
prefix). Reinforcement learning needs two operations of it: *sample* a completion,
and *score* one, log πθ(y | x) = Σ_t log πθ(y_t | x, y_<t). Everything here works on
plain tensors, so it is the same for a toy table and for a transformer.
"""

import torch
from torch import Tensor


def sample_tokens(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw one next token per row: logits (N, V) → (N,) long.

    Temperature divides the logits; 0 means greedy. `top_k` keeps the k likeliest
    tokens (all, if there are no more), `top_p` the fewest likeliest tokens whose
    probability reaches p, the one that crosses the threshold included. All randomness
    comes from `generator`, or from torch's own where it is None.
    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration",
    section 3.1 (nucleus).
    """
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits / temperature
    if top_k is not None:
        kth_largest = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < kth_largest, -torch.inf)
    if top_p is not None:
        ordered, order = logits.sort(descending=True)
        probs = ordered.softmax(dim=-1)
        mass_before = probs.cumsum(dim=-1) - probs
        ordered = ordered.masked_fill(mass_before >= top_p, -torch.inf)
        ordered[:, 0] = logits.max(dim=-1).values  # the likeliest token always stays
        logits = torch.zeros_like(logits).scatter(-1, order, ordered)
    probs = logits.softmax(dim=-1)
    return torch.multinomial(probs, num_samples=1, generator=generator).squeeze(-1)


def token_logprobs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-probability of each token given those before it.

    (N, L, V), (N, L) → (N, L−1) nats. The logits at position t score the token at
    t+1, so the first token has no score and the last logits are not used. The
    temperature must be the one the tokens were sampled with: it is part of the
    policy.
    """
    logprobs = (logits[:, :-1] / temperature).log_softmax(dim=-1)
    return logprobs.gather(dim=-1, index=tokens[:, 1:, None]).squeeze(-1)


def completion_mask(tokens: Tensor, eos_id: int) -> Tensor:
    """Which tokens belong to the completion.

    (N, T) → (N, T) bool, up to and including the first EOS. The EOS counts: ending
    is an action that the policy chose. A row without EOS was cut off and counts
    whole.
    """
    is_eos = (tokens == eos_id).long()
    eos_before = is_eos.cumsum(dim=1) - is_eos
    return eos_before == 0


def token_entropy(logits: Tensor) -> Tensor:
    """Entropy of the next-token distribution: (N, L, V) → (N, L) nats."""
    logprobs = logits.log_softmax(dim=-1)
    return -(logprobs.exp() * logprobs).sum(dim=-1)


def masked_mean(x: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Mean of x where the mask is 1, over `dim` or everything; 0 for an empty mask.

    The mask may be bool or float, and the gradient is finite also where it is empty.
    """
    total = x.masked_fill(~mask.bool(), 0).sum(dim=dim)
    count = mask.to(x.dtype).sum(dim=dim)
    return total / count.clamp(min=1)


def sft_loss(logprobs: Tensor, mask: Tensor) -> Tensor:
    """Negative log-likelihood in nats per token, over all real tokens of the batch.

    (N, T), (N, T) → scalar, 0 where there are none.
    """
    return -masked_mean(logprobs, mask)


def returns_to_go(rewards: Tensor, mask: Tensor, gamma: float = 1.0) -> Tensor:
    """The return that each token can still influence: (N, T), (N, T) → (N, T).

    G_t = r_t + γ r_{t+1} + γ² r_{t+2} + …, over real tokens; 0 on padding.
    Source: Sutton and Barto 2018, eq. 3.8 and 3.9.
    """
    rewards = rewards.masked_fill(~mask.bool(), 0)
    future = torch.zeros_like(rewards[:, 0])
    returns = []
    for reward in reversed(rewards.unbind(dim=1)):
        future = reward + gamma * future
        returns.append(future)
    return torch.stack(returns[::-1], dim=1).masked_fill(~mask.bool(), 0)
