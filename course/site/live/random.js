// Python's random.Random, so that a seed draws the same problems here as there: the Mersenne
// Twister of Matsumoto and Nishimura 1998, seeded by a text as CPython does it.

export class Random {
  #state = new Uint32Array(624);
  #next = 624;

  /** random.Random(text). Asynchronous because the browser's SHA-512 is. */
  static async of(text) {
    const bytes = new TextEncoder().encode(text);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-512", bytes));
    const random = new Random();
    random.#seed(words([...bytes, ...digest]));
    return random;
  }

  #seed(key) {
    const s = this.#state;
    s[0] = 19650218;
    for (let i = 1; i < 624; i++) s[i] = Math.imul(1812433253, s[i - 1] ^ (s[i - 1] >>> 30)) + i;
    let i = 1;
    const mix = (by) => Math.imul(s[i - 1] ^ (s[i - 1] >>> 30), by) ^ s[i];
    const advance = () => {
      if (++i === 624) [i, s[0]] = [1, s[623]];
    };
    for (let n = 0; n < Math.max(624, key.length); n++) {
      s[i] = mix(1664525) + key[n % key.length] + (n % key.length);
      advance();
    }
    for (let n = 0; n < 623; n++) {
      s[i] = mix(1566083941) - i;
      advance();
    }
    s[0] = 0x80000000;
  }

  #word() {
    const s = this.#state;
    if (this.#next === 624) {
      for (let i = 0; i < 624; i++) {
        const y = (s[i] & 0x80000000) | (s[(i + 1) % 624] & 0x7fffffff);
        s[i] = s[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.#next = 0;
    }
    let y = s[this.#next++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  /** Uniform in [0, 1). */
  random() {
    const high = this.#word() >>> 5;
    return (high * 67108864 + (this.#word() >>> 6)) / 9007199254740992;
  }

  /** An integer from 0 to n − 1. */
  below(n) {
    const bits = 32 - Math.clz32(n);
    let drawn;
    do drawn = this.#word() >>> (32 - bits);
    while (drawn >= n);
    return drawn;
  }

  randint(low, high) {
    return low + this.below(high - low + 1);
  }

  choice(items) {
    return items[this.below(items.length)];
  }

  /** One of the items, with these weights: random.choices(items, weights)[0]. */
  choices(items, weights) {
    let left = this.random() * weights.reduce((sum, weight) => sum + weight, 0);
    return items.slice(0, -1).find((_, i) => (left -= weights[i]) < 0) ?? items.at(-1);
  }

  /** Several different items; in this order only for lists as short as ours (up to 21). */
  sample(items, count) {
    const pool = [...items];
    return Array.from({ length: count }, (_, i) => {
      const at = this.below(pool.length - i);
      const drawn = pool[at];
      pool[at] = pool[pool.length - i - 1];
      return drawn;
    });
  }

  shuffle(items) {
    for (let i = items.length - 1; i > 0; i--) {
      const at = this.below(i + 1);
      [items[i], items[at]] = [items[at], items[i]];
    }
  }
}

/** The words of 32 bits, lowest first, of a number whose bytes come highest first. */
function words(bytes) {
  const found = new Uint32Array(Math.ceil(bytes.length / 4));
  bytes.reverse().forEach((byte, i) => (found[i >> 2] |= byte << (8 * (i & 3))));
  const used = found.findLastIndex((word) => word !== 0) + 1;
  return found.subarray(0, Math.max(used, 1));
}
