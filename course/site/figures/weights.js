// Lesson 04: the weights of whole completions go bad with their length.

import { Frame, spaced, written } from "./chart.js";
import { slider } from "./figure.js";

const [COUNT, LONGEST] = [200, 128];
const LENGTHS = [1, 2, 4, 8, 16, 32, 64, 128];

/** Numbers in [0, 1), the same in every browser. */
function uniform(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function normals(count, seed) {
  const draw = uniform(seed);
  return Array.from({ length: count }, () =>
    Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw()));
}

const NOISE = normals(COUNT * LONGEST, 1);

/** (COUNT, T): log-ratios of tokens, normal with this standard deviation, weights 1 on average. */
export const log_ratios = (sigma, T) =>
  Array.from({ length: COUNT }, (_, i) =>
    NOISE.slice(i * LONGEST, i * LONGEST + T).map((z) => sigma * z - sigma ** 2 / 2));

/** exp of each row's sum: (N, T) → (N,). */
export const importance_weights = (ratios) => ratios.map((row) => Math.exp(row.reduce((a, b) => a + b, 0)));

/** (Σw)² / Σw². */
export function effective_sample_size(weights) {
  const largest = Math.max(...weights);
  const scaled = weights.map((w) => w / largest);
  return scaled.reduce((a, b) => a + b) ** 2 / scaled.reduce((sum, w) => sum + w * w, 0);
}

export const predicted = (sigma, T) => Math.exp(-T * sigma ** 2);

const share = (sigma, T) => effective_sample_size(importance_weights(log_ratios(sigma, T))) / COUNT;

/** Who holds how much of the whole weight, the heaviest first. */
function held(weights) {
  const total = weights.reduce((a, b) => a + b);
  const shares = weights.map((w) => w / total).sort((a, b) => b - a);
  return (width) => {
    const height = 92;
    let left = 1;
    const blocks = shares.map((part, i) => {
      const wide = part * (width - 2);
      const block = `<rect class="block ${i % 2 ? "odd" : "even"}" x="${left.toFixed(2)}" y="22" width="${wide.toFixed(2)}" height="44"/>`;
      left += wide;
      return block;
    });
    const first = `<path class="brace" d="M1 18V14H${Math.max(3, shares[0] * (width - 2)).toFixed(1)}V18"/>`;
    const label = `The heaviest of ${COUNT} completions holds ${percent(shares[0])} of the weight`;
    return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}">
      <text class="tick" x="1" y="10">the heaviest: ${percent(shares[0])} of the weight</text>${first}${blocks.join("")}
      <text class="axis" x="${width / 2}" y="${height - 6}" text-anchor="middle">${COUNT} completions, each as wide as its weight</text></svg>`;
  };
}

function falling({ sigma, T }) {
  return (width) => {
    const frame = new Frame(width, { x: [1, LONGEST], y: [0, 1], height: 190, log: true });
    const formula = spaced(0, 7, 80).map((power) => [2 ** power, predicted(sigma, 2 ** power)]);
    const label = `Effective share against tokens, falling from ${written(predicted(sigma, 1))} at 1 to ${written(predicted(sigma, LONGEST))} at ${LONGEST}`;
    return frame.svg(label, { xLabel: "tokens T", yLabel: "ESS / n", xTicks: LENGTHS, yTicks: [0, 0.5, 1] },
      [frame.upright(T, "cursor"), frame.line(formula, "curve c3 dashed")],
      [...LENGTHS.map((length) => frame.dot([length, share(sigma, length)], "mark c0", 3.5)),
        frame.dot([T, share(sigma, T)], "mark c1")]);
  };
}

const percent = (part) => `${written(100 * part, part < 0.1 ? 1 : 0)}\u00a0%`;

const small = (part) => (part < 0.001 ? "less than 0.1\u00a0%" : percent(part));

export const figure = {
  title: "Importance weights going bad",
  lead: `<b>Try it.</b> Lengthen the texts, and watch a handful of the ${COUNT} completions swallow the others. Then halve σ:
    how much longer may the texts be now? (Four times: only Tσ² counts.)`,
  state: { sigma: 0.3, T: 16 },
  controls: [
    slider("T", "Tokens <var>T</var>", [1, LONGEST, 1]),
    slider("sigma", "Change of a token, <var>σ</var>", [0, 0.5, 0.01], (x) => `${written(x)} nats`),
  ],
  view(state) {
    const weights = importance_weights(log_ratios(state.sigma, state.T));
    const worth = effective_sample_size(weights);
    return {
      stacked: true,
      charts: [held(weights), falling(state)],
      says: `These ${COUNT} completions are worth <b>${written(worth, worth < 10 ? 1 : 0)}</b>, ${percent(worth / COUNT)} of what they cost;
        the formula e<sup>−Tσ²</sup> says ${small(predicted(state.sigma, state.T))}.`,
      below: `<p class="key">Dots: these ${COUNT} completions, cut to T tokens. Dashed: the formula. Where it is near 0 the dots lie
        above it, for the giants that would pull them down were not drawn.</p>`,
    };
  },
};
