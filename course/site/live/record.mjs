// Record the run that the page plays where it cannot train, after `make site`:
// node course/site/live/record.mjs build/site/html/live > recorded.json (then move it here)

import fs from "node:fs";
import { pathToFileURL } from "node:url";

const built = `${pathToFileURL(process.argv[2])}/`;
const { defaultDevice, init } = await import(`${built}jax/index.js`);
await init("wasm");
defaultDevice("wasm");
const [{ weightsOf }, { Tokenizer }, { Trainer }, { DEFAULTS, EVERY, NEEDS, STEPS, toLink }] = await Promise.all(
  ["model", "tokenizer", "training", "settings"].map((name) => import(`${built}${name}.js`)),
);
const world = JSON.parse(fs.readFileSync(new URL("world.json", built), "utf8"));
const weights = weightsOf(new Uint8Array(fs.readFileSync(new URL("warm.safetensors", built))).buffer);

/** A run's accuracy before its first step, and every step. */
async function trained(settings) {
  const trainer = await Trainer.of(world, new Tokenizer(world.tokenizer), weights, settings);
  const before = await trainer.evaluate();
  const history = [];
  for (let step = 1; step <= STEPS; step++) {
    const metrics = await trainer.step({ withKl: step % EVERY === 0 });
    if (step % EVERY === 0) metrics.held = await trainer.evaluate();
    history.push(metrics);
  }
  return { before, history };
}

const { before, history } = await trained({});
const curves = {};
for (const settings of Object.values(NEEDS)) { // the healthy runs beside the faults that need them
  const run = await trained(settings);
  const held = run.history.filter((metrics) => metrics.held).map(({ step, held }) => ({ step, ...held }));
  curves[toLink({ ...DEFAULTS, ...settings })] = [{ step: 0, ...run.before }, ...held];
}
const short = (_, value) => (typeof value === "number" ? Number(value.toPrecision(3)) : value);
process.stdout.write(`${JSON.stringify({ before, history, curves }, short)}\n`);
