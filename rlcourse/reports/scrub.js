// A run to scrub through, in the element that holds this script; its data are next to it as JSON.
(() => {
  "use strict";
  const home = document.currentScript.parentElement;
  const run = JSON.parse(home.querySelector("script[type='application/json']").textContent);
  const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [200, 34, 12, 8, 24];
  const STRONGEST = 2.5; // an advantage that gets the full tint: that of one right among eight
  const LONG = 80; // tokens: such completions get wider boxes
  const SIGNS = { "\n": "\u23ce\n", "</s>": " \u25a0 " };
  let width = 640; // of the curves, in pixels

  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const number = (value, digits = 2) => value.toFixed(digits).replace("-", "\u2212");
  const signed = (value) => (Math.abs(value) < 0.005 ? "0" : (value > 0 ? "+" : "") + number(value));
  const written = (name, value) =>
    name.startsWith("groups") ? `${Math.round(100 * value)}\u00a0%` : number(value, name.startsWith("tokens") ? 1 : 2);

  // the curves

  const tops = [...run.reward.map(([, v]) => v), ...run.accuracy.map(([, , , high]) => high)];
  const [low, high] = [Math.min(0, ...tops), Math.max(1, ...tops)];
  const X = (step) => LEFT + (step / run.steps) * (width - LEFT - RIGHT);
  const Y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const path = (points) => "M" + points.map(([x, y]) => `${X(x).toFixed(1)} ${Y(y).toFixed(1)}`).join("L");

  /** The mean of about a tenth of the curve around each point. */
  function smooth(points) {
    const reach = Math.max(1, Math.round(points.length / 20));
    return points.map(([step], i) => {
      const near = points.slice(Math.max(0, i - reach), i + reach + 1);
      return [step, near.reduce((sum, [, value]) => sum + value, 0) / near.length];
    });
  }

  function curves() {
    const rules = [low, (low + high) / 2, high].map((value) => `
      <line class="rule" x1="${LEFT}" x2="${width - RIGHT}" y1="${Y(value)}" y2="${Y(value)}"/>
      <text x="${LEFT - 6}" y="${Y(value) + 4}" text-anchor="end">${number(value, 1)}</text>`);
    const steps = [0, Math.round(run.steps / 2), run.steps].map((step) =>
      `<text x="${X(step)}" y="${HEIGHT - 6}" text-anchor="${step === run.steps ? "end" : "middle"}">${step === run.steps ? "step " : ""}${step}</text>`);
    const above = run.accuracy.map(([step, , , top]) => [step, top]);
    const below = run.accuracy.map(([step, , bottom]) => [step, bottom]).reverse();
    const dots = run.accuracy.map(([step, value]) => `<circle cx="${X(step)}" cy="${Y(value)}" r="3.5"/>`);
    const held = run.accuracy.length
      ? `<path class="band" d="${path([...above, ...below])}Z"/><path class="held" d="${path(run.accuracy)}"/>${dots.join("")}` : "";
    const ends = run.accuracy.length ? `, held-out accuracy from ${number(run.accuracy[0][1])} to ${number(run.accuracy.at(-1)[1])}` : "";
    const label = `Curves over ${run.steps} steps: reward from ${number(run.reward[0][1])} to ${number(run.reward.at(-1)[1])}${ends}`;
    return `<svg viewBox="0 0 ${width} ${HEIGHT}" width="${width}" height="${HEIGHT}" role="img" aria-label="${label}">${rules.join("")}${steps.join("")}
      <path class="reward" d="${path(run.reward)}"/><path class="mean" d="${path(smooth(run.reward))}"/>${held}
      <line class="cursor" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/></svg>`;
  }

  // what was written

  function completion({ tokens, reward, advantage = [], more }) {
    const spans = tokens.map((text, i) => {
      const value = advantage.length > 1 ? advantage[i] : (advantage[0] ?? 0);
      const span = make("span", { textContent: SIGNS[text] ?? text });
      span.style.setProperty("--hue", value < 0 ? "var(--minus)" : "var(--plus)");
      const strength = value === 0 ? 0 : 0.12 + 0.4 * Math.min(1, Math.abs(value) / STRONGEST);
      span.style.setProperty("--push", strength.toFixed(3));
      if (advantage.length > 1) span.title = signed(value);
      return span;
    });
    const mean = advantage.length ? advantage.reduce((a, b) => a + b) / advantage.length : undefined;
    const side = mean > 0.005 ? "up" : mean < -0.005 ? "down" : "";
    const left = more ? [make("small", { textContent: ` \u2026 ${more} more tokens` })] : [];
    const facts = [make("span", { textContent: `reward ${number(reward, Number.isInteger(reward) ? 0 : 2)}` })];
    if (mean !== undefined) facts.push(make("span", { className: side, textContent: signed(mean) }));
    return make("li", {}, make("p", {}, ...facts), make("div", { className: "said" }, ...spans, ...left));
  }

  const measured = (step) => run.accuracy.filter(([at]) => at <= step).at(-1);

  function facts({ step, facts: known }) {
    const held = measured(step);
    const rows = Object.entries(known).map(([name, value]) => [name, written(name, value), name === "mean reward" ? "reward" : ""]);
    if (held) rows.push([held[0] === step ? "held-out accuracy" : `held-out accuracy, step ${held[0]}`, number(held[1]), "held"]);
    return rows.map(([name, value, kind]) =>
      make("span", {}, `${name} `, make("b", { textContent: value, className: kind })));
  }

  // what is moved

  const id = `rl-scrub-${document.querySelectorAll(".rl-scrub").length}`;
  const last = run.moments.length - 1;
  const input = make("input", { type: "range", id, min: 0, max: last, step: 1, value: 0 });
  const output = make("output", { ariaLive: "off" }); // the slider says it itself
  output.htmlFor.add(id);
  const play = make("button", { type: "button", textContent: "Play" });
  const chart = make("div");
  const list = make("p", { className: "facts" });
  const choice = make("fieldset");
  const question = make("p", { className: "question" });
  const group = make("ol");
  let chosen = 0;
  let timer;

  function choose(moment) {
    const one = moment.groups[Math.min(chosen, moment.groups.length - 1)];
    question.textContent = one.question;
    group.className = one.completions.some(({ tokens }) => tokens.length > LONG) ? "long" : "";
    group.replaceChildren(...one.completions.map(completion));
  }

  function choices(moment) {
    const labels = moment.groups.map((_, i) => {
      const radio = make("input", { type: "radio", name: id, checked: i === Math.min(chosen, moment.groups.length - 1) });
      radio.onchange = () => ((chosen = i), choose(moment));
      return make("label", {}, radio, `${i + 1}`);
    });
    choice.replaceChildren(make("legend", { textContent: "Question of this step" }), ...labels);
    choice.hidden = labels.length < 2;
  }

  const cursor = () => {
    const place = X(run.moments[input.value].step);
    for (const end of ["x1", "x2"]) chart.querySelector(".cursor").setAttribute(end, place);
  };

  /** The curves, as wide as the page has room for, so that letters keep their size. */
  function draw() {
    width = Math.max(260, chart.clientWidth || width);
    chart.innerHTML = curves();
    cursor();
  }

  function show() {
    const moment = run.moments[input.value];
    output.textContent = `step ${moment.step} of ${run.steps}`;
    const reward = moment.facts["mean reward"];
    input.setAttribute("aria-valuetext", `step ${moment.step}${reward === undefined ? "" : `, mean reward ${number(reward)}`}`);
    cursor();
    list.replaceChildren(...facts(moment));
    choices(moment);
    choose(moment);
  }

  function pause() {
    clearInterval(timer);
    timer = undefined;
    play.textContent = "Play";
  }

  function tick() {
    if (Number(input.value) === last) return pause();
    input.value = Number(input.value) + 1;
    show();
  }

  play.onclick = () => {
    if (timer) return pause();
    if (Number(input.value) === last) input.value = 0;
    timer = setInterval(tick, 900);
    play.textContent = "Pause";
    show();
  };
  input.oninput = () => (pause(), show());
  chart.onclick = ({ clientX }) => {
    const box = chart.firstElementChild.getBoundingClientRect();
    const step = (((clientX - box.left) / box.width) * width - LEFT) / (width - LEFT - RIGHT) * run.steps;
    const far = run.moments.map((moment) => Math.abs(moment.step - step));
    input.value = far.indexOf(Math.min(...far));
    pause();
    show();
  };
  const time = make("div", { className: "time" }, make("label", { htmlFor: id, textContent: "Step" }), input, output, play);
  const about = make("p", { className: "about", textContent:
    "Each box is one completion of the question, with its reward and its advantage. Blue tokens were made likelier, orange "
    + "ones rarer; a group that agrees has no color, and nothing is learned from it. Orange curve: mean reward of a step, "
    + "and its running mean. Blue dots: accuracy on held-out problems, with 95 % intervals." });
  home.querySelector(".plain").replaceWith(time, chart, list, choice, question, group, about);
  draw();
  show();
  new ResizeObserver(() => chart.clientWidth !== width && draw()).observe(chart);
})();
