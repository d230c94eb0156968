// SHA-256 of a short text, at once: the browser's own answers by promise, and a page that draws
// thousands of problems waits for each. FIPS 180-4; the constants are computed as it defines them.

const PRIMES = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((p) => n % p)) PRIMES.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const ROUNDS = PRIMES.map((p) => fraction(Math.cbrt(p)));
const BEGIN = PRIMES.slice(0, 8).map((p) => fraction(Math.sqrt(p)));

/** The first word of the digest, of 32 bits. */
export function sha256(text) {
  const bytes = [...new TextEncoder().encode(text), 0x80];
  const bits = (bytes.length - 1) * 8;
  while (bytes.length % 64 !== 56) bytes.push(0);
  bytes.push(0, 0, 0, 0); // of a length in eight bytes the first four
  const view = new DataView(new ArrayBuffer(bytes.length + 4));
  bytes.forEach((byte, i) => view.setUint8(i, byte));
  view.setUint32(bytes.length, bits);
  const state = [...BEGIN];
  for (let from = 0; from < view.byteLength; from += 64) {
    const words = Array.from({ length: 16 }, (_, i) => view.getInt32(from + 4 * i));
    block(state, words);
  }
  return state[0] >>> 0;
}

const turn = (x, by) => (x >>> by) | (x << (32 - by));

function block(state, w) {
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    if (i > 15) {
      const [x, y] = [w[i - 15], w[i - 2]];
      const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
      const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    const chosen = (e & f) ^ (~e & g);
    const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + chosen + ROUNDS[i] + w[i]) | 0;
    const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((x, i) => (state[i] = (state[i] + x) | 0));
}
