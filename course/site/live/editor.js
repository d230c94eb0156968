// "Change the loss yourself": the lines, what the checks' cases say of them, and whether steps use them.

import { escaped } from "./show.js";
import { GRPO } from "./loss.js";

const $ = (id) => document.getElementById(id);
const LONGEST = 2000; // ms: a loss that takes longer than this on all cases has a loop without end
const ENDLESS = { said: ["It has not come to an end in two seconds: is there a loop that never stops?"], usable: false };

/** A diagnosis, whose few signs are Markdown's. */
const styled = (text) =>
  escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>").replace(/\*([^*]+)\*/g, "<em>$1</em>");

/** Numbers as they differ: six digits. */
const digits = (x) => (x === null || Number.isNaN(x) ? "NaN" : String(Number(x.toPrecision(6))));

export class Editor {
  #judge;
  #waits; // until somebody has stopped typing
  #late;
  #busy = false;
  #usable = GRPO; // what was last judged fit for a step
  #trains = false;

  /** `onUse` is told when steps begin, or end, to use what is written. */
  constructor(onUse) {
    const text = $("loss");
    text.value = GRPO;
    text.rows = GRPO.split("\n").length + 1;
    text.oninput = () => {
      clearTimeout(this.#waits);
      this.#waits = setTimeout(() => this.#ask(), 250);
    };
    $("own").ontoggle = () => $("own").open && this.#ask();
    $("restore").onclick = () => ((text.value = GRPO), this.#ask());
    $("use").onclick = () => onUse(this.use(!this.#trains));
  }

  /** The lines for the next step; undefined if steps do not use them. */
  get loss() {
    return this.#trains ? this.#usable : undefined;
  }

  use(trains) {
    this.#trains = trains;
    $("use").setAttribute("aria-pressed", trains);
    $("use").textContent = trains ? "Steps use this loss" : "Train with this loss";
    return trains;
  }

  #ask() {
    const text = $("loss").value;
    if (this.#busy) this.#end(); // what is still being judged is no longer of interest
    this.#busy = true;
    this.#judge ??= new Worker(new URL("judge.js", import.meta.url), { type: "module" });
    this.#judge.onmessage = ({ data }) => {
      if (data.begins) this.#late = setTimeout(() => (this.#end(), this.#show(ENDLESS)), LONGEST);
      else this.#answered(data, text);
    };
    this.#judge.postMessage(text);
  }

  #answered(data, text) {
    clearTimeout(this.#late);
    this.#busy = false;
    this.#late = undefined;
    if (data.usable) this.#usable = text;
    this.#show(data);
  }

  #end() {
    clearTimeout(this.#late);
    this.#judge.terminate();
    this.#judge = this.#late = undefined;
    this.#busy = false;
  }

  #show({ said: [first, ...more], named, usable, right, cases, wrong = [] }) {
    const fine = right === cases && usable;
    const counted = cases ? `${right} of ${cases} cases right. ` : "";
    const rest = more.map((text) => `<p>${styled(text)}</p>`).join("");
    const rows = wrong.map(({ label, expected, value }) =>
      `<tr><td>${escaped(label)}</td><td>${digits(value)}</td><td>${digits(expected)}</td></tr>`);
    const table = rows.length
      ? `<table><thead><tr><th>case</th><th>yours</th><th>right</th></tr></thead><tbody>${rows.join("")}</tbody></table>`
      : "";
    const kept = usable ? "" : "<p>Steps use the last version that gave numbers, until this one does.</p>";
    $("verdict").className = fine ? "good" : "bad";
    $("verdict").innerHTML =
      `<p><b>${fine ? "✓" : "✗"} ${styled(first)}</b> ${counted}</p>${rest}${this.#trains ? kept : ""}${named === undefined ? "" : table}`;
  }
}
