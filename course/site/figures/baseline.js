// Lesson 03: what a baseline does to the variance of one sample's gradient, on three answers.

import { dot, exact_policy_gradient } from "./bandit.js";
import { Frame, signed, spaced, written } from "./chart.js";
import { actions, slider } from "./figure.js";

const NAMES = ["A", "B", "C"];
const [LEAST, MOST] = [-0.5, 2]; // baselines

/** Probabilities of A, B and C: B has `right`, and A and C share the rest as 5 to 2. */
export const policy = (right) => [((1 - right) * 5) / 7, right, ((1 - right) * 2) / 7];

/** ∇ log π of each answer with respect to the logits. */
export const scores = (probabilities) =>
  probabilities.map((_, a) => probabilities.map((p, k) => (a === k ? 1 : 0) - p));

const square = (v) => dot(v, v);

/** Trace of the covariance of (R − b) ∇ log π, exactly. */
export function variance(probabilities, rewards, b) {
  const lengths = scores(probabilities).map(square);
  const mean = exact_policy_gradient(probabilities.map(Math.log), rewards);
  return probabilities.reduce((sum, p, i) => sum + p * (rewards[i] - b) ** 2 * lengths[i], 0) - square(mean);
}

/** E[‖s‖² R] / E[‖s‖²]; 0 where all scores are 0. */
export function optimal_baseline(rewards, weights) {
  const total = weights.reduce((a, b) => a + b, 0);
  return total === 0 ? 0 : dot(weights, rewards) / total;
}

/** Everything that the figure shows, of B's probability, what is added to 0, 1, 0, and b. */
export function numbers({ right, added, b }) {
  const probabilities = policy(right);
  const rewards = [0, 1, 0].map((reward) => reward + added);
  const s = scores(probabilities);
  return {
    probabilities,
    rewards,
    gradients: s.map((score, i) => score.map((x) => (rewards[i] - b) * x)),
    exact: exact_policy_gradient(probabilities.map(Math.log), rewards),
    mean: dot(probabilities, rewards),
    best: optimal_baseline(rewards, s.map((score, i) => probabilities[i] * square(score))),
    variance: variance(probabilities, rewards, b),
    without: variance(probabilities, rewards, 0),
  };
}

function parabola(state, found) {
  return (width) => {
    const top = 1.02 * variance(found.probabilities, [0, 1, 0], MOST);
    const frame = new Frame(width, { x: [LEAST, MOST], y: [0, top] });
    const curve = spaced(LEAST, MOST, 120).map((b) => [b, variance(found.probabilities, found.rewards, b)]);
    const shapes = [
      frame.upright(found.mean, "curve c1 thin"),
      frame.upright(found.best, "curve c2 thin dashed"),
      frame.line(curve, "curve c0"),
    ];
    const label = `Variance against b, a parabola with its lowest point at ${written(found.best)}; at b = ${written(state.b)} it is ${written(found.variance, 3)}`;
    return frame.svg(label, { xLabel: "baseline b", yLabel: "variance" }, shapes, [
      frame.dot([state.b, Math.min(found.variance, top)], "mark c0"),
    ]);
  };
}

/** The gradient that each answer would give; what is likelier is larger. */
function plane({ b }, { gradients, probabilities, rewards, exact }) {
  return (width) => {
    const frame = new Frame(width, { x: [-1.5, 1.5], y: [-1.5, 1.5] });
    const place = (g) => [g[0], g[1]];
    const arms = gradients.map((g, i) => frame.line([[0, 0], place(g)], `thin arm c${i}`));
    const dots = gradients.map((g, i) => frame.dot(place(g), `sample c${i}`, 3 + 12 * Math.sqrt(probabilities[i])));
    // Beside its dot, on the far side of the origin: two dots may lie there together.
    const names = gradients.map((g, i) => {
      const [x, y] = scores(probabilities)[i].map((part) => (rewards[i] >= b ? part : -part));
      const far = (12 + 14 * Math.sqrt(probabilities[i])) / Math.hypot(x, y);
      return frame.text(place(g), NAMES[i], { kind: `name c${i}`, dx: x * far, dy: 4 - y * far, anchor: "middle" });
    });
    const [x, y] = [frame.X(exact[0]), frame.Y(exact[1])];
    const cross = `<path class="cross" d="M${x - 6} ${y - 6}l12 12M${x - 6} ${y + 6}l12 -12"/>`;
    const label = `Gradients of one sample: ${NAMES.map((name, i) => `${name} ${signed(gradients[i][0])}, ${signed(gradients[i][1])}`).join("; ")}; their mean ${signed(exact[0])}, ${signed(exact[1])}`;
    return frame.svg(label, { xLabel: "push on A", yLabel: "push on B", zero: true }, [
      frame.upright(0, "zero"), ...arms, ...dots, ...names, cross]);
  };
}

/** How a variance compares with that of no baseline. */
function times(x, none) {
  const ratio = x / none;
  return ratio === 1 ? "" : `, ${ratio < 9.5 ? written(ratio, 1) : written(ratio, 0)} times that of no baseline`;
}

export const figure = {
  title: "A baseline and the variance",
  lead: `<b>Try it.</b> Move b: the three gradients that a sample can give come closer or fly apart, and the cross,
    their mean, stays where it is. Then make B likely, 0.90, and put b on the mean reward: now it is far worse than no
    baseline.`,
  state: { b: 0, right: 0.3, added: 0 },
  controls: [
    slider("b", "Baseline <var>b</var>", [LEAST, MOST, 0.01], (x) => written(x)),
    slider("right", "Probability of B, which earns 1", [0.05, 0.95, 0.01], (x) => written(x)),
    slider("added", "Added to every reward", [0, 1, 0.1], (x) => signed(x, 1)),
    actions("Put b on:", {
      "0, none": { b: 0 },
      "the mean reward": (state) => ({ b: numbers(state).mean }),
      "the best, b*": (state) => ({ b: numbers(state).best }),
    }),
  ],
  view(state) {
    const found = numbers(state);
    return {
      charts: [parabola(state, found), plane(state, found)],
      says: `With b = ${written(state.b)} the variance is <b>${written(found.variance, 4)}</b>${times(found.variance, found.without)}.
        The <span class="of c1">mean reward is ${written(found.mean)}</span>, the <span class="of c2">best constant
        b* ${written(found.best)}</span>.`,
      below: `<p class="key">Left: the parabola. Right: a dot for each answer that may be drawn, the likelier the larger; the
        cross is the exact gradient.</p>`,
    };
  },
};
