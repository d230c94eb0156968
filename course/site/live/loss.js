// "Change the loss yourself": the loss as visitors write it, on plain numbers. Nothing here needs
// jax-js: the slope of whatever they write is measured, by moving one log-prob at a time.

export const GRPO = `let total = 0;
for (let n = 0; n < logprobs.length; n++) {        // completions
  let sum = 0, length = 0;
  for (let t = 0; t < logprobs[n].length; t++) {   // their tokens
    if (!mask[n][t]) continue;                     // padding
    const ratio = exp(logprobs[n][t] - old_logprobs[n][t]);
    const clipped = min(max(ratio, 1 - clip), 1 + clip);
    const objective = min(ratio * advantages[n], clipped * advantages[n]);
    const x = ref_logprobs[n][t] - logprobs[n][t];
    const kl = exp(x) - 1 - x;
    sum += objective - beta * kl;
    length += 1;
  }
  total += sum / max(length, 1);
}
return -total / logprobs.length;`;

const ARRAYS = ["logprobs", "old_logprobs", "ref_logprobs", "advantages", "mask"];
const GIVEN = [...ARRAYS, "clip", "beta"];
const { exp, log, min, max, abs, sqrt } = Math;
const FUNCTIONS = { exp, log, min, max, abs, sqrt };
const KEPT = ["Array", "Infinity", "Math", "NaN", "Number", "isNaN", "undefined"]; // of the world outside

/** The text as a function of an object with all of GIVEN. It sees these and arithmetic alone. */
export function lossOf(text) {
  if (/\bimport\b/.test(text)) throw new SyntaxError("a loss imports nothing");
  const own = new Set([...GIVEN, ...KEPT, ...Object.keys(FUNCTIONS), "eval", "arguments"]);
  const hidden = outside().filter((name) => /^[a-z_$][\w$]*$/i.test(name) && !own.has(name));
  const names = [...GIVEN, ...Object.keys(FUNCTIONS), ...hidden];
  const made = new Function(...names, `"use strict";{\n${text}\n}`);
  return (given) => made(...GIVEN.map((name) => given[name]), ...Object.values(FUNCTIONS));
}

/** What a function can name that it was not given. */
function outside() {
  const names = new Set();
  for (let at = globalThis; at; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  return [...names];
}

/** Close what leads around the hidden names: functions made of texts. For workers only. */
export function close() {
  const kinds = [() => 0, async () => 0, function* () {}, async function* () {}];
  for (const kind of kinds) Object.defineProperty(Object.getPrototypeOf(kind), "constructor", { value: undefined });
  globalThis.eval = undefined;
}

/** What is wrong with a returned value, as the end of "It …"; "" for a number. */
export function unusable(value) {
  if (value === undefined) return "returns nothing: its last line returns one number";
  if (Array.isArray(value)) return `returns an array of ${value.length}, not one number: add it up`;
  if (typeof value !== "number") return `returns a ${typeof value}, not one number`;
  return Number.isFinite(value) ? "" : `returns ${value}, not a number to learn from`;
}

const SMALL = 1e-4; // nats; numbers are of double precision, so that the error is below 1e-7

/** [the loss, its slope in each log-prob (N, T)]; throws with a sentence if there is none. */
export function slopeOf(loss, { logprobs, ...given }) {
  const rows = logprobs.map((row) => [...row]);
  const value = loss({ logprobs: rows, ...given });
  const fault = unusable(value);
  if (fault) throw new Error(`Your loss ${fault}. Nothing was learned from this batch`);
  const at = (row, t, x) => ((row[t] = x), loss({ logprobs: rows, ...given }));
  const slope = rows.map((row, n) =>
    row.map((x, t) => {
      if (!given.mask[n][t]) return 0; // no weight moves what was never sampled
      const rise = at(row, t, x + SMALL) - at(row, t, x - SMALL);
      row[t] = x;
      return rise / (2 * SMALL);
    }),
  );
  if (!slope.flat().every(Number.isFinite)) throw new Error("Your loss has no slope that is a number. Nothing was learned from this batch");
  return [value, slope];
}
