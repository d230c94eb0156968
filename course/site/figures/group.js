// Lesson 06: what a group's completions get as advantages, from rewards that are switched.

import { Frame, signed, written } from "./chart.js";
import { actions, choice, switches } from "./figure.js";

const G = 8;

/** Each reward minus the mean; counted from the first, so that equal ones give 0. */
export function group_mean_advantages(rewards) {
  const shifted = rewards.map((reward) => reward - rewards[0]);
  const mean = shifted.reduce((a, b) => a + b) / rewards.length;
  return shifted.map((reward) => reward - mean);
}

/** The sample standard deviation; 0 of one. */
export const std = (rewards) =>
  Math.sqrt(group_mean_advantages(rewards).reduce((sum, x) => sum + x * x, 0) / Math.max(1, rewards.length - 1));

export function group_normalized_advantages(rewards, eps = 1e-4) {
  const divisor = std(rewards) + eps;
  return group_mean_advantages(rewards).map((x) => x / divisor);
}

const WAYS = { normalized: group_normalized_advantages, mean: group_mean_advantages };
const first = (right) => Array.from({ length: G }, (_, i) => (i < right ? 1 : 0));

function bars(rewards, advantages) {
  return (width) => {
    const frame = new Frame(width, { x: [0.4, G + 0.6], y: [-2.7, 2.7] });
    const shapes = advantages.map((a, i) =>
      frame.box([i + 0.68, 0], [i + 1.32, a], rewards[i] ? "bar right" : "bar wrong"));
    const numbers = advantages.map((a, i) =>
      frame.text([i + 1, a], signed(a, 1), { kind: "tick", dy: a < 0 ? 14 : -5, anchor: "middle" }));
    const label = `Advantages of the ${G} completions: ${advantages.map((a) => signed(a)).join(", ")}`;
    return frame.svg(label, { xLabel: "completion", yLabel: "advantage", zero: true, yTicks: [-2, -1, 0, 1, 2],
      xTicks: advantages.map((_, i) => i + 1) }, shapes, numbers);
  };
}

function overCounts(way, right) {
  return (width) => {
    const frame = new Frame(width, { x: [0, G], y: [-2.7, 2.7] });
    const at = (k) => WAYS[way](first(k));
    const inner = first(G - 1).map((_, i) => i + 1).slice(0, G - 1);
    const good = inner.map((k) => [k, at(k)[0]]);
    const bad = inner.map((k) => [k, at(k)[G - 1]]);
    const marks = right > 0 && right < G
      ? [frame.dot([right, at(right)[0]], "mark right"), frame.dot([right, at(right)[G - 1]], "mark wrong")]
      : [frame.dot([right, 0], "mark c3")];
    const label = `Advantage of a right and of a wrong completion against the number of right ones, with a mark at ${right}`;
    return frame.svg(label, { xLabel: `right completions among ${G}`, yLabel: "advantage", zero: true,
      yTicks: [-2, -1, 0, 1, 2], xTicks: [0, 2, 4, 6, 8] },
    [frame.upright(right, "cursor"), frame.line(good, "curve right"), frame.line(bad, "curve wrong")],
    [...marks, frame.text([5.2, at(5)[0]], "a right one", { kind: "name right", dy: -8 }),
      frame.text([2.8, at(3)[G - 1]], "a wrong one", { kind: "name wrong", dy: 20, anchor: "end" })]);
  };
}

export const figure = {
  title: "A group's advantages",
  lead: `<b>Try it.</b> One right answer among eight gets a push of 2.47. Switch a second one to right, and notice what the
    first one loses; then switch on all eight, and the group falls silent.`,
  state: { rewards: first(1), way: "normalized" },
  controls: [
    switches("rewards", "Completions:", (on) => (on ? "✓ 1" : "✗ 0")),
    choice("way", "Advantage", {
      normalized: "(R − mean) / std, GRPO",
      mean: "R − mean, lesson 03",
    }),
    actions("Groups:", {
      "One right": { rewards: first(1) },
      "Half right": { rewards: first(4) },
      "One wrong": { rewards: first(7) },
      "All right": { rewards: first(8) },
    }),
  ],
  view({ rewards, way }) {
    const right = rewards.reduce((a, b) => a + b);
    const advantages = WAYS[way](rewards);
    const [good, bad] = [1, 0].map((reward) => advantages[rewards.indexOf(reward)]);
    const each = right === 0 || right === G
      ? "All agree, so every advantage is <b>0</b>: nothing is learned from this group."
      : `A right one gets <b>${signed(good)}</b>, a wrong one <b>${signed(bad)}</b>.`;
    return {
      charts: [bars(rewards, advantages), overCounts(way, right)],
      says: `${right} of ${G} right: mean ${written(right / G, 3)}, standard deviation ${written(std(rewards), 3)}. ${each}`,
    };
  },
};
