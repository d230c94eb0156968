"""Lesson 05: trust regions, the clip, and the critic.

A small step in the weights can be a large step in behavior. TRPO bounds the step by
the KL divergence it causes; PPO stops each token's gradient once its ratio has left
[1−ε, 1+ε]:

    L = E[ min( ratio · A, clip(ratio, 1−ε, 1+ε) · A ) ]

(Schulman et al. 2017, eq. 7). A critic V(s) turns the reward at the end into an
advantage for every token (GAE).
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights, kl_estimates
from rlcourse.algorithms.policies import masked_mean


def fisher_vector_product(
    kl_fn: Callable[[], Tensor],
    parameters: Iterable[Tensor],
    vector: Tensor,
    damping: float = 0.0,
) -> Tensor:
    """(F + damping · I) v without forming F: a (D,) vector for a (D,) vector.

    `kl_fn()` returns the mean KL(πold‖πθ) as a scalar; its Hessian at θ = θold is
    the Fisher matrix F. Differentiating ∇KL · v once more gives F v. D counts all
    elements of `parameters`, which may be a generator: good for one pass only.
    Source: Schulman et al. 2015 (TRPO), appendix C.
    """
    parameters = list(parameters)
    gradients = torch.autograd.grad(kl_fn(), parameters, create_graph=True)
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    products = torch.autograd.grad(flat @ vector, parameters)
    return torch.cat([product.flatten() for product in products]) + damping * vector


def conjugate_gradient(
    matvec: Callable[[Tensor], Tensor],
    b: Tensor,
    iterations: int = 10,
    tolerance: float = 1e-10,
) -> Tensor:
    """Solve A x = b for a symmetric positive definite A known only through x ↦ A x.

    (D,) → (D,). Starts from x = 0 and stops after `iterations`, or when the squared
    residual falls below `tolerance`.
    Source: Hestenes and Stiefel 1952.
    """
    x = torch.zeros_like(b)
    residual, direction = b.clone(), b.clone()
    squared = residual @ residual
    for _ in range(iterations):
        if squared < tolerance:
            break
        image = matvec(direction)
        step = squared / (direction @ image)
        x = x + step * direction
        residual = residual - step * image
        previous, squared = squared, residual @ residual
        direction = residual + (squared / previous) * direction
    return x


@torch.no_grad()
def backtracking_line_search(
    objective_fn: Callable[[], Tensor],
    kl_fn: Callable[[], Tensor],
    parameters: Iterable[Tensor],
    step: Tensor,
    max_kl: float,
    shrink: float = 0.5,
    max_backtracks: int = 10,
) -> float:
    """Move the parameters by the largest safe step of step, shrink · step, ….

    Safe: `objective_fn()` (to be maximized) rises and `kl_fn()` stays ≤ `max_kl`; NaN
    is not safe. At most `max_backtracks` attempts, the whole step being the first.
    `step` is (D,), the parameters laid end to end; they may come from a generator, good
    for one pass only. Returns the fraction taken; 0.0, with the parameters exactly as
    they were, when none was safe.
    Source: Schulman et al. 2015 (TRPO), appendix C.
    """
    parameters = list(parameters)
    start = torch.nn.utils.parameters_to_vector(parameters)
    objective_before = objective_fn()
    for attempt in range(max_backtracks):
        fraction = shrink**attempt
        torch.nn.utils.vector_to_parameters(start + fraction * step, parameters)
        if objective_fn() > objective_before and kl_fn() <= max_kl:
            return fraction
    torch.nn.utils.vector_to_parameters(start, parameters)
    return 0.0


def ppo_clip_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip: float = 0.2,
) -> tuple[Tensor, Tensor]:
    """PPO's clipped loss.

    (N, T), (N, T), (N,) or (N, T), (N, T) → (loss, clip fraction), scalars. The
    mean is over all real tokens of the batch, 0 where there are none. The clip fraction
    is the share of them whose gradient the clip stops: outside the band *and* on the
    side where the clipped term is strictly the smaller (never where the advantage is
    0); it has the dtype of the loss. Gradient flows through `logprobs` alone.
    Source: Schulman et al. 2017 (PPO), eq. 7.
    """
    ratio = importance_weights(logprobs, old_logprobs, mask)
    advantages = advantages.detach()
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    unclipped = ratio * advantages
    clipped = ratio.clamp(1 - clip, 1 + clip) * advantages
    objective = torch.minimum(unclipped, clipped)
    stopped = (clipped < unclipped).to(objective.dtype)
    return -masked_mean(objective, mask), masked_mean(stopped, mask)


def gae(
    rewards: Tensor, values: Tensor, mask: Tensor, gamma: float = 1.0, lam: float = 0.95
) -> tuple[Tensor, Tensor]:
    """Generalized advantage estimates.

    (N, T) each → (advantages, returns), (N, T), 0 on padding. δ_t = r_t + γ V_{t+1}
    − V_t with V = 0 after the last real token, and Â_t = δ_t + γλ Â_{t+1}. λ=1 is
    Monte Carlo, λ=0 one-step TD. Returns are Â + V, the critic's targets. Nothing
    here carries gradient.
    Source: Schulman et al. 2016 (GAE), eq. 16.
    """
    padding = ~mask.bool()
    rewards = rewards.detach().masked_fill(padding, 0)
    values = values.detach().masked_fill(padding, 0)
    advantage = next_value = torch.zeros_like(values[:, 0])
    advantages = []
    for t in reversed(range(values.shape[1])):
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        advantage = (delta + gamma * lam * advantage).masked_fill(padding[:, t], 0)
        next_value = values[:, t]
        advantages.append(advantage)
    advantages = torch.stack(advantages[::-1], dim=1)
    return advantages, advantages + values


def value_loss(
    values: Tensor, returns: Tensor, old_values: Tensor, mask: Tensor, clip: float = 0.2
) -> Tensor:
    """Half the mean squared error of the critic over real tokens, 0 without any.

    (N, T) each → scalar. The larger of the errors of V and of V held within ±`clip`
    of its old value. Differentiable in `values` only.
    Source: the reference implementation of Schulman et al. 2017 (PPO); it is not in
    the paper.
    """
    values = values.masked_fill(~mask.bool(), 0)  # padding may hold anything, NaN too
    returns, old_values = returns.detach(), old_values.detach()
    near_old = old_values + (values - old_values).clamp(-clip, clip)
    squared_error = torch.maximum(
        (values - returns).square(), (near_old - returns).square()
    )
    return masked_mean(squared_error, mask) / 2


def kl_shaped_rewards(
    scores: Tensor, logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor, beta: float
) -> Tensor:
    """A reward for every token.

    (N,), (N, T), (N, T), (N, T) → (N, T), 0 on padding, no gradient. −β (log πθ −
    log πref) at each real token, and the completion's score at its last one.
    An empty completion has none, and is paid nothing.
    Source: Ziegler et al. 2019, eq. 2, spread over the tokens.
    """
    real = mask.bool()
    penalty = -beta * kl_estimates(logprobs.detach(), ref_logprobs, "k1")
    real_from_here = real.long().flip(1).cumsum(dim=1).flip(1)
    is_last = real & (real_from_here == 1)
    return (penalty + is_last * scores.detach()[:, None]).masked_fill(~real, 0)


def whiten(x: Tensor, mask: Tensor) -> Tensor:
    """Shift and scale x to mean 0 and variance 1 over the real tokens.

    (N, T) → (N, T), 0 on padding, and 0 everywhere if all real tokens are equal. In
    float32, too, neither seven times 0.1 nor values far from 0 may blow up rounding.
    """
    centered = x - masked_mean(x, mask)
    variance = masked_mean(centered.square(), mask)
    return (centered * (variance + 1e-8).rsqrt()).masked_fill(~mask.bool(), 0)
