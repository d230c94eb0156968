// The page "Train one": what is pressed, and what is shown then. The training is done by worker.js.

import { charts, share } from "./charts.js";
import { Editor } from "./editor.js";
import { pictureOf, pngOf, save } from "./picture.js";
import { allowed, ALGORITHMS, EVERY, FAULTS, fits, fromLink, healthy, inPython, STEPS, toLink, USES } from "./settings.js";
import { NAMES, rightOf, showGroup, showNow, showPhase, showPhases, summary } from "./show.js";
import { Live, Recorded, recorded } from "./source.js";

const $ = (id) => document.getElementById(id);
const [knobs, calm] = [$("knobs"), matchMedia("(prefers-reduced-motion: reduce)").matches];
const finished = new Map(); // healthy curves of this tab, by their settings
const editor = new Editor(useLoss);
let [settings, unfit] = fromLink(location.search);
let run, ghost, source, file;
let going = false;

// what is shown

function showCurves() {
  $("charts").innerHTML = charts(run, ghost);
  $("did").innerHTML = summary(settings, run, settings.fault ? ghost?.held : undefined);
  $("save").setAttribute("aria-disabled", run.held.length < 2);
}

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
  showPhases(settings);
}

function showState(text) {
  $("state").textContent = text;
  $("run").textContent = going ? "Pause" : "Train";
  // Not `disabled`, which would take the focus away from a button that was just pressed.
  $("run").setAttribute("aria-disabled", isOver());
  $("step").setAttribute("aria-disabled", isOver() || going || !!run.busy);
}

const total = () => source?.history?.length ?? STEPS;
const isOver = () => run.history.length >= total();

// what is done

function beginAnew() {
  going = false;
  if (run?.busy) {
    source?.end(); // a step that is under way cannot be called off
    source = undefined;
  }
  const before = run?.held.length > 1 ? { held: run.held, name: "the run before" } : ghost;
  run = { history: [], held: [], seconds: [], marks: [] };
  ghost = besides() ?? before;
  $("now").textContent = "";
  showPhase();
  showSettings();
  showCurves();
  showState("");
}

/** What a fault is compared with: the healthy curve of the same seed, if it is there. */
function besides() {
  run.pair = false;
  if (!settings.fault) return undefined;
  const key = toLink(healthy(settings));
  if (finished.has(key)) return { held: finished.get(key), name: "healthy, same seed: your run before" };
  if (file?.curves[key]) return { held: file.curves[key], name: "healthy, same seed (recorded)" };
  run.pair = true;
  return { held: [], name: "healthy, same seed, trained beside it" };
}

/** The source of this run, begun if it was not. */
async function started(own) {
  if (own.begun) return;
  showState("Getting ready: the model is compiled for this machine.");
  if (!calm) playMeanwhile(own);
  try {
    source ??= new Live();
    await source.start(settings);
    if (own.pair) await source.start(healthy(settings), "healthy");
  } catch (error) {
    if (own !== run) return;
    source?.end();
    source = await Recorded.of(error.message);
    own.pair = false;
  }
  own.begun = true;
  file ??= await recorded();
  if (settings.seed === 0) own.held.push({ step: 0, ...file.before }); // the same weights and questions
}

const pause = (milliseconds) => new Promise((end) => setTimeout(end, milliseconds));

/** Recorded answers, token by token, for as long as there are none of this run. */
async function playMeanwhile(own) {
  await pause(400);
  const [{ question, group }] = (file ??= await recorded()).history;
  const longest = Math.max(...group.map(({ tokens }) => tokens.length));
  for (let n = 1; own === run && own.busy && !own.begun; n = (n % (longest + 15)) + 1) {
    const begun = group.map(({ tokens }) => ({ tokens: tokens.slice(0, n) }));
    showGroup({ question, group: begun }, "Recorded, while yours gets ready: what the model writes before training.");
    await pause(120);
  }
}

async function oneStep() {
  const own = run;
  own.busy = true;
  showState($("state").textContent);
  await started(own);
  if (own !== run) return;
  showCurves();
  const [from, began, step] = [source, performance.now(), own.history.length + 1];
  const loss = editor.loss;
  if (!loss !== !own.loss && step > 1) own.marks.push({ step: step - 1, text: loss ? "your loss" : "its own loss" });
  own.loss = loss;
  const asked = { withHeldOut: step % EVERY === 0, loss };
  const metrics = await from.step(asked, watching(own, step));
  if (own !== run) return;
  own.seconds.push((performance.now() - began) / 1e3);
  own.history.push(metrics);
  if (metrics.held) own.held.push({ step, ...metrics.held });
  showPhase(going || step >= total() ? undefined : 2);
  $("now").textContent = "";
  showGroup(metrics, `Step ${step}, judged and learned from: ${rightOf(metrics)}.`);
  showCurves();
  if (step === 1 && !own.held.length) {
    showState("Now it is measured: 128 questions that it never trains on.");
    own.held.push({ step: 0, ...(await from.measure()) });
  }
  if (own.pair) await besideIt(own, from, asked);
  if (own !== run) return;
  own.busy = false;
  showCurves();
  tell(own, metrics);
}

/** The same step of the healthy run. */
async function besideIt(own, from, { withHeldOut }) {
  if (!ghost.held.length) ghost.held.push(own.held[0]); // nothing was broken yet
  const { step, held } = await from.step({ run: "healthy", withHeldOut });
  if (held && own === run) ghost.held.push({ step, ...held });
}

/** What is shown while a step is under way: its words, or, while the page runs by itself, one line. */
function watching(own, step) {
  let first, tokens = 0;
  const whole = step === 1 || !going;
  return (writing) => {
    if (own !== run) return;
    const { judged } = writing;
    if (judged === undefined) {
      first ??= performance.now();
      if (step === 1 && ++tokens % 10 === 0) showState(foreseen((performance.now() - first) / (tokens - 1)));
    }
    if (!whole) return void (calm || (showPhase(judged === undefined ? 0 : 2), showNow(step, writing)));
    if (judged !== undefined) {
      showPhase(2);
      const once = step === 1 ? "the first update is compiled, which takes some seconds" : "the update is computed";
      showGroup(writing, `Step ${step}, judged: ${rightOf(writing)}. Now ${once}.`);
    } else if (!calm) {
      showPhase(0);
      showGroup(writing, `Step ${step}, being sampled now, not judged yet.`);
    }
  };
}

/** What a step will take, from the milliseconds of a token; the factors were measured with Wasm. */
function foreseen(token) {
  const updates = healthy(settings).num_iterations;
  const step = (token * 30 * (0.7 + 1.3 * updates) * (run.pair ? 2 : 1)) / 1e3;
  const all = step * STEPS;
  const long = all < 100 ? `${Math.ceil(all / 10) * 10} s` : `${Math.ceil(all / 60)} min`;
  return `About ${step.toFixed(1)} s a step on your machine, ${long} for all ${STEPS}.`;
}

function tell(own, { step, held }) {
  const pace = own.seconds.slice(1).sort((a, b) => a - b)[Math.floor((own.seconds.length - 1) / 2)];
  const how = source.why ? "a recorded run" : pace ? `${pace.toFixed(1)} s a step on ${source.device}` : "";
  if (step >= total()) {
    going = false;
    if (!settings.fault && !own.loss && !own.marks.length && !source.why) finished.set(toLink(settings), own.held);
  }
  const next = step >= total() ? "Done. Now break it, below, or start again with another seed." : "";
  showState([`Step ${step} of ${total()}`, how, next].filter(Boolean).join(" · "));
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
    const way = run.loss ? "Change it, and go on." : "Start again, or try another browser.";
    showState(`It stopped: ${error.message}. ${way}`);
  });

function changed({ target }) {
  if (!target.name) return;
  settings = { ...settings, [target.name]: allowed(target.name, target.value) };
  if (!fits(settings.algorithm, settings.fault)) settings.fault = "";
  if (settings.fault) editor.use(false);
  history.replaceState(null, "", toLink(settings));
  beginAnew();
  showState("New settings: press Train.");
}

/** From the next step on; a fault would break what was written. */
function useLoss(used) {
  if (used && settings.fault) {
    changed({ target: { name: "fault", value: "" } });
    editor.use(true);
  }
  if (!run.busy) showState(used ? "The next step trains with your loss." : "The next step trains with its own loss.");
}

async function savePicture() {
  if (run.held.length < 2) return;
  const broken = settings.fault && `, broken: ${FAULTS[settings.fault][0].replace(/<[^>]+>/g, "")}`;
  const title = `${NAMES[settings.algorithm]} in a browser tab${broken}${run.loss ? ", with a loss of my own" : ""}`;
  const [line] = inPython(settings);
  const address = `${location.host}${location.pathname}${toLink(settings)}`;
  const svg = pictureOf(run, ghost, { title, settings: line, address });
  save(await pngOf(svg), `train-one-${settings.algorithm}-seed-${settings.seed}.png`);
}

const option = ([name, [title, what]]) =>
  `<label><input type="radio" name="fault" value="${name}"><span><b>${title}.</b> ${what}</span></label>`;
$("faults").innerHTML = Object.entries(FAULTS).map(option).join("");
$("run").onclick = train;
$("step").onclick = () => going || run.busy || isOver() || steps();
$("again").onclick = beginAnew;
$("save").onclick = () => attempt(savePicture);
knobs.onchange = $("seed").onchange = changed;
knobs.onsubmit = (event) => event.preventDefault();
$("knobs-more").open = ["algorithm", "group_size", "lr", "num_iterations", "clip", "beta"].some((name) => toLink(settings).includes(`${name}=`));
document.querySelector("#live .app").hidden = false;
beginAnew();
// Until something is pressed: what a recorded run wrote first, not judged yet, and where it came to.
file = await recorded();
const measured = file.history.filter(({ held }) => held).map(({ step, held }) => ({ step, ...held }));
file.curves["?"] = [{ step: 0, ...file.before }, ...measured];
ghost = (run.begun ? ghost : besides()) ?? { held: file.curves["?"], name: "a recorded run with seed 0; a run of yours with that seed should follow it" };
showCurves();
const [{ question, group }] = file.history;
if (!run.history.length && !run.busy) {
  const words = group.map(({ tokens }) => ({ tokens }));
  showGroup({ question, group: words }, "Recorded: what the model wrote before training.");
  showState(unfit || "Press Train. Shown so far: a recorded run.");
  if (!navigator.connection?.saveData) prepare();
}

/** Compile the sampler while the page is read, so that the first words come at once. */
function prepare() {
  const begin = () => {
    if (source || run.busy) return;
    source = new Live();
    source.prepare(settings);
  };
  const later = window.requestIdleCallback ?? setTimeout;
  if (window.Worker) later(begin);
}
