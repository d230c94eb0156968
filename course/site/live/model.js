// rlcourse/policy: the embedded model, a Llama of two layers, read as the library's samplers read
// it: a question once, and its G completions attend to it together. Arrays are jax-js's; the names
// of the weights are those of the file. B questions, N = B·G completions.

import { nn, numpy as np } from "./jax/index.js";

const HEADS = 4, WIDTH = 24, LAYERS = 2, EPS = 1e-6;
export const VOCABULARY = 187, FAR = -1e9; // FAR: the score of what is not attended to

/** The weights of a safetensors file of float16, {name: Float32Array with its shape}. */
export function weightsOf(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  delete header.__metadata__;
  return Object.entries(header).map(([name, { shape, data_offsets: [from, to] }]) => {
    const halves = new Uint16Array(buffer.slice(8 + length + from, 8 + length + to));
    return [name.replace("model.", ""), { shape, data: Float32Array.from(halves, float) }];
  });
}

/** The number that 16 bits stand for. */
function float(half) {
  const [exponent, fraction] = [(half >> 10) & 31, half & 1023];
  const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
  return half >> 15 ? -size : size;
}

export function parametersOf(weights) {
  return Object.fromEntries(weights.map(([name, { shape, data }]) => [name, array(data, shape)]));
}

export const array = (data, shape) => np.array(Float32Array.from(data)).reshape(shape);
export const integers = (data, shape) => np.array(Int32Array.from(data)).reshape(shape);

/** Keys and values (B, H, P, W) of the questions `prompts` (B, P), padded on the right. */
export function readPrompts(p, prompts) {
  const [B, P] = prompts.shape;
  const positions = np.broadcastTo(np.arange(P).astype(np.float32).reshape([1, P]), [B, P]);
  const causal = later(P);
  const cache = [];
  embed(p, prompts, positions, (q, k, v) => {
    cache.push([k.ref, v.ref]);
    return np.matmul(nn.softmax(scores(q, k).add(causal.ref), -1), v);
  }).dispose();
  return cache;
}

/**
 * Logits (N, S, V) after each of the tokens (N, S) at these positions, given the questions' cache.
 * `seen` (B, P) is 1 on real tokens of a question; `own` says what of the completion itself is
 * attended to: (layer, keys, values) → [keys, values, bias].
 */
export function read(p, cache, seen, tokens, positions, own) {
  const [N, S] = tokens.shape;
  const [B, P] = seen.shape;
  const G = N / B;
  const far = seen.sub(1).mul(-FAR).reshape([B, 1, 1, P]);
  // (N, H, S, ·) ↔ (B, H, G·S, ·)
  const together = (x) =>
    x.reshape([B, G, HEADS, S, -1]).transpose([0, 2, 1, 3, 4]).reshape([B, HEADS, G * S, -1]);
  const apart = (x) =>
    x.reshape([B, HEADS, G, S, -1]).transpose([0, 2, 1, 3, 4]).reshape([N, HEADS, S, -1]);
  const x = embed(p, tokens, positions, (q, k, v, layer) => {
    const [keys, values, bias] = own(layer, k, v);
    const past = apart(scores(together(q.ref), cache[layer][0].ref).add(far.ref));
    const weights = nn.softmax(np.concatenate([past, scores(q, keys).add(bias)], -1), -1);
    const [onPast, onOwn] = np.split(weights, [P], -1);
    const seen = apart(np.matmul(together(onPast), cache[layer][1].ref));
    return np.matmul(onOwn, values).add(seen);
  });
  return np.matmul(norm(x, p["norm.weight"].ref), p["embed_tokens.weight"].ref.transpose());
}

/** Log-probs (N, T) in nats of the completions' tokens, 0 on padding. */
export function logprobs(p, { prompts, seen, inputs, positions, tokens, mask }) {
  const cache = readPrompts(p, prompts.ref);
  const causal = later(tokens.shape[1]);
  const own = (layer, k, v) => [k, v, causal.ref];
  const logits = read(p, cache, seen.ref, inputs.ref, positions.ref, own);
  const chosen = nn.logSoftmax(logits, -1).mul(nn.oneHot(tokens.ref, VOCABULARY)).sum(-1);
  return np.where(mask.ref.notEqual(0), chosen, 0);
}

/** Embedding and layers: (R, S) tokens and positions → (R, S, D). */
function embed(p, tokens, positions, attend) {
  const [R, S] = tokens.shape;
  const frequencies = Float32Array.from({ length: WIDTH }, (_, i) => 1e4 ** (-2 * (i % (WIDTH / 2)) / WIDTH));
  const angles = positions.reshape([R, S, 1, 1]).mul(np.array(frequencies));
  const [cos, sin] = [np.cos(angles.ref), np.sin(angles)];
  const heads = (x) => x.reshape([R, S, HEADS, WIDTH]);
  const turned = (x) => {
    const [a, b] = np.split(x.ref, 2, -1);
    return x.mul(cos.ref).add(np.concatenate([b.mul(-1), a], -1).mul(sin.ref));
  };
  const front = (x) => x.transpose([0, 2, 1, 3]);
  let x = np.matmul(nn.oneHot(tokens, VOCABULARY), p["embed_tokens.weight"].ref);
  for (let i = 0; i < LAYERS; i++) {
    const weight = (name) => p[`layers.${i}.${name}.weight`].ref;
    const by = (x, name) => np.matmul(x, weight(name).transpose());
    const h = norm(x.ref, weight("input_layernorm"));
    const q = front(turned(heads(by(h.ref, "self_attn.q_proj"))));
    const k = front(turned(heads(by(h.ref, "self_attn.k_proj"))));
    const v = front(heads(by(h, "self_attn.v_proj")));
    const heard = front(attend(q, k, v, i)).reshape([R, S, HEADS * WIDTH]);
    x = x.add(by(heard, "self_attn.o_proj"));
    const m = norm(x.ref, weight("post_attention_layernorm"));
    const gate = nn.silu(by(m.ref, "mlp.gate_proj"));
    x = x.add(by(gate.mul(by(m, "mlp.up_proj")), "mlp.down_proj"));
  }
  return x;
}

const norm = (x, weight) =>
  x.ref.div(np.sqrt(np.square(x).mean(-1, { keepdims: true }).add(EPS))).mul(weight);

const scores = (q, k) => np.matmul(q, k.transpose([0, 1, 3, 2])).mul(WIDTH ** -0.5);

/** (1, 1, S, S): far below 0 where a token comes after the one that looks. */
const later = (S) =>
  array(Array.from({ length: S * S }, (_, i) => (i % S > Math.floor(i / S) ? FAR : 0)), [1, 1, S, S]);
