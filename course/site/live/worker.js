// The trainer off the page's thread, so that the page never waits. One message at a time, answered
// with {id, …}: {id, prepare} compiles the sampler before anybody presses a button, {id, start:
// settings, run} begins a run, {id, step: {run, withHeldOut, loss}} makes a step of it, {id, measure:
// run} says how good the policy was before the first.

import { defaultDevice, init } from "./jax/index.js";
import { close, lossOf } from "./loss.js";
import { weightsOf } from "./model.js";
import { Tokenizer } from "./tokenizer.js";
import { Trainer } from "./training.js";

const fetched = async (name) => {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name} cannot be loaded: ${response.status}`);
  return response;
};
const files = Promise.all([
  fetched("world.json").then((response) => response.json()),
  fetched("warm.safetensors").then((response) => response.arrayBuffer()),
]);
const trainers = {};
let device;
let queue = Promise.resolve();

/** WebGPU where a graphics card stands behind it, else Wasm. */
async function chooseDevice(asked) {
  const adapter = asked !== "wasm" && (await navigator.gpu?.requestAdapter());
  const wanted = adapter && !adapter.info?.isFallbackAdapter ? ["webgpu", "wasm"] : ["wasm"];
  const there = await init(...wanted);
  const device = wanted.find((name) => there.includes(name));
  if (!device) throw new Error("there is neither WebGPU nor Wasm");
  defaultDevice(device);
  return device;
}

/** A trainer whose sampler has written a token, so that a device that cannot has said so. */
async function begun(settings, asked) {
  if (!device || asked) device = await chooseDevice(asked);
  const [world, weights] = await files;
  const trainer = await Trainer.of(world, new Tokenizer(world.tokenizer), weightsOf(weights), settings);
  await trainer.prepare();
  return trainer;
}

const answers = {
  async prepare(settings) {
    (await begun(settings)).dispose();
    return { device };
  },

  async start(settings, { run, device: asked }) {
    trainers[run]?.dispose();
    trainers[run] = undefined;
    trainers[run] = await begun(settings, asked);
    return { device };
  },

  async measure(run) {
    const trainer = trainers[run];
    return { held: await trainer.evaluate(trainer.reference) };
  },

  async step({ run, withHeldOut, loss }, { id }) {
    const trainer = trainers[run];
    const watch = (writing) => postMessage({ id, writing });
    if (loss) close();
    const metrics = await trainer.step({ watch, withKl: withHeldOut, own: loss && lossOf(loss) });
    return { ...metrics, held: withHeldOut && (await trainer.evaluate()) };
  },
};

async function answer(data) {
  const kind = Object.keys(answers).find((name) => name in data);
  return { id: data.id, ...(await answers[kind](data[kind], data)) };
}

onmessage = ({ data }) => {
  const failed = (error) => postMessage({ id: data.id, error: String(error?.message ?? error) });
  queue = queue.then(() => answer(data)).then(postMessage, failed);
};
