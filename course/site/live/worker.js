// The trainer off the page's thread, so that the page never waits. One message at a time:
// {id, start: settings, device} and {id, step: {withHeldOut}} are answered with {id, …}.

import { defaultDevice, init } from "./jax/index.js";
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
let trainer;
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

async function answer({ id, start, device, step }) {
  if (start) {
    trainer?.dispose();
    trainer = undefined;
    const [found, [world, weights]] = await Promise.all([chooseDevice(device), files]);
    const tokenizer = new Tokenizer(world.tokenizer);
    trainer = await Trainer.of(world, tokenizer, weightsOf(weights), start);
    return { id, device: found, held: await trainer.evaluate() };
  }
  const watch = (writing) => postMessage({ id, writing });
  const metrics = await trainer.step({ watch, withKl: step.withHeldOut });
  return { id, ...metrics, held: step.withHeldOut && (await trainer.evaluate()) };
}

onmessage = ({ data }) => {
  const failed = (error) => postMessage({ id: data.id, error: String(error?.message ?? error) });
  queue = queue.then(() => answer(data)).then(postMessage, failed);
};
