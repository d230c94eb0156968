// rlcourse/algorithms: the functions that lessons 02 to 07 have students write, under the same
// names and with the same arguments, given as one object. Arrays are jax-js's: an operation uses
// up its operands, `.ref` keeps one for another use. Each function uses up its arrays once.

import { numpy as np } from "./jax/index.js";

/** x where the mask is 1, 0 on padding, which may hold anything. */
const real = (x, mask) => np.where(mask.notEqual(0), x, 0);

/** Advantages (N,) or (N, T) as something that multiplies (N, T). */
const perToken = (advantages) => (advantages.ndim === 1 ? advantages.reshape([-1, 1]) : advantages);

/** Mean of x where the mask is 1, over `dim` or everything; 0 for an empty mask. */
export function masked_mean({ x, mask, dim = null }) {
  const count = np.maximum(mask.ref.sum(dim), 1);
  return real(x, mask).sum(dim).div(count);
}

export function importance_weights({ logprobs, old_logprobs, mask }) {
  return real(np.exp(real(logprobs.sub(old_logprobs), mask.ref)), mask);
}

/** k3 estimates of KL(πθ‖πref) per token. */
export function kl_estimates({ logprobs, ref_logprobs }) {
  const logRatio = logprobs.sub(ref_logprobs);
  return np.expm1(logRatio.ref.mul(-1)).add(logRatio);
}

// advantages

export function group_mean_advantages({ rewards, group_size }) {
  const groups = rewards.reshape([-1, group_size]);
  const first = groups.ref.slice([], [0, 1]);
  const shifted = groups.sub(first); // so that equal rewards give 0 and no rounding error
  return shifted.ref.sub(shifted.mean(1, { keepdims: true })).reshape([-1]);
}

export function leave_one_out_advantages({ rewards, group_size }) {
  const groups = rewards.reshape([-1, group_size]);
  const others = groups.ref.sum(1, { keepdims: true }).sub(groups.ref);
  return groups.sub(others.div(Math.max(group_size - 1, 1))).reshape([-1]);
}

export function group_normalized_advantages({ rewards, group_size, eps = 1e-4 }) {
  const centered = group_mean_advantages({ rewards, group_size }).reshape([-1, group_size]);
  const squares = np.square(centered.ref).sum(1, { keepdims: true });
  const std = np.sqrt(squares.div(Math.max(group_size - 1, 1)));
  return centered.div(std.add(eps)).reshape([-1]);
}

// losses

export function reinforce_loss({ logprobs, advantages, mask }) {
  return advantages.mul(real(logprobs, mask).sum(1)).mean().mul(-1);
}

export function grpo_loss({
  logprobs, old_logprobs, ref_logprobs, advantages, mask, clip = 0.2, beta = 0.04,
  minimum = np.minimum,
}) {
  [logprobs, ref_logprobs] = [real(logprobs, mask.ref), real(ref_logprobs, mask.ref)];
  const ratio = importance_weights({ logprobs: logprobs.ref, old_logprobs, mask: mask.ref });
  const objective = clipped_objective(ratio, advantages, clip, minimum);
  const penalty = kl_estimates({ logprobs, ref_logprobs }).mul(beta);
  return masked_mean({ x: objective.sub(penalty), mask, dim: 1 }).mean().mul(-1);
}

export function dr_grpo_loss({
  logprobs, old_logprobs, advantages, mask, max_tokens, clip = 0.2, minimum = np.minimum,
}) {
  const ratio = importance_weights({ logprobs, old_logprobs, mask: mask.ref });
  const rows = ratio.shape[0];
  const objective = clipped_objective(ratio, advantages, clip, minimum);
  return real(objective, mask).sum().div(-rows * max_tokens);
}

/** PPO's clipped objective per token. */
function clipped_objective(ratio, advantages, clip, minimum) {
  advantages = perToken(advantages);
  const clipped = np.clip(ratio.ref, 1 - clip, 1 + clip);
  return minimum(ratio.mul(advantages.ref), clipped.mul(advantages));
}
