// Lesson 09: β and the margin of one pair in DPO.

import { Frame, signed, spaced, written } from "./chart.js";
import { actions, slider } from "./figure.js";

const [LEAST, MOST] = [-10, 30]; // gaps, in nats

/** log σ(x) without overflow. */
export const log_sigmoid = (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));
const sigmoid = (x) => Math.exp(log_sigmoid(x));

/** The loss of a pair whose winner and loser have become so many nats likelier than under the
    reference; its margin; its weight, σ(−Δ) without smoothing; and minus the derivative of the loss
    by the winner's log-prob. */
export function dpo(chosen, rejected, beta, smoothing) {
  const margin = beta * (chosen - rejected);
  const weight = (1 - smoothing) * sigmoid(-margin) - smoothing * sigmoid(margin);
  return {
    margin,
    weight,
    loss: -(1 - smoothing) * log_sigmoid(margin) - smoothing * log_sigmoid(-margin),
    push: beta * weight,
  };
}

/** The gap at which the loss is lowest; infinite without smoothing. */
export const rest = (beta, smoothing) => Math.log((1 - smoothing) / smoothing) / beta;

function curve({ chosen, rejected, beta, smoothing }, name, { kind, y, yLabel, usual }) {
  return (width) => {
    const frame = new Frame(width, { x: [LEAST, MOST], y });
    const values = (b) => spaced(LEAST, MOST, 100).map((gap) => [gap, dpo(gap, 0, b, smoothing)[name]]);
    const gap = chosen - rejected;
    const now = dpo(chosen, rejected, beta, smoothing)[name];
    const lowest = rest(beta, smoothing);
    const inside = Math.min(Math.max(now, y[0]), y[1]);
    return frame.svg(`${yLabel} against the gap; at a gap of ${written(gap, 1)} nats it is ${written(now, 3)}`,
      { xLabel: "gap of the log-ratios, nats", yLabel, zero: y[0] < 0 },
      [frame.upright(gap, "cursor"), usual && beta !== usual ? frame.line(values(usual), "curve c3 dotted") : "",
        lowest < MOST ? frame.upright(lowest, "curve c2 thin dashed") : "", frame.line(values(beta), `curve ${kind}`)],
      [frame.dot([gap, inside], `mark ${kind}`)]);
  };
}

const both = (nats) => ({ chosen, rejected }) => ({ chosen: chosen + nats, rejected: rejected + nats });
const bounded = (nats) => (state) => {
  const next = both(nats)(state);
  const fits = next.chosen >= -20 && next.chosen <= 10 && next.rejected >= -20 && next.rejected <= 10;
  return fits ? next : {};
};

function meaning({ chosen, rejected }) {
  if (chosen < 0 && rejected < 0) return "Both texts have become rarer; the loss does not see it.";
  if (chosen > rejected) return "The winner has gained on the loser.";
  return chosen === rejected ? "Both have moved equally: the loss is ln 2 as at the start." : "The pair is in the wrong order.";
}

export const figure = {
  title: "β and the margin in DPO",
  lead: `<b>Try it.</b> Both texts have <em>lost</em> probability, and the loss has fallen. Push both further down with the
    button: nothing changes, as only the gap counts. Then raise β, and notice at how small a gap the pair is already let go.`,
  state: { chosen: -2, rejected: -8, beta: 0.1, smoothing: 0 },
  controls: [
    slider("chosen", "Winner, log-ratio", [-20, 10, 0.5], (x) => `${signed(x, 1)} nats`),
    slider("rejected", "Loser, log-ratio", [-20, 10, 0.5], (x) => `${signed(x, 1)} nats`),
    slider("beta", "<var>β</var>", [0.02, 1, 0.02], (x) => written(x)),
    slider("smoothing", "Label smoothing <var>ε</var>", [0, 0.3, 0.05], (x) => written(x)),
    actions("Move both:", { "2 nats down": bounded(-2), "2 nats up": bounded(2) }),
  ],
  view(state) {
    const { chosen, rejected, beta, smoothing } = state;
    const { margin, loss, weight, push } = dpo(chosen, rejected, beta, smoothing);
    const turns = smoothing ? ` Smoothed, the loss is lowest at a gap of ${written(rest(beta, smoothing), 1)} nats.` : "";
    return {
      charts: [
        curve(state, "loss", { kind: "c0", y: [0, 2.2], yLabel: "loss of the pair", usual: 0.1 }),
        curve(state, "weight", { kind: "c1", y: [-0.3, 1], yLabel: "weight of the pair", usual: 0.1 }),
      ],
      says: `Δ = ${written(beta)} · ${written(chosen - rejected, 1)} = <b>${written(margin)}</b>, loss <b>${written(loss, 3)}</b>, weight
        <b>${written(weight, 3)}</b>. ${meaning(state)}${turns}`,
      below: `<p class="key">A log-ratio says how many nats likelier a text is than under the reference. Dotted: β = 0.1. The winner's
        log-prob is pushed up with β times the weight, now ${written(push, 3)}, and the loser's down with as much.</p>`,
    };
  },
};
