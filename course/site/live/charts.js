// The curves of a run, as SVG. Their axes stand from the first step on, so that nothing jumps.

import { EVERY, HELD_OUT, ROWS, STEPS } from "./settings.js";

const WIDTH = 480, LEFT = 44, RIGHT = 8, TOP = 12, BOTTOM = 32;

export const share = (x) => (x >= 0.995 ? "1.00" : x.toFixed(2).replace(/^0/, ""));

export const percent = (x) => `${Math.round(100 * x)} %`;

/** Lines, each {points: [[step, value], …], kind}, a band of [step, low, high], marks {step, text}. */
function chart(label, height, top, ticks, lines, band = [], marks = []) {
  const x = (step) => (LEFT + (step / STEPS) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const y = (value) => (TOP + (1 - Math.min(value / top, 1)) * (height - TOP - BOTTOM)).toFixed(1);
  const place = ([step, value]) => `${x(step)} ${y(value)}`;
  const path = (kind, points) =>
    points.length ? `<path class="${kind}" d="M${points.map(place).join("L")}"/>` : "";
  const rows = ticks.map((tick) =>
    `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(tick)}" y2="${y(tick)}"/>
     <text x="${LEFT - 6}" y="${+y(tick) + 4}" text-anchor="end">${tick}</text>`);
  const columns = [[0, "middle", 0], [STEPS / 2, "middle", STEPS / 2], [STEPS, "end", `step ${STEPS}`]].map(
    ([step, anchor, text]) =>
      `<text x="${x(step)}" y="${height - 4}" text-anchor="${anchor}">${text}</text>`,
  );
  const above = band.map(([step, , high]) => [step, high]);
  const below = band.map(([step, low]) => [step, low]).reverse();
  const dot = (kind) => ([step, value]) =>
    `<circle class="${kind}" cx="${x(step)}" cy="${y(value)}" r="3.5"/>`;
  const drawn = lines.map(({ points, kind, dots }) =>
    path(kind, points) + (dots ? points.map(dot(kind)).join("") : ""));
  const marked = marks.map(({ step, text }) =>
    `<line class="mark" x1="${x(step)}" x2="${x(step)}" y1="${TOP}" y2="${height - BOTTOM}"/>
     <text x="${+x(step) + 4}" y="${TOP + 10}">${text}</text>`);
  const parts = [...rows, ...columns, ...marked, path("band", [...above, ...below]), ...drawn];
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${label}">${parts.join("")}</svg>`;
}

/** A power of two times `least`, which holds all values: an axis that seldom moves. */
const axis = (least, values) =>
  least * 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(least, ...values) / least)));

/** Held-out accuracy and reward of a run {history, held, marks}; `ghost` is the one behind it. */
export function accuracyChart({ history, held, marks }, ghost) {
  const curve = (held) => held.map(({ step, accuracy }) => [step, accuracy]);
  const lines = [
    { points: ghost ? curve(ghost.held) : [], kind: "ghost" },
    { points: history.map(({ step, reward }) => [step, reward]), kind: "reward" },
    { points: curve(held), kind: "held", dots: true },
  ];
  const [now] = held.slice(-1);
  const label = now
    ? `Held-out accuracy ${share(now.accuracy)} after ${now.step} steps, from ${share(held[0].accuracy)}`
    : "Held-out accuracy, not measured yet";
  const band = held.map(({ step, low, high }) => [step, low, high]);
  return chart(label, 250, 1, [0, 0.5, 1], lines, band, marks);
}

/** All curves of a run. */
export function charts(run, ghost) {
  const { history, held } = run;
  const of = (name) => history.filter((m) => m[name] !== undefined).map((m) => [m.step, m[name]]);
  const entropy = of("entropy");
  const kl = history.length ? [[0, 0], ...of("kl")] : [];
  const [now, last] = [held.at(-1), history.at(-1)];
  const said = (value, digits) => (value === undefined ? "–" : value.toFixed(digits));
  const small = (name, title, points, least, digits) => {
    const top = axis(least, points.map(([, value]) => value));
    const value = said(points.at(-1)?.[1], digits);
    const lines = [{ points, kind: name, dots: name === "kl" }];
    return `<figure><figcaption><b>${title}</b> <output>${value}</output></figcaption>
      ${chart(`${title} over the steps, now ${value}`, 190, top, [0, top / 2, top], lines)}</figure>`;
  };
  const interval = now && `<small>[${share(now.low)}, ${share(now.high)}]</small>`;
  const accuracy = now ? `${share(now.accuracy)} ${interval}` : "–";
  return `<figure><figcaption>
    <span class="of-held"><b>Held-out accuracy</b> <output>${accuracy}</output> likeliest tokens</span>
    <span class="of-reward"><b>Reward</b> <output>${last ? share(last.reward) : "–"}</output> tokens drawn at random</span>
    ${ghost?.held.length ? `<span class="of-ghost">${ghost.name}</span>` : ""}</figcaption>
    ${accuracyChart(run, ghost)}</figure>
    <div class="pair">${small("entropy", "Entropy", entropy, 0.2, 3)}
    ${small("kl", "KL to the start", kl, 0.1, 3)}</div>
    <p class="key">Held-out: ${HELD_OUT} questions that it never trains on, each answered with the likeliest tokens,
    every ${EVERY} steps; the band is a 95 % interval. Reward: the mean over the ${ROWS} completions of a
    step. Their tokens are drawn at random. Once the model has learned, it is right more often with the likeliest tokens. Entropy and KL in nats per token.</p>`;
}
