// rlcourse/policy/sampler.py: many completions of each prompt, token by token with a cache.

import { jit, numpy as np, tree } from "./jax/index.js";
import { array, FAR, integers, read, readPrompts, VOCABULARY } from "./model.js";
import { EOS, PAD } from "./tokenizer.js";

/** A token drawn from the softmax of logits, and its log-prob; the likeliest without `random`. */
export function sample_token(logits, random) {
  const top = Math.max(...logits);
  const weights = Array.from(logits, (logit) => Math.exp(logit - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let left = random ? random.random() * total : 0;
  const drawn = random ? weights.findIndex((weight) => (left -= weight) < 0) : -1;
  const token = drawn < 0 ? logits.indexOf(top) : drawn; // -1 is left to rounding, too
  return [token, logits[token] - top - Math.log(total)];
}

const prefill = jit(readPrompts);

/** The next logits (N, 1, V) and what has been written so far: keys and values of each layer. */
const decode = jit((p, cache, seen, written, tokens, positions, { at, after }) => {
  const kept = [];
  const put = (all, one) => all.mul(at.ref.mul(-1).add(1)).add(one.mul(at.ref));
  const logits = read(p, cache, seen, tokens, positions, (layer, k, v) => {
    const [keys, values] = [put(written[layer][0], k), put(written[layer][1], v)];
    kept.push([keys.ref, values.ref]);
    return [keys, values, after.ref];
  });
  return [logits, kept];
});

/** Prompts as they are read together: all but their last token, padded on the right to `width`. */
export function padded(prompts, width) {
  const shape = [prompts.length, width];
  const full = (ids, value, fill) =>
    Array.from({ length: width }, (_, i) => (i < ids.length - 1 ? value(ids[i]) : fill));
  return {
    prompts: integers(prompts.flatMap((ids) => full(ids, (id) => id, PAD)), shape),
    seen: array(prompts.flatMap((ids) => full(ids, () => 1, 0)), shape),
  };
}

/**
 * `group_size` completions of each prompt, as plain lists of N rows that end with EOS or after
 * `max_tokens`: {prompts, group_size, tokens, old_logprobs}. `watch` sees them after each token;
 * `until` ends it sooner, with arrays of the same size.
 */
export async function sample(p, prompts, { group_size, max_tokens, width, random, watch, until = max_tokens }) {
  const N = prompts.length * group_size;
  const rows = Array.from({ length: N }, (_, n) => prompts[Math.floor(n / group_size)]);
  const tokens = rows.map(() => []);
  const old_logprobs = rows.map(() => []);
  const ended = (row) => row.at(-1) === EOS;
  const read = padded(prompts, width);
  const cache = prefill(tree.ref(p), read.prompts);
  let written = cache.map((pair) =>
    pair.map((x) => np.zeros([N, x.shape[1], max_tokens, x.shape[3]])),
  );
  for (let t = 0; t < until && !tokens.every(ended); t++) {
    const last = rows.map((ids, n) => tokens[n].at(-1) ?? ids.at(-1));
    const place = rows.map((ids) => ids.length - 1 + t);
    const places = Array.from({ length: max_tokens }, (_, i) => i);
    const at = array(places.map((i) => Number(i === t)), [1, 1, max_tokens, 1]);
    const after = array(places.map((i) => (i > t ? FAR : 0)), [1, 1, 1, max_tokens]);
    const [logits, kept] = decode(
      tree.ref(p), tree.ref(cache), read.seen.ref, written,
      integers(last, [N, 1]), array(place, [N, 1]), { at, after },
    );
    written = kept;
    const values = await logits.data();
    tokens.forEach((row, n) => {
      if (ended(row)) return;
      const scores = values.subarray(n * VOCABULARY, (n + 1) * VOCABULARY);
      const [token, logprob] = sample_token(scores, random);
      row.push(token);
      old_logprobs[n].push(logprob);
    });
    watch?.(tokens);
  }
  tree.dispose([cache, written, read.seen]);
  return { prompts, group_size, tokens, old_logprobs };
}
