// Lesson 02: the exact policy gradient of a model that knows three answers.

import { Frame, signed, written } from "./chart.js";
import { actions, slider } from "./figure.js";

const NAMES = ["A", "B", "C"];
const START = [0.5, 0.3, 0.2];
const MOST = 40; // steps

export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

export function softmax(logits) {
  const largest = Math.max(...logits);
  const powers = logits.map((z) => Math.exp(z - largest));
  const total = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / total);
}

/** ∇J with respect to the logits: π ⊙ (R − π·R). */
export function exact_policy_gradient(logits, rewards) {
  const probabilities = softmax(logits);
  const mean = dot(probabilities, rewards);
  return probabilities.map((p, i) => p * (rewards[i] - mean));
}

/** The logits before each of so many steps of size 1 along the gradient, and after the last. */
export function path(logits, rewards, steps) {
  const found = [logits];
  for (let i = 0; i < steps; i++) {
    const gradient = exact_policy_gradient(found[i], rewards);
    found.push(found[i].map((z, k) => z + gradient[k]));
  }
  return found;
}

const paid = ({ A, B, C, added }) => [A, B, C].map((reward) => reward + added);

function bars(before, after, rewards) {
  return (width) => {
    const frame = new Frame(width, { x: [-0.6, 2.6], y: [0, 1] });
    const shapes = before.map((p, i) => {
      const kind = after[i] > p ? "rise" : "fall";
      return frame.box([i - 0.28, 0], [i + 0.28, p], "bar") + frame.arrow([i, p], [i, after[i]], kind);
    });
    const earns = NAMES.map((name, i) => [i, `${name}: ${written(rewards[i], 1)}`]);
    const label = `Probabilities of ${NAMES.map((name, i) => `${name} ${written(before[i])}, then ${written(after[i])}`).join("; ")}`;
    return frame.svg(label, { xLabel: "answer: what it earns", yLabel: "probability", xTicks: earns, yTicks: [0, 0.5, 1] }, shapes);
  };
}

function curves(probabilities, steps) {
  return (width) => {
    const frame = new Frame(width, { x: [0, MOST], y: [0, 1] });
    const lines = NAMES.map((name, i) =>
      frame.line(probabilities.map((p, step) => [step, p[i]]), `curve c${i}`));
    const dots = NAMES.map((name, i) => frame.dot([steps, probabilities[steps][i]], `mark c${i}`));
    const names = frame.names(NAMES.map((text, i) => ({ text, kind: `c${i}`, at: probabilities[MOST][i] })));
    const label = `Probabilities of A, B and C over ${MOST} steps, with a mark at step ${steps}`;
    return frame.svg(label, { xLabel: "steps of size 1", yLabel: "probability", yTicks: [0, 0.5, 1] },
      [frame.upright(steps, "cursor"), ...lines], [...dots, ...names]);
  };
}

export const figure = {
  title: "Three answers and the exact gradient",
  lead: `<b>Try it.</b> A earns 1 and is pushed down all the same. Find the reward at which its push turns to 0;
    then move the last slider, and notice that a number added to <em>every</em> reward changes no arrow.`,
  state: { A: 1, B: 2, C: 0, added: 0, steps: 3 },
  controls: [
    ...NAMES.map((name) => slider(name, `Reward of ${name}`, [-1, 3, 0.1], (x) => written(x, 1))),
    slider("steps", "Steps", [0, MOST, 1]),
    slider("added", "Added to every reward", [-3, 3, 0.5], (x) => signed(x, 1)),
    actions("Worlds:", {
      "Only B pays": { A: 0, B: 1, C: 0 },
      "A pays 1, B pays 2": { A: 1, B: 2, C: 0 },
      "All pay the same": { A: 1, B: 1, C: 1 },
    }),
  ],
  view(state) {
    const rewards = paid(state);
    const logits = path(START.map(Math.log), rewards, MOST);
    const probabilities = logits.map(softmax);
    const now = probabilities[state.steps];
    const push = exact_policy_gradient(logits[0], rewards);
    const pushes = NAMES.map((name, i) => `${name} <b>${signed(push[i])}</b>`).join(", ");
    return {
      charts: [bars(START, now, rewards), curves(probabilities, state.steps)],
      says: `At the start the policy earns ${written(dot(START, rewards))} on average, and pushes
        on the three logits are ${pushes}. After ${state.steps} step${state.steps === 1 ? "" : "s"} it
        earns ${written(dot(now, rewards))}.`,
    };
  },
};

