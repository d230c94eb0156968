"""Lesson 02: the policy gradient.

The objective is the expected reward, J(θ) = E_{y∼πθ}[R(y)]. Sampling is not
differentiable, but its probability is:

    ∇J(θ) = E_{y∼πθ}[ R(y) ∇ log πθ(y) ]

(Williams 1992, theorem 1), so the average of R(y) ∇ log πθ(y) over sampled
completions is an unbiased estimate of the gradient.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def score_function(logits: Tensor, action: int | Tensor) -> Tensor:
    """∇ log π(action) with respect to the logits of a softmax: (V,), int → (V,).

    One-hot minus π: raise the chosen logit, lower every logit by its probability.
    Source: Sutton and Barto 2018, exercise 13.3.
    """
    probs = logits.softmax(dim=-1)
    chosen = torch.zeros_like(probs)
    chosen[action] = 1
    return chosen - probs


def exact_policy_gradient(logits: Tensor, rewards: Tensor) -> Tensor:
    """∇ E[R] of a softmax bandit with respect to its logits: (V,), (V,) → (V,).

    A bandit is one choice and one reward, `rewards[a]` for action a.
    π ⊙ (R − π·R): an action gains in proportion to its probability and to how far
    it beats the average.
    Source: Sutton and Barto 2018, section 2.8, "The Bandit Gradient Algorithm as
    Stochastic Gradient Ascent".
    """
    probs = logits.softmax(dim=-1)
    return probs * (rewards - probs @ rewards)


def monte_carlo_policy_gradient(
    logits: Tensor, rewards: Tensor, actions: Tensor
) -> Tensor:
    """Estimate of ∇ E[R] from n sampled actions: (V,), (V,), (n,) long → (V,).

    The mean of R(a) ∇ log π(a). Unbiased when the actions were drawn from
    softmax(logits); its error falls as 1/√n.
    Source: Williams 1992, theorem 1.
    """
    probs = logits.softmax(dim=-1)
    scores = F.one_hot(actions, num_classes=len(logits)) - probs  # (n, V)
    return (rewards[actions, None] * scores).mean(dim=0)


def reinforce_loss(logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    """The loss whose gradient is minus the policy gradient.

    (N, T), (N,), (N, T) → scalar. −(1/N) Σ_i A_i Σ_t log πθ(y_{i,t}): the log-prob
    of a completion is the *sum* over its real tokens. Its weight A_i is the reward
    here; from lesson 03 on it is the reward less a baseline, the advantage. Gradient
    flows through `logprobs` alone. The value of this loss means nothing; only its
    gradient does.
    Source: Williams 1992, theorem 1; Sutton and Barto 2018, section 13.3.
    """
    completion_logprobs = logprobs.masked_fill(~mask.bool(), 0).sum(dim=1)
    return -(advantages.detach() * completion_logprobs).mean()


def reinforce_step(policy, optimizer, batch, max_grad_norm: float = 1.0) -> float:
    """One REINFORCE update of the policy in place; returns the loss as a float.

    `policy.logprobs(batch)` scores the sampled completions under the current
    parameters, (N, T), with gradient; `batch.rewards` is (N,) and `batch.mask` (N,
    T). The parameters' `.grad` may hold something from before, which does not count.
    The gradient of all parameters together is clipped to norm `max_grad_norm`.
    """
    optimizer.zero_grad()
    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
    optimizer.step()
    return loss.item()
