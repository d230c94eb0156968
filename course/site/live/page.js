// The page "Train one": what is pressed, what is shown. The training is done by worker.js.

import { charts, share } from "./charts.js";
import { allowed, ALGORITHMS, EVERY, FAULTS, fits, fromLink, inPython, STEPS, toLink, USES } from "./settings.js";

const $ = (id) => document.getElementById(id);
const [knobs, calm] = [$("knobs"), matchMedia("(prefers-reduced-motion: reduce)").matches];
const here = (name) => new URL(name, import.meta.url);
let [settings, unfit] = fromLink(location.search);
let run, ghost, source;
let going = false;

/** A worker that is asked one thing at a time. */
class Live {
  #worker = new Worker(here("worker.js"), { type: "module" });
  #asked = 0;
  device = "";

  #ask(message, watch) {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }) => {
        if (data.id !== id) return;
        if (data.writing) watch?.(data.writing);
        else if (data.error) reject(new Error(data.error));
        else resolve(data);
      };
      this.#worker.onerror = ({ message }) => reject(new Error(message || "no worker"));
      this.#worker.postMessage({ id, ...message });
    });
  }

  async start(settings) {
    const begin = (device) => this.#ask({ start: settings, device });
    const found = await begin().catch(() => begin("wasm"));
    this.device = found.device === "webgpu" ? "WebGPU" : "Wasm";
    return found.held;
  }

  step = (withHeldOut, watch) => this.#ask({ step: { withHeldOut } }, watch);

  end() {
    this.#worker.terminate();
  }
}

/** The same from a file, for machines that cannot. */
class Recorded {
  device = "recorded";
  #at = 0;

  static async of(why) {
    const source = new Recorded();
    Object.assign(source, { why, ...(await (await fetch(here("recorded.json"))).json()) });
    return source;
  }

  start = async () => ((this.#at = 0), this.before);

  async step() {
    await new Promise((resolve) => setTimeout(resolve, 600));
    return this.history[this.#at++];
  }

  end() {}
}

// what is shown

const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt()};`);
const SIGNS = { "\n": '<i> ↵ </i>', "</s>": '<i> end</i>', "<pad>": "" };

function showGroup({ question, group }) {
  $("question").textContent = question;
  const hardest = Math.max(1e-9, ...group.flatMap(({ push = [] }) => push.map(Math.abs)));
  const token = (text, push = 0) => {
    const strength = Math.round((Math.abs(push) / hardest) * 100);
    const kind = push > 0 ? "likelier" : "rarer";
    const style = strength > 2 ? ` class="${kind}" style="--push:${strength}%"` : "";
    return `<span${style}>${SIGNS[text] ?? escaped(text)}</span>`;
  };
  const line = ({ tokens, push = [], right, advantage }) => {
    const judged = right !== undefined;
    const mark = judged ? (right ? "✓" : "✗") : "·";
    const said = judged ? (right ? "right" : "wrong") : "being written";
    const weight = judged ? `${advantage < 0 ? "−" : "+"}${Math.abs(advantage).toFixed(2)}` : "";
    return `<li class="${said}"><span class="mark" role="img" aria-label="${said}">${mark}</span>
      <code>${tokens.map((text, i) => token(text, push[i])).join("")}</code><span class="weight">${weight}</span></li>`;
  };
  $("group").innerHTML = group.map(line).join("");
}

const showCurves = () => ($("charts").innerHTML = charts(run, ghost));

function showSettings() {
  for (const field of [...knobs.elements, $("seed")]) {
    if (field.type === "radio") field.checked = field.value === settings.fault;
    else if (field.name) field.value = String(settings[field.name]);
    const { algorithm } = settings;
    if (field.type === "radio") field.disabled = !fits(algorithm, field.value);
    else field.disabled = ["clip", "beta"].includes(field.name) && !USES[algorithm].includes(field.name);
  }
  const [line, lacks] = inPython(settings);
  $("of-algorithm").innerHTML = ALGORITHMS[settings.algorithm];
  $("command").textContent = line;
  $("caveat").textContent = lacks;
  $("link").href = toLink(settings);
}

function showState(text) {
  $("state").textContent = text;
  $("run").textContent = going ? "Pause" : "Train";
  // Not `disabled`, which would take the focus away from a button that was just pressed.
  $("run").setAttribute("aria-disabled", isOver());
  $("step").setAttribute("aria-disabled", isOver() || going || !!run.busy);
}

const isOver = () => run.history.length >= (source?.history?.length ?? STEPS);

// what is done

function beginAnew() {
  going = false;
  if (run?.held.length > 1) ghost = run;
  run = { history: [], held: [], seconds: [] };
  source?.end();
  source = undefined;
  showSettings();
  showCurves();
  showState("");
}

/** The source of this run, asked to start if it has not. */
async function started(own) {
  if (source) return source;
  showState("Compiling the model for this machine: a few seconds.");
  try {
    source = new Live();
    own.held.push({ step: 0, ...(await source.start(settings)) });
    showState("Step 1 is being written.");
  } catch (error) {
    if (own !== run) return undefined;
    source?.end();
    source = await Recorded.of(error.message);
    own.held = [{ step: 0, ...(await source.start()) }];
  }
  return source;
}

async function oneStep() {
  const own = run;
  own.busy = true;
  showState($("state").textContent);
  const from = (await started(own)) && source;
  if (own !== run) return;
  showCurves();
  const began = performance.now();
  const last = own.history.length + 1;
  // While it runs by itself, what was judged stays in sight; a single step is seen being written.
  const watched = !going && !calm;
  const watch = (writing) => own === run && watched && showGroup(writing);
  const metrics = await from.step(last % EVERY === 0, watch);
  if (own !== run) return;
  own.seconds.push((performance.now() - began) / 1e3);
  own.history.push(metrics);
  if (metrics.held) own.held.push({ step: metrics.step, ...metrics.held });
  own.busy = false;
  showGroup(metrics);
  showCurves();
  tell(own, metrics);
}

function tell(own, { step, held }) {
  const total = source.history?.length ?? STEPS;
  const pace = own.seconds.slice(1).sort((a, b) => a - b)[Math.floor((own.seconds.length - 1) / 2)];
  const how = source.why ? "a recorded run" : pace ? `${pace.toFixed(1)} s a step by ${source.device}` : "";
  if (step >= total) going = false;
  showState([`Step ${step} of ${total}`, how].filter(Boolean).join(" · "));
  if (held) $("said").textContent = `Step ${step}: held-out accuracy ${share(held.accuracy)}.`;
}

/** One step, and the next ones as long as it is to go on. */
async function steps() {
  const own = run;
  do await attempt(oneStep);
  while (going && own === run);
}

function train() {
  if (isOver()) return;
  going = !going;
  showState(going || !run.busy ? $("state").textContent : "It pauses after this step.");
  if (going && !run.busy) steps(); // else the steps that are under way go on, or end
}

const attempt = (what) =>
  what().catch((error) => {
    going = run.busy = false;
    showState(`It stopped: ${error.message}. Start again, or try another browser.`);
  });

function changed({ target }) {
  if (!target.name) return;
  settings = { ...settings, [target.name]: allowed(target.name, target.value) };
  if (!fits(settings.algorithm, settings.fault)) settings.fault = "";
  history.replaceState(null, "", toLink(settings));
  beginAnew();
  showState("New settings: press Train.");
}

const option = ([name, [title, what]]) =>
  `<label><input type="radio" name="fault" value="${name}"><span><b>${title}.</b> ${what}</span></label>`;
$("faults").innerHTML = Object.entries(FAULTS).map(option).join("");
$("run").onclick = train;
$("step").onclick = () => going || run.busy || isOver() || steps();
$("again").onclick = beginAnew;
knobs.onchange = $("seed").onchange = changed;
knobs.onsubmit = (event) => event.preventDefault();
document.querySelector("#live .app").hidden = false;
beginAnew();
// Until something is pressed: what a recorded run wrote first, not judged yet, and where it came to.
const recorded = await (await fetch(here("recorded.json"))).json();
const measured = recorded.history.filter(({ held }) => held).map(({ step, held }) => ({ step, ...held }));
ghost ??= { held: [{ step: 0, ...recorded.before }, ...measured], name: "a recorded run of grpo" };
showCurves();
const [{ question, group }] = recorded.history;
if (!run.history.length && !run.busy) {
  showGroup({ question, group: group.map(({ tokens }) => ({ tokens })) });
  showState(unfit || "Shown so far: a recorded run, and what it wrote first.");
}
