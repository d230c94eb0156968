"""Lesson 04: importance sampling, and KL divergence.

An expectation under P can be taken with samples from Q, if each is weighted by how
much likelier it is under P: E_P[f] = E_Q[(P/Q) f]. That lets one batch of rollouts
serve several updates. The weights degrade as the policies part; the KL divergence
measures how far they have come.
"""

import torch
from torch import Tensor


def importance_weights(
    logprobs: Tensor, old_logprobs: Tensor, mask: Tensor, level: str = "token"
) -> Tensor:
    """πθ/πold of the sampled tokens → (N, T), or of whole completions → (N,).

    Computed as exp of a difference of log-probs, (N, T) each, so that nothing
    underflows. `level` is "token" or "sequence" (the product over a completion's
    real tokens). Padding, which may hold any number, and empty completions weigh 0.
    Differentiable in `logprobs` only. Raises ValueError for another level.
    """
    log_ratio = (logprobs - old_logprobs.detach()).masked_fill(~mask.bool(), 0)
    if level == "token":
        return log_ratio.exp().masked_fill(~mask.bool(), 0)
    if level == "sequence":
        return log_ratio.sum(dim=1).exp().masked_fill(~mask.bool().any(dim=1), 0)
    raise ValueError(f'level must be "token" or "sequence", not {level!r}')


def effective_sample_size(weights: Tensor) -> Tensor:
    """How many equally weighted samples n weighted ones are worth.

    (n,) → scalar, (Σw)² / Σw². n when all weights are equal, 1 when one holds
    everything, 0 when all are 0. Weights may be as large as 1e25 in float32: scale
    them first. Source: Kong 1992.
    """
    weights = weights / weights.max().clamp(min=torch.finfo(weights.dtype).tiny)
    return weights.sum().square() / weights.square().sum().clamp(min=1)


def off_policy_loss(
    logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor
) -> Tensor:
    """REINFORCE on completions of an older policy.

    (N, T), (N, T), (N,) or (N, T), (N, T) → scalar. −(1/N) Σ_i Σ_t (πθ/πold) A. The
    ratio itself carries the gradient: ∇ratio = ratio · ∇ log πθ. At πθ = πold its
    gradient is that of `reinforce_loss`. The old log-probs and the advantages are
    constants: no gradient flows into them.
    Source: Schulman et al. 2017 (PPO), eq. 6, summed over tokens.
    """
    ratio = importance_weights(logprobs, old_logprobs, mask)
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    return -(ratio * advantages.detach()).sum(dim=1).mean()


def kl_divergence(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    """KL(p‖q) = Σ p (log p − log q) of two softmax distributions.

    (…, V), (…, V) → (…) nats; leading dimensions broadcast. Exact, and
    differentiable in both. Where p is 0 the term is 0, whatever q is, and so is its
    gradient; where only q is 0 the term is infinite.
    """
    logp, logq = logits_p.log_softmax(dim=-1), logits_q.log_softmax(dim=-1)
    p = logp.exp()
    return (p * (logp - logq).masked_fill(p == 0, 0)).sum(dim=-1)


def kl_estimates(
    logprobs: Tensor, ref_logprobs: Tensor, estimator: str = "k3"
) -> Tensor:
    """One-sample estimates of KL(πθ‖πref) from tokens sampled by πθ.

    (N, T), (N, T) → (N, T) nats. With d = log πθ − log πref: k1 = d is unbiased but
    of either sign; k2 = d²/2 is biased and never negative; k3 = e^{−d} − 1 + d is
    unbiased and never negative. No gradient flows into the reference. Raises
    ValueError for another estimator.
    Source: Schulman 2020, "Approximating KL Divergence"; k3 is eq. 4 of Shao et al.
    2024 (DeepSeekMath).
    """
    log_ratio = logprobs - ref_logprobs.detach()
    if estimator == "k1":
        return log_ratio
    if estimator == "k2":
        return log_ratio.square() / 2
    if estimator == "k3":
        return torch.expm1(-log_ratio) + log_ratio
    raise ValueError(f'estimator must be "k1", "k2" or "k3", not {estimator!r}')
