// rlcourse/training/optimizer.py: AdamW as torch computes it, after the gradient of all weights
// together has been shortened.

import { numpy as np, tree } from "./jax/index.js";

const BETA1 = 0.9, BETA2 = 0.95, EPS = 1e-8;

export const moments = (p) => {
  const zeros = () => tree.map((x) => np.zeros(x.shape), p);
  return { mean: zeros(), square: zeros() };
};

/** What depends on the number of updates, from 1: numbers that a compiled update is given. */
export const schedule = (lr, updates) => ({
  lr: np.array(lr / (1 - BETA1 ** updates)),
  unbias: np.array(1 / (1 - BETA2 ** updates)),
});

/** The gradients shortened to a common length, and the length they had. */
export function clip_grad_norm(gradients, longest = 1) {
  const squares = tree.leaves(gradients).map((g) => np.square(g.ref).sum());
  const norm = np.sqrt(squares.reduce((sum, square) => sum.add(square)));
  const scale = np.minimum(np.divide(longest, norm.ref.add(1e-6)), 1);
  return [tree.map((g) => g.mul(scale.ref), gradients), norm];
}

/** One step of AdamW without weight decay: new weights and moments. */
export function adamw(p, { mean, square }, gradients, { lr, unbias }) {
  mean = tree.map((m, g) => m.mul(BETA1).add(g.ref.mul(1 - BETA1)), mean, gradients);
  square = tree.map((v, g) => v.mul(BETA2).add(np.square(g).mul(1 - BETA2)), square, gradients);
  const step = (x, m, v) =>
    x.sub(m.ref.mul(lr.ref).div(np.sqrt(v.ref.mul(unbias.ref)).add(EPS)));
  return [tree.map(step, p, mean, square), { mean, square }];
}
