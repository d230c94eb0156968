// What every figure shares: its controls, one state, and a view of it that is drawn anew.
//
// A figure is {title, lead, state, controls, view}. `lead` says what to try and what to notice.
// `view(state)` gives {charts, says, below}: functions of a width that return SVG, which stand side
// by side unless `stacked`, a sentence with the numbers, and HTML. Controls are made by the functions below.

/** A slider: `show(value)` is what stands beside it and what a screen reader says. */
export const slider = (name, label, [min, max, step], show = String) => ({ kind: "slider", name, label, min, max, step, show });

/** One of several: {value: label}. */
export const choice = (name, label, options) => ({ kind: "choice", name, label, options });

/** Buttons that change the state: {label: state → changes}. */
export const actions = (label, options) => ({ kind: "actions", label, options });

/** Switches: one for each entry of state[name], a list of 0 and 1. */
export const switches = (name, label, show) => ({ kind: "switches", name, label, show });

const GAP = 16;
const NARROWEST = 290; // of a chart beside another one, in pixels

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

let fields = 0;

/** {of: an element, show(state)} of each kind of control; change(changes) is to be called. */
const KINDS = {
  slider({ name, label, min, max, step, show }, change) {
    const id = `figure-field-${++fields}`;
    const input = element("input", { type: "range", id, min, max, step });
    const output = element("output", { ariaLive: "off" }); // the slider says its value itself
    output.htmlFor.add(id);
    input.oninput = () => change({ [name]: Number(input.value) });
    const of = element("div", { className: "slider" }, element("label", { htmlFor: id, innerHTML: label }), input, output);
    return {
      of,
      show(state) {
        input.value = state[name];
        output.textContent = show(state[name], state);
        input.setAttribute("aria-valuetext", output.textContent);
      },
    };
  },

  choice({ name, label, options }, change) {
    const group = `figure-field-${++fields}`;
    const inputs = Object.entries(options).map(([value, words]) => {
      const input = element("input", { type: "radio", name: group, value });
      input.onchange = () => change({ [name]: value });
      return [input, element("label", {}, input, element("span", { innerHTML: words }))];
    });
    const of = element("fieldset", {}, element("legend", { textContent: label }), ...inputs.map(([, shown]) => shown));
    return { of, show: (state) => inputs.forEach(([input]) => (input.checked = input.value === state[name])) };
  },

  actions({ label, options }, change) {
    const buttons = Object.entries(options).map(([words, next]) => {
      const button = element("button", { type: "button", textContent: words });
      button.onclick = () => change(next);
      return button;
    });
    const of = element("div", { className: "actions" }, element("span", { textContent: label }), ...buttons);
    of.role = "group";
    of.ariaLabel = label;
    return { of, show() {} };
  },

  switches({ name, label, show }, change, state) {
    const buttons = state[name].map((_, i) => {
      const button = element("button", { type: "button" });
      button.onclick = () => change((now) => ({ [name]: now[name].map((on, j) => (i === j ? 1 - on : on)) }));
      return button;
    });
    const of = element("div", { className: "switches" }, element("span", { textContent: label }), ...buttons);
    of.role = "group";
    of.ariaLabel = label;
    return {
      of,
      show: (now) => buttons.forEach((button, i) => {
        button.ariaPressed = String(now[name][i] === 1);
        button.textContent = show(now[name][i]);
        button.ariaLabel = `${i + 1}: ${show(now[name][i])}`;
      }),
    };
  },
};

/** Put a figure into `place`, before the static picture, which is folded. */
export function mount(place, figure) {
  let state = structuredClone(figure.state);
  const charts = element("div", { className: "charts" });
  const says = element("p", { className: "says" });
  says.role = "status";
  const below = element("div", { className: "below" });
  const change = (changes) => {
    state = { ...state, ...(typeof changes === "function" ? changes(state) : changes) };
    show();
  };
  const made = figure.controls.map((control) => KINDS[control.kind](control, change, state));
  const again = element("button", { type: "button", textContent: "Reset" });
  again.onclick = () => change(structuredClone(figure.state));
  const controls = element("div", { className: "controls" }, ...made.map(({ of }) => of));
  const last = controls.lastChild;
  (last.className === "actions" ? last : controls).append(again);

  function draw(view) {
    const room = charts.clientWidth || 320;
    const beside = !view.stacked && room >= 2 * NARROWEST + GAP;
    const width = Math.floor(beside ? (room - GAP) / 2 : room);
    charts.innerHTML = view.charts.map((chart) => chart(width)).join("");
  }

  function show() {
    const view = figure.view(state);
    made.forEach((control) => control.show(state));
    says.innerHTML = view.says;
    below.innerHTML = view.below ?? "";
    draw(view);
  }

  const lead = element("p", { className: "lead", innerHTML: figure.lead });
  const section = element("section", { className: "figure" }, lead, controls, charts, says, below);
  section.ariaLabel = figure.title;
  place.prepend(section);
  place.querySelector(":scope > details")?.removeAttribute("open");
  show();
  let drawn = charts.clientWidth;
  new ResizeObserver(() => {
    if (charts.clientWidth !== drawn) draw(figure.view(state));
    drawn = charts.clientWidth;
  }).observe(charts);
}
