// rlcourse/training: sample → score → advantages → μ updates → metrics.

import { jit, tree, valueAndGrad, vjp } from "./jax/index.js";
import * as algorithms from "./algorithms.js";
import { FAULTS } from "./faults.js";
import { array, integers, logprobs, parametersOf } from "./model.js";
import { slopeOf } from "./loss.js";
import { adamw, clip_grad_norm, moments, schedule } from "./optimizer.js";
import { Random } from "./random.js";
import { padded, sample } from "./sampler.js";
import { DEFAULTS, HELD_OUT, ROWS } from "./settings.js";
import { correctness_reward, problems, problemsOfStep } from "./tasks.js";
import { PAD } from "./tokenizer.js";

export const METHODS = {
  reinforce: { loss: "reinforce_loss" },
  rloo: { loss: "reinforce_loss", advantages: "leave_one_out_advantages" },
  grpo: { loss: "grpo_loss", advantages: "group_normalized_advantages" },
  dr_grpo: { loss: "dr_grpo_loss", advantages: "group_mean_advantages" },
};
const MEASURED = 64; // held-out questions answered side by side
const MAX_TOKENS = 32, TRAIN = 4000, WARMUP = 5;
const WIDTH = 41; // tokens of the longest question, less one

const score = jit(logprobs);

export class Trainer {
  #step = 0;
  #updates = 0;

  static async of(world, tokenizer, weights, settings) {
    const trainer = new Trainer();
    const fault = FAULTS[settings.fault] ?? {};
    const recipe = { ...DEFAULTS, ...settings, ...fault.settings };
    Object.assign(trainer, { tokenizer, fault, recipe, p: parametersOf(weights) });
    trainer.reference = tree.ref(trainer.p);
    trainer.moments = moments(tree.ref(trainer.p));
    trainer.train = await problems(world, TRAIN, recipe.seed, "train");
    trainer.evaluation = await problems(world, HELD_OUT, recipe.seed, "evaluation");
    trainer.update = compiled(recipe, fault);
    return trainer;
  }

  /** Compile what samples, by writing one token. */
  async prepare() {
    const { group_size } = this.recipe;
    await this.sampled(this.p, this.train.slice(0, ROWS / group_size), { group_size, until: 1 });
  }

  /**
   * One step: its metrics, and the first question with its group of completions. `watch` sees the
   * group after each token, and once more when it is judged. `own` is a loss on plain numbers that
   * takes the place of the method's.
   */
  async step({ watch, withKl, own } = {}) {
    const { recipe, fault, tokenizer } = this;
    const { group_size, seed } = recipe;
    const chosen = await problemsOfStep(this.train, ROWS / group_size, this.#step, seed);
    const random = await Random.of(`${seed}/step/${this.#step++}`);
    const sampler = fault.stale ? this.reference : this.p;
    const words = (ids) => ids.map((id) => tokenizer.vocabulary[id]);
    const { question } = chosen[0];
    const groupOf = (rows, of = () => ({})) =>
      rows.slice(0, group_size).map((ids, n) => ({ tokens: words(ids), ...of(n) }));
    const written = (rows) => watch?.({ question, group: groupOf(rows) });
    const options = { group_size, random, watch: written };
    const rollouts = await this.sampled(sampler, chosen, options);
    const texts = rollouts.tokens.map((ids) => tokenizer.decode(ids));
    const answers = texts.map((_, n) => chosen[Math.floor(n / group_size)].answer);
    const right = texts.map((text, n) => correctness_reward(text, answers[n]));
    const rewards = fault.reward ? texts.map(fault.reward) : right;
    const advantages = await this.advantages(rewards);
    const verdict = (n) => ({ right: right[n], reward: rewards[n], advantage: advantages[n] });
    watch?.({ question, judged: mean(rewards), group: groupOf(rollouts.tokens, verdict) });
    const { push, ...learned } = await this.learn(rollouts, advantages, { withKl, own });
    const group = groupOf(rollouts.tokens, (n) => ({ ...verdict(n), push: push[n] }));
    return {
      step: this.#step, question, group, ...learned,
      reward: mean(rewards), accuracy: mean(right),
      entropy: -mean(rollouts.old_logprobs.flat()), // unbiased, from the sampled tokens
    };
  }

  sampled(p, problems, options) {
    const prompts = problems.map(({ question }) => this.tokenizer.prompt(question));
    return sample(p, prompts, { max_tokens: MAX_TOKENS, width: WIDTH, ...options });
  }

  /** Rewards (N,) as advantages (N,). */
  async advantages(rewards) {
    const name = this.fault.noBaseline ? null : METHODS[this.recipe.algorithm].advantages;
    if (!name) return rewards;
    const { group_size } = this.recipe;
    const found = algorithms[name]({ rewards: array(rewards, [rewards.length]), group_size });
    return [...(await found.data())];
  }

  /** μ updates; the first one's push on each token, and what the last one says of itself. */
  async learn(rollouts, advantages, { withKl, own }) {
    const { recipe } = this;
    const batch = batchOf(rollouts, this.fault.padding);
    const old_logprobs = table(rollouts.old_logprobs, 0);
    const anchored = withKl || recipe.beta > 0;
    const ref_logprobs = anchored
      ? score(tree.ref(this.reference), tree.ref(batch))
      : old_logprobs.ref; // without a penalty any will do
    const weights = array(advantages, [advantages.length]);
    const given = { old_logprobs, ref_logprobs, advantages: weights, mask: batch.mask.ref };
    const update = own ? compiled({ algorithm: "own" }, {}) : this.update;
    const numbers = own && (await plainOf(given, recipe));
    const lr = recipe.lr * Math.min(1, this.#step / (WARMUP + 1));
    let found;
    for (let i = 0; i < recipe.num_iterations; i++) {
      const own_loss = own && (await this.slopeIn(batch, given, own, numbers));
      const sizes = schedule(lr, ++this.#updates);
      const made = update(this.p, this.moments, tree.ref(batch), tree.ref(given), sizes);
      [this.p, this.moments] = [made.p, made.moments];
      const [push, loss, norm, kl] = await Promise.all(
        [made.push, made.loss, made.norm, made.kl].map((x) => x.data()),
      );
      found = { loss: own_loss ?? loss[0], grad_norm: norm[0], push: found?.push ?? [...push] };
      if (anchored) found.kl = kl[0];
    }
    tree.dispose([batch, given]);
    const row = (ids, n) => found.push.slice(n * MAX_TOKENS, n * MAX_TOKENS + ids.length);
    return { ...found, push: rollouts.tokens.map(row) };
  }

  /** Put the slope of a loss on plain numbers into what an update is given; its value. */
  async slopeIn(batch, given, own, numbers) {
    const now = await score(tree.ref(this.p), tree.ref(batch)).data();
    const [value, slope] = slopeOf(own, { ...numbers, logprobs: rowsOf(now) });
    given.slope?.dispose();
    given.slope = array(slope.flat(), [slope.length, MAX_TOKENS]);
    return value;
  }

  /** Greedy accuracy on held-out problems with its interval, by default of the weights now. */
  async evaluate(p = this.p) {
    let right = 0;
    for (let from = 0; from < HELD_OUT; from += MEASURED) {
      const some = this.evaluation.slice(from, from + MEASURED);
      const { tokens } = await this.sampled(p, some, { group_size: 1 });
      for (const [n, ids] of tokens.entries())
        right += correctness_reward(this.tokenizer.decode(ids), some[n].answer);
    }
    return interval(right, HELD_OUT);
  }

  dispose() {
    tree.dispose([this.p, this.reference, this.moments]);
  }
}

const rowsOf = (flat) =>
  Array.from({ length: flat.length / MAX_TOKENS }, (_, n) => [...flat.slice(n * MAX_TOKENS, (n + 1) * MAX_TOKENS)]);

/** What a loss on plain numbers is given, log-probs aside; arrays are left as they are. */
async function plainOf({ old_logprobs, ref_logprobs, mask, advantages }, { clip, beta }) {
  const tables = { old_logprobs, ref_logprobs, mask };
  const read = async ([name, x]) => [name, rowsOf(await x.ref.data())];
  const rows = Object.fromEntries(await Promise.all(Object.entries(tables).map(read)));
  return { ...rows, advantages: [...(await advantages.ref.data())], clip, beta };
}

const updates = new Map();

/** `updateOf` as jax-js compiles it, once for all runs of the same loss. */
function compiled(recipe, fault) {
  const key = JSON.stringify([recipe.algorithm, recipe.clip, recipe.beta, recipe.fault]);
  if (!updates.has(key)) updates.set(key, jit(updateOf(recipe, fault)));
  return updates.get(key);
}

/** (weights, moments, batch, what the loss is given, learning rate) → one update's results. */
function updateOf(recipe, fault) {
  const loss = recipe.algorithm === "own" ? linear : algorithms[METHODS[recipe.algorithm].loss];
  const { clip, beta } = recipe;
  const settings = { clip, beta, max_tokens: MAX_TOKENS, minimum: fault.minimum };
  return (p, state, batch, given, sizes) => {
    const { mask, ref_logprobs } = given;
    const [found, pull] = vjp((p) => logprobs(p, batch), [tree.ref(p)]);
    const lossOf = (logprobs) => loss({ ...tree.ref(given), logprobs, ...settings });
    const [value, slope] = valueAndGrad(lossOf)(found.ref);
    const [gradients] = pull(slope.ref.mul(fault.sign ?? 1));
    const [shortened, norm] = clip_grad_norm(gradients);
    [p, state] = adamw(p, state, shortened, sizes);
    const x = algorithms.kl_estimates({ logprobs: found, ref_logprobs });
    const kl = algorithms.masked_mean({ x, mask });
    return { p, moments: state, loss: value, push: slope.mul(-(fault.sign ?? 1)), norm, kl };
  };
}

/** Whatever the loss, this one has its slope in the log-probs. */
const linear = ({ logprobs, slope }) => logprobs.mul(slope).sum();

/** A row for each completion, filled up to MAX_TOKENS. */
function table(rows, fill, make = array) {
  const full = rows.flatMap((row) => [...row, ...Array(MAX_TOKENS - row.length).fill(fill)]);
  return make(full, [rows.length, MAX_TOKENS]);
}

/** Rollouts as the arrays that `logprobs` reads; with `whole` padding counts as written. */
export function batchOf({ prompts, group_size, tokens }, whole = false) {
  const prompt = (n) => prompts[Math.floor(n / group_size)];
  const places = Array.from({ length: MAX_TOKENS }, (_, t) => t);
  return {
    ...padded(prompts, WIDTH),
    inputs: table(tokens.map((ids, n) => [prompt(n).at(-1), ...ids.slice(0, -1)]), PAD, integers),
    positions: table(tokens.map((_, n) => places.map((t) => prompt(n).length - 1 + t)), 0),
    tokens: table(tokens, PAD, integers),
    mask: table(tokens.map((ids) => ids.map(() => 1)), Number(whole)),
  };
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** A share of n with its 95 % interval (Wilson 1927). */
export function interval(right, n, z = 1.96) {
  const share = right / n;
  const wide = 1 + z ** 2 / n;
  const middle = (share + z ** 2 / (2 * n)) / wide;
  const half = (z / wide) * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n ** 2));
  return { accuracy: share, low: middle - half, high: middle + half };
}
