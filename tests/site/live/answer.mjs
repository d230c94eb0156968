// Answers what the tests ask of the page's modules: node answer.mjs BUILT < asks.json, as JSON.

import fs from "node:fs";
import { pathToFileURL } from "node:url";

const built = `${pathToFileURL(process.argv[2])}/`;
const jax = await import(`${built}jax/index.js`);
await jax.init("wasm");
jax.defaultDevice("wasm");
const modules = ["algorithms", "faults", "judging", "loss", "model", "optimizer", "sampler", "settings", "tasks"];
const [algorithms, faults, judging, losses, model, optimizer, sampler, settings, tasks, tokenizers, training] = await Promise.all(
  [...modules, "tokenizer", "training"].map(
    (name) => import(`${built}${name}.js`),
  ),
);
const world = JSON.parse(fs.readFileSync(new URL("world.json", built), "utf8"));
const weights = model.weightsOf(new Uint8Array(fs.readFileSync(new URL("warm.safetensors", built))).buffer);
const tokenizer = new tokenizers.Tokenizer(world.tokenizer);

/** {shape, data} as an array; data may hold "nan", "inf" and "-inf". */
const array = ({ shape, data }) => model.array(data.map(number), shape);
const NAMED = { nan: NaN, inf: Infinity, "-inf": -Infinity };
const number = (x) => NAMED[x] ?? x;
const plain = async (x) => ({ shape: x.shape, data: [...(await x.data())] });

const answers = {
  problems: ({ count, seed, split }) => tasks.problems(world, count, seed, split),
  order: async ({ total, count, steps, seed }) => {
    const all = [...Array(total).keys()];
    const found = [];
    for (const step of steps) found.push(await tasks.problemsOfStep(all, count, step, seed));
    return found;
  },
  encode: ({ texts }) => texts.map((text) => tokenizer.encode(text)),
  prompt: ({ texts }) => texts.map((text) => tokenizer.prompt(text)),
  decode: ({ rows }) => rows.map((ids) => tokenizer.decode(ids)),
  extract_answer: ({ texts }) => texts.map(tasks.extract_answer),
  recipe: () => ({ defaults: settings.DEFAULTS, methods: training.METHODS }),

  /** A function of algorithms.js on a case; with `by` its gradient in that argument, too. */
  call: async ({ name, given, by, fault }) => {
    const { minimum } = faults.FAULTS[fault] ?? {};
    const made = () =>
      Object.fromEntries(
        Object.entries({ ...given, minimum }).map(([key, x]) => [key, x?.shape ? array(x) : number(x)]),
      );
    const value = await plain(algorithms[name](made()));
    if (!by) return { value };
    const { [by]: x, ...rest } = made();
    const sum = (x) => algorithms[name]({ ...jax.tree.ref(rest), [by]: x }).sum();
    const gradient = jax.grad(sum)(x);
    return { value, gradient: await plain(gradient) };
  },

  /** What is said of GRPO's loss, as the page has it, with one text in it replaced. */
  judge: ({ edits }) => {
    const known = JSON.parse(fs.readFileSync(new URL("cases.json", built), "utf8"));
    return edits.map(([old, text]) => judging.judged(losses.GRPO.replace(old, text), known));
  },

  /** Log-probs of given completions under the shipped weights. */
  logprobs: async ({ prompts, tokens, group_size }) => {
    const batch = training.batchOf({ prompts, tokens, group_size });
    return plain(model.logprobs(model.parametersOf(weights), batch));
  },

  /** Greedy completions, and what their log-probs were said to be. */
  greedy: ({ prompts, group_size }) =>
    sampler.sample(model.parametersOf(weights), prompts, { group_size, max_tokens: 32, width: 41 }),

  /** Weights after some clipped updates by these gradients. */
  adamw: async ({ start, gradients, lr }) => {
    let p = { x: array(start) };
    let state = optimizer.moments(jax.tree.ref(p));
    for (const [i, gradient] of gradients.entries()) {
      const [shortened] = optimizer.clip_grad_norm({ x: array(gradient) });
      [p, state] = optimizer.adamw(p, state, shortened, optimizer.schedule(lr, i + 1));
    }
    return plain(p.x);
  },

  /** Held-out accuracy before and after some steps, and each step's metrics; by `loss`, a text. */
  train: async ({ settings, steps, loss }) => {
    const trainer = await training.Trainer.of(world, tokenizer, weights, settings);
    const before = await trainer.evaluate();
    const history = [];
    const own = loss && losses.lossOf(losses[loss] ?? loss);
    for (let i = 1; i <= steps; i++) {
      const { group, question, ...metrics } = await trainer.step({ withKl: i === steps, own });
      history.push(metrics);
    }
    const after = await trainer.evaluate();
    const again = await trainer.evaluate(trainer.reference);
    trainer.dispose();
    return { before, after, again, history };
  },
};

const found = [];
for (const { ask, ...given } of JSON.parse(fs.readFileSync(0, "utf8"))) found.push(await answers[ask](given));
process.stdout.write(JSON.stringify(found));
