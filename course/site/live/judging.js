// A loss that somebody types, tried on the checks' own cases, and its mistake named as a notebook
// names it: by the numbers that each declared mistake gives on these cases.

import { lossOf, unusable } from "./loss.js";

/** null in a file is NaN, which JSON does not know. */
const near = (a, b) => (b === null ? Number.isNaN(a) : Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(b)));
const frozen = (x) => (typeof x === "object" ? Object.freeze(Object.values(x).map(frozen)) : x);
const UNKNOWN = "It is not GRPO’s loss, and its numbers are those of no mistake that the course has on its list.";

/** The value of each case, or one sentence on why there is none. */
function tried(text, cases) {
  let loss;
  try {
    loss = lossOf(text);
  } catch ({ message }) {
    return { why: `This is not JavaScript yet: ${message}.` };
  }
  const values = [];
  for (const { label, given } of cases) {
    try {
      values.push(loss(Object.fromEntries(Object.entries(given).map(([name, x]) => [name, frozen(x)]))));
    } catch ({ message }) {
      return { why: `It stops on the case “${label}”: ${message}.` };
    }
    const [value] = values.slice(-1);
    if (typeof value !== "number") return { why: `On the case “${label}” it ${unusable(value)}.` };
  }
  return { values };
}

/** [the declared mistake that explains every case, whether its sign is flipped as well]. */
function explained(values, wrong, mistakes) {
  for (const sign of [1, -1]) {
    const agrees = (value, theirs) => near(value, theirs && sign * theirs);
    const found = mistakes.find((mistake) =>
      wrong.length >= mistake.telling && values.every((value, i) => agrees(value, mistake.values[i])));
    if (found) return [found, sign < 0];
  }
  return [];
}

/**
 * {said: sentences, named, usable: whether a step can be made with it, right, cases, wrong: the first
 * three cases that differ}.
 */
export function judged(text, { cases, mistakes }) {
  const { values, why } = tried(text, cases);
  if (why) return { said: [why], usable: false };
  const wrong = cases.flatMap(({ expected }, i) => (near(values[i], expected) ? [] : [i]));
  const about = { cases: cases.length, right: cases.length - wrong.length, usable: values.some(Number.isFinite) };
  if (!wrong.length) return { ...about, said: ["Right on every case."] };
  if (!about.usable) return { ...about, said: [`It ${unusable(values[0])}, on every case.`] };
  const [mistake, turned] = explained(values, wrong, mistakes);
  const also = turned ? ", with the sign flipped as well" : "";
  return {
    ...about, named: !!mistake,
    said: mistake ? [`Your numbers are those of ${mistake.name}${also}.`, mistake.diagnosis] : [UNKNOWN],
    wrong: wrong.slice(0, 3).map((i) => ({ label: cases[i].label, expected: cases[i].expected, value: values[i] })),
  };
}
