// What is shown of a step: its group of completions, and what the algorithm does with it, in words.

import { percent } from "./charts.js";
import { HELD_OUT, ROWS } from "./settings.js";

const $ = (id) => document.getElementById(id);
export const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt()};`);
const SIGNS = { "\n": "<i> ↵ </i>", "</s>": "<i> end</i>", "<pad>": "" };

/** A question and its completions; `of` says of which step, and how far it is. */
export function showGroup({ question, group }, of) {
  $("of").textContent = of;
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

export const rightOf = ({ group }) =>
  `${group.filter(({ right }) => right).length} of these ${group.length} are right`;

let shown = 0;

/** The step that is under way, in a line, while the one before it stays in sight; ten times a second. */
export function showNow(step, { group, judged }) {
  const now = performance.now();
  if (judged === undefined && now - shown < 100) return;
  shown = now;
  const [{ tokens }] = group;
  const text = tokens.map((token) => (token === "\n" ? " ↵ " : token === "</s>" ? "" : token)).join("");
  $("now").textContent = judged === undefined
    ? `Step ${step}, being sampled now, not judged yet: ${text}`
    : `Step ${step}, judged; the update is being computed.`;
}

// in words

const COMPARED = {
  reinforce: () => "The reward is the advantage: tokens of right answers become likelier, wrong ones are left alone.",
  rloo: (G) => `An answer’s advantage is its reward minus the mean of the other ${G - 1}. Tokens of better answers become likelier, tokens of worse ones rarer.`,
  grpo: (G) => `An answer’s advantage is its reward minus the mean of its group of ${G}, divided by their standard deviation. Tokens of answers above the mean become likelier, tokens of those below it rarer.`,
  dr_grpo: (G) => `An answer’s advantage is its reward minus the mean of its group of ${G}. Tokens of answers above the mean become likelier, tokens of those below it rarer.`,
};

/** What one step does, as the three things that follow one another. */
export function phases({ algorithm, group_size: G, fault }) {
  const baseline = fault === "no_baseline" ? "reinforce" : algorithm;
  const judged = fault === "form_alone" ? "any number after #### earns 1, right or wrong"
    : "the right number after #### earns 1, anything else 0; the lines before it are not read";
  return [
    ["Sample", `The model writes ${G} answers to each of ${ROWS / G} questions.`],
    ["Judge", `${judged[0].toUpperCase()}${judged.slice(1)}.`],
    ["Update", COMPARED[baseline](G)],
  ];
}

export function showPhases(settings) {
  $("phases").innerHTML = phases(settings).map(([name, what]) => `<li><b>${name}.</b> ${what}</li>`).join("");
}

/** Which of the three is under way, from 0; none if undefined. */
export function showPhase(at) {
  [...$("phases").children].forEach((item, i) => item.toggleAttribute("data-now", i === at));
}

const LEARNED = {
  reinforce: "the tokens of right answers became likelier",
  rloo: "each answer was compared with the others to its question, and its tokens became likelier or rarer",
};
export const NAMES = { reinforce: "REINFORCE", rloo: "RLOO", grpo: "GRPO", dr_grpo: "Dr. GRPO" };

/** What has happened since the first step. `beside`: the healthy curve that a fault is compared with. */
export function summary({ algorithm, group_size, fault }, { history, held, loss }, beside) {
  const steps = history.length;
  const who = loss ? "your loss" : NAMES[algorithm] + (fault && ", broken,");
  if (!steps || !held.length) {
    const todo = fault
      ? "It trains with the wrong line chosen below; the dashed curve is the same run without it."
      : `The model writes answers of its own and is told only which are right: no solution is shown to it. The curve
        is the share of right answers to ${HELD_OUT} questions that it never trains on.`;
    return `<b>What ${who} will do.</b> ${todo}`;
  }
  const questions = (ROWS / group_size) * steps;
  const right = Math.round(history.reduce((sum, { accuracy }) => sum + accuracy * ROWS, 0));
  const learned = LEARNED[fault === "no_baseline" ? "reinforce" : algorithm] ?? LEARNED.rloo;
  const how = fault || loss ? "" : ` No solution was shown to it in these steps: ${learned}.`;
  const [first, last] = [held[0], held.at(-1)];
  const there = last.step && beside?.find(({ step }) => step === last.step);
  const accuracy = last.step
    ? `Of ${HELD_OUT} questions that it never trains on it answered ${percent(first.accuracy)} right
      before, and ${percent(last.accuracy)} after step ${last.step}${there ? `; the healthy run ${percent(there.accuracy)}` : ""}.`
    : `Of ${HELD_OUT} questions that it never trains on it answers ${percent(first.accuracy)} right to begin with.`;
  return `<b>What ${who} did in ${steps === 1 ? "one step" : `${steps} steps`}.</b> The model wrote ${ROWS * steps}
    answers to ${questions} questions, and ${right} were right.${how} ${accuracy}`;
}
