// Lesson 05: PPO's clip against the advantage, in its four cases.

import { Frame, signed, spaced, written } from "./chart.js";
import { actions, slider } from "./figure.js";

const [LEAST, MOST] = [0.2, 2]; // ratios

const clipped = (ratio, clip) => Math.min(Math.max(ratio, 1 - clip), 1 + clip);

/** min(ρA, clip(ρ)A) of one token. */
export const objective = (ratio, A, clip) => Math.min(ratio * A, clipped(ratio, clip) * A);

/** Whether the clip stops the token's gradient. */
export const stopped = (ratio, A, clip) => clipped(ratio, clip) * A < ratio * A;

/** Of the objective, with respect to the token's log-probability: ρA, or 0 where it is stopped. */
export const gradient = (ratio, A, clip) => (stopped(ratio, A, clip) ? 0 : ratio * A);

/** [row, column] of the lesson's table; row null where the advantage is 0. */
export function cell(ratio, A, clip) {
  const column = ratio < 1 - clip ? 0 : ratio > 1 + clip ? 2 : 1;
  return [A > 0 ? 0 : A < 0 ? 1 : null, column];
}

const CELLS = [
  ["wrong way: <b>flows</b>", "flows", "enough: stopped"],
  ["enough: stopped", "flows", "wrong way: <b>flows</b>"],
];

function curve(state, value, { kind, yLabel, label, plain }) {
  const { A, clip, ratio } = state;
  return (width) => {
    const frame = new Frame(width, { x: [LEAST, MOST], y: [-2, 2] });
    // A jump is drawn as one: both sides of each end of the band.
    const ends = [1 - clip, 1 + clip].flatMap((end) => [end - 1e-6, end + 1e-6]);
    const ratios = [...spaced(LEAST, MOST, 60), ...ends].sort((a, b) => a - b);
    const points = ratios.map((rho) => [rho, value(rho, A, clip)]);
    const shapes = [
      frame.box([1 - clip, -2], [1 + clip, 2], "band"),
      plain ? frame.line([[LEAST, LEAST * A], [MOST, MOST * A]], "curve c3 dotted") : "",
      frame.line(points, `curve ${kind}`),
    ];
    return frame.svg(`${label} at ratio ${written(ratio)}: ${signed(value(ratio, A, clip))}`,
      { xLabel: "ratio ρ", yLabel, zero: true, yTicks: [-2, -1, 0, 1, 2] }, shapes,
      [frame.dot([ratio, value(ratio, A, clip)], `mark ${kind}`)]);
  };
}

function table({ ratio, A, clip }) {
  const [row, column] = cell(ratio, A, clip);
  const heads = [`ρ &lt; ${written(1 - clip)}`, "inside", `ρ &gt; ${written(1 + clip)}`];
  const rows = ["A &gt; 0, praised", "A &lt; 0, blamed"].map((name, i) => {
    const cells = CELLS[i].map((words, j) =>
      i === row && j === column ? `<td class="here" aria-current="true">${words}</td>` : `<td>${words}</td>`);
    return `<tr><th scope="row">${name}</th>${cells.join("")}</tr>`;
  });
  const head = heads.map((name) => `<th scope="col">${name}</th>`).join("");
  return `<table><thead><tr><td></td>${head}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

export const figure = {
  title: "The clip and the advantage",
  lead: `<b>Try it.</b> This token is blamed, and yet it has become likelier: the others pushed it. It is far outside the band,
    and its gradient flows. Slide the ratio to the left until the gradient stops, and notice that each sign of A leaves
    one side open.`,
  state: { ratio: 1.5, A: -1, clip: 0.2 },
  controls: [
    slider("ratio", "Ratio <var>ρ</var>", [LEAST, MOST, 0.01], (x) => written(x)),
    slider("A", "Advantage <var>A</var>", [-1, 1, 0.1], (x) => signed(x, 1)),
    slider("clip", "Clip <var>ε</var>", [0.05, 0.5, 0.05], (x) => written(x)),
    actions("Four cases:", {
      "Praised, too likely": { A: 1, ratio: 1.5 },
      "Praised, too rare": { A: 1, ratio: 0.5 },
      "Blamed, too likely": { A: -1, ratio: 1.5 },
      "Blamed, too rare": { A: -1, ratio: 0.5 },
    }),
  ],
  view(state) {
    const { ratio, A, clip } = state;
    const halted = stopped(ratio, A, clip);
    return {
      charts: [
        curve(state, objective, { kind: "c0", yLabel: "objective", label: "Objective", plain: true }),
        curve(state, gradient, { kind: "c1", yLabel: "gradient", label: "Gradient" }),
      ],
      says: `ρA = ${signed(ratio * A)}, clip(ρ)A = ${signed(clipped(ratio, clip) * A)}, and the smaller is
        <b>${signed(objective(ratio, A, clip))}</b>. The gradient is <b>${signed(gradient(ratio, A, clip))}</b>:
        ${A === 0 ? "nothing to learn from" : halted ? "stopped" : "it flows"}.`,
      below: table(state),
    };
  },
};
