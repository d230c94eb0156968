// What can be set on the page, what is said of it, and the same run as a line for a shell.

export const STEPS = 40, EVERY = 5; // steps of a run; steps between two measurements
export const ROWS = 32; // completions of a step
export const HELD_OUT = 128; // questions by which it is measured

export const DEFAULTS = {
  algorithm: "grpo", group_size: 8, lr: 3e-4, num_iterations: 1, clip: 0.2, beta: 0, seed: 0, fault: "",
};

const lesson = (page) => `<a href="lessons/${page}.html">Lesson ${page.slice(0, 2)}</a>`;
export const ALGORITHMS = {
  reinforce: `Each completion is weighted by its reward. ${lesson("02_policy_gradient")}`,
  rloo: `The reward minus the mean of the question's other completions. ${lesson("03_baselines")}`,
  grpo: `Rewards normalized within a question, ratios clipped, tokens averaged. ${lesson("06_grpo")}`,
  dr_grpo: `GRPO without its two divisors, length and spread. ${lesson("07_beyond_grpo")}`,
};

/** Which settings a loss has a place for; the others are greyed. */
export const USES = {
  reinforce: [], rloo: [], grpo: ["clip", "beta"], dr_grpo: ["clip"],
};

/** Whether a fault has a place in an algorithm. */
export const fits = (algorithm, fault) =>
  (fault !== "max_for_min" || USES[algorithm].includes("clip")) &&
  (fault !== "no_baseline" || algorithm !== "reinforce");

const section = (page, anchor, name) => `<a href="lessons/${page}.html#${anchor}">${name}</a>`;
const CAUSE = section("10_debugging", "diagnosis", "Lesson 10");

/** [what the lessons call it, what it does here, with a link]. */
export const FAULTS = {
  "": ["Nothing", "The functions as the lessons have them."],
  no_baseline: [
    "No baseline",
    `The reward itself is the advantage. It still learns: with rewards of 0 and 1, only
    right answers are pushed. ${section("03_baselines", "what-it-means-for-training", "Lesson 03")}`,
  ],
  sign_turned: [
    "The objective, not the loss: the sign is missing",
    `Training goes down the objective instead of up: the reward falls, and after twenty steps hardly an answer is right.
    ${section("06_grpo", "the-loss", "Lesson 06")}`,
  ],
  max_for_min: [
    "The larger of the two terms",
    `max in place of the clip’s min, with four updates per batch: tokens that moved too far are pushed farther.
    After 18 steps in Python, fewer answers were right than with min, on each of three seeds. Each step takes longer.
    ${section("05_ppo", "the-pessimistic-min", "Lesson 05")}`,
  ],
  padding_counted: [
    "<code>padding_counted</code>: the mask has no zeros",
    `Padding counts in the loss, and whatever follows the end is learned, too. The curve shows nothing: accuracy
    rises as it should, which is why a test has to look for this fault. ${CAUSE}`,
  ],
  stale_sampler: [
    "<code>stale_sampler</code>: the sampler keeps the weights of the first step",
    `Every answer comes from the first weights, so the reward stays where it was, and the model learns less. ${CAUSE}`,
  ],
  form_alone: [
    "A reward for the sign, ####, without the solution",
    `Any number after #### earns 1: the reward climbs above .8 at once, and accuracy stays where it was.
    ${section("08_reward_models", "break-this-reward", "Lesson 08")}`,
  ],
};

/** The settings without which a fault would not show. */
export const NEEDS = { max_for_min: { num_iterations: 4 } };

/** The same run without its fault, which is drawn beside it. */
export const healthy = (settings) => ({ ...settings, ...NEEDS[settings.fault], fault: "" });

const IN_PYTHON = ["padding_counted", "stale_sampler"]; // rlcourse train knows these, too

/** The values that the page offers; a seed is a whole number below ten thousand. */
export const CHOICES = {
  group_size: [2, 4, 8, 16], lr: [1e-4, 3e-4, 1e-3, 3e-3], num_iterations: [1, 2, 4], clip: [0.05, 0.2, 0.5], beta: [0, 0.04, 0.5],
};

/** What a setting is taken as: the nearest value that there is, or the page's own. */
export function allowed(name, said) {
  const known = { algorithm: ALGORITHMS, fault: FAULTS }[name];
  if (known) return Object.hasOwn(known, said) ? said : DEFAULTS[name];
  const value = said === "" ? NaN : Number(said);
  if (!Number.isFinite(value)) return DEFAULTS[name];
  if (name === "seed") return Math.round(Math.min(Math.max(value, 0), 9999));
  const away = (choice) => Math.abs(choice - value);
  return CHOICES[name].reduce((best, choice) => (away(choice) < away(best) ? choice : best));
}

/** [the settings that a link holds, a sentence for each that it cannot have]. */
export function fromLink(query) {
  const [settings, said] = [{ ...DEFAULTS }, []];
  for (const [name, asked] of new URLSearchParams(query)) {
    if (!Object.hasOwn(DEFAULTS, name)) continue;
    settings[name] = allowed(name, asked);
    if (String(settings[name]) !== asked && settings[name] !== Number(asked || NaN))
      said.push(`The link asks for ${name}=${asked}, which this page does not have: it takes ${settings[name] || "none"}.`);
  }
  if (!fits(settings.algorithm, settings.fault)) {
    said.push(`The fault ${settings.fault} has no place in ${settings.algorithm}: it is left out.`);
    settings.fault = "";
  }
  return [settings, said.join(" ")];
}

const changed = (settings) =>
  Object.entries(settings).filter(([name, value]) => value !== DEFAULTS[name]);

export const toLink = (settings) => `?${new URLSearchParams(changed(settings))}`;

/** [the line, what it lacks]. */
export function inPython({ algorithm, fault, group_size, ...others }) {
  Object.assign(others, NEEDS[fault]);
  const used = ([name]) => !["clip", "beta"].includes(name) || USES[algorithm].includes(name);
  const words = [
    `rlcourse train ${algorithm} steps=${STEPS} prompts_per_step=${ROWS / group_size}`,
    `group_size=${group_size} max_tokens=32`,
    ...changed(others).filter(used).map(([name, value]) => `${name}=${value}`),
  ];
  const known = IN_PYTHON.includes(fault);
  if (known) words.push(`fault=${fault}`);
  const lacks = "The command trains without the fault: write the fault into the lesson's function.";
  return [words.join(" "), fault && !known ? lacks : ""];
}
