// rlcourse/tasks: word problems in the same order as Python draws them, and their rewards.

import { sha256 } from "./hash.js";
import { Random } from "./random.js";

const OPERATIONS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => Math.floor(a / b),
};

/** `count` different problems {question, answer} of "train" or "evaluation". */
export async function problems(world, count, seed, split) {
  const drawn = new Map();
  const random = await Random.of(`${split}:default:${seed}`);
  const byLength = [1, 2, 3].map((n) => world.templates.filter((t) => t.steps.length === n));
  while (drawn.size < count) {
    const template = random.choice(random.choices(byLength, world.level.steps));
    const numbers = drawNumbers(template, world.level, random);
    if (isHeldOut(template.name, numbers) !== (split === "evaluation")) continue;
    const question = tell(world, template, numbers, random);
    drawn.set(question, { question, answer: solve(template, numbers) });
    const { length } = template.steps; // Python asks of each step whether it is to be careless
    for (let i = 0; i < 2 * length + 1 + (length > 1); i++) random.random();
  }
  return [...drawn.values()];
}

/** The problems of a step; each epoch goes through all of them in an order of its own. */
export async function problemsOfStep(all, count, step, seed) {
  const chosen = [];
  for (let position = step * count; position < (step + 1) * count; position++) {
    const epoch = Math.floor(position / all.length);
    if (all.epoch !== epoch) {
      const order = [...all.keys()];
      (await Random.of(`${seed}/epoch/${epoch}`)).shuffle(order);
      Object.assign(all, { epoch, order });
    }
    chosen.push(all[all.order[position % all.length]]);
  }
  return chosen;
}

function drawNumbers(template, level, random) {
  for (;;) {
    const numbers = template.numbers.map((kind) => random.randint(...level[kind]));
    const whole = ({ a, op, b, result }) =>
      (op === "/" ? b > 0 && a % b === 0 : op !== "-" || a >= b) &&
      1 <= result && result <= level.limit;
    if (worked(template, numbers).every(whole)) return numbers;
  }
}

/** The steps that solve a problem, with their numbers. */
function worked(template, numbers) {
  const values = Object.fromEntries(numbers.map((number, i) => ["abcd"[i], number]));
  return template.steps.map(([left, op, right], i) => {
    const [a, b] = [values[left], values[right]];
    const result = (values[`s${i + 1}`] = OPERATIONS[op](a, b));
    return { a, op, b, result };
  });
}

function solve(template, numbers) {
  const steps = worked(template, numbers);
  const lines = steps.map(({ a, op, b, result }) => `${a} ${op} ${b} = ${result}`);
  return [...lines, `#### ${steps.at(-1).result}`].join("\n");
}

function tell(world, template, numbers, random) {
  const [name, other] = random.sample(Object.keys(world.names), 2);
  const [He, he] = world.names[name];
  const text = random.choice(template.texts);
  const things = random.choice(world.things);
  const boxes = random.choice(world.containers);
  const [a, b, c, d] = numbers;
  const words = { a, b, c, d, name, other, He, he, things, boxes };
  return text.replace(/\{(\w+)\}/g, (_, word) => words[word]);
}

/** One problem in eight, which only evaluation sees. */
const isHeldOut = (name, numbers) => (sha256(`${name}:${numbers}`) >>> 24) % 8 === 0;

// rewards

/** The number after the last ####, in one spelling; null without one. */
export function extract_answer(text) {
  const mark = text.lastIndexOf("####");
  const tail = mark < 0 ? "" : text.slice(mark + 4);
  const found = tail.match(/^([-−$\s]*)([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)/);
  if (!found) return null;
  const [whole, fraction = ""] = found[2].replaceAll(",", "").split(".");
  const decimals = fraction.replace(/0+$/, "");
  const number = (whole.replace(/^0+/, "") || "0") + (decimals && `.${decimals}`);
  return /[-−]/.test(found[1]) && number !== "0" ? `-${number}` : number;
}

/** 1 where the completion's final number is the answer's. */
export function correctness_reward(completion, answer) {
  const given = extract_answer(completion);
  return Number(given !== null && given === extract_answer(answer));
}

/** 1 for any number after ####: the reward that "for form alone" switches on. */
export function form_reward(completion) {
  return Number(extract_answer(completion) !== null);
}
