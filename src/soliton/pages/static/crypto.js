// The protocol's cryptography for a page: hashes, keys of a seed, signatures. Numbers are BigInt, so it takes
// milliseconds where compiled code takes microseconds, and its time depends on the secret: for the few
// signatures of a person who trusts the machine, not for a service.
//
// Sources: RFC 7693 (BLAKE2b), FIPS 202 and the padding before it (Keccak), FIPS 180-4 (SHA-2), RFC 8032
// and RFC 7748 (the curve); how they are put together: docs.waves.tech, "Cryptographic practical details".

const MASK = (1n << 64n) - 1n;
/** @param {bigint} x @param {bigint} by */
const rotr = (x, by) => ((x >> by) | (x << (64n - by))) & MASK;

/** @param {Uint8Array} bytes @returns {bigint} the first byte is the lowest */
function little(bytes) {
  let value = 0n;
  for (let at = bytes.length - 1; at >= 0; at -= 1) value = (value << 8n) | BigInt(bytes[at]);
  return value;
}

/** @param {bigint} value @param {number} length */
function littleBytes(value, length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 1, value >>= 8n) bytes[at] = Number(value & 255n);
  return bytes;
}

/** @param {bigint | number} value eight bytes, the highest first */
export function long(value) {
  return littleBytes(BigInt.asUintN(64, BigInt(value)), 8).reverse();
}

/** @param {(Uint8Array | number[])[]} parts */
export function joined(...parts) {
  const bytes = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const each of parts) {
    bytes.set(each, at);
    at += each.length;
  }
  return bytes;
}

// The first 64 or 32 bits of the roots of primes: constants of SHA-2 and BLAKE2b.
/** @param {number} count */
function primes(count) {
  /** @type {bigint[]} */
  const found = [];
  for (let each = 2n; found.length < count; each += 1n) if (found.every((one) => each % one !== 0n)) found.push(each);
  return found;
}

/** @param {bigint} value @param {bigint} power the largest integer whose power is not larger */
function root(value, power) {
  let low = 0n;
  let high = 1n << 80n;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (middle ** power <= value) low = middle;
    else high = middle;
  }
  return low;
}

const PRIMES = primes(80);
const IV512 = PRIMES.slice(0, 8).map((each) => root(each << 128n, 2n) & MASK);
const K512 = PRIMES.map((each) => root(each << 192n, 3n) & MASK);

/** @type {Record<number, {word: bigint, bits: bigint, block: number, rounds: number, iv: bigint[], k: bigint[], s: bigint[][]}>} */
const SHA2 = {
  256: { word: 4n, bits: 32n, block: 64, rounds: 64, iv: IV512.map((each) => each >> 32n), k: K512.map((each) => each >> 32n),
    s: [[7n, 18n, 3n], [17n, 19n, 10n], [6n, 11n, 25n], [2n, 13n, 22n]] },
  512: { word: 8n, bits: 64n, block: 128, rounds: 80, iv: IV512, k: K512,
    s: [[1n, 8n, 7n], [19n, 61n, 6n], [14n, 18n, 41n], [28n, 34n, 39n]] },
};

/** @param {Uint8Array} message @param {256 | 512} size */
function sha2(message, size) {
  const { word, bits, block, rounds, iv, k, s } = SHA2[size];
  const mask = (1n << bits) - 1n;
  /** @param {bigint} x @param {bigint} by */
  const turn = (x, by) => ((x >> by) | (x << (bits - by))) & mask;
  const end = block / 8;
  const padded = new Uint8Array(Math.ceil((message.length + 1 + end) / block) * block);
  padded.set(message);
  padded[message.length] = 0x80;
  padded.set(long(message.length * 8), padded.length - 8);
  const state = [...iv];
  for (let start = 0; start < padded.length; start += block) {
    /** @type {bigint[]} */
    const w = [];
    for (let at = 0; at < 16; at += 1) {
      const from = start + at * Number(word);
      w.push(little(padded.slice(from, from + Number(word)).reverse()));
    }
    for (let at = 16; at < rounds; at += 1) {
      const [x, y] = [w[at - 15], w[at - 2]];
      w.push((w[at - 16] + (turn(x, s[0][0]) ^ turn(x, s[0][1]) ^ (x >> s[0][2])) + w[at - 7]
        + (turn(y, s[1][0]) ^ turn(y, s[1][1]) ^ (y >> s[1][2]))) & mask);
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let at = 0; at < rounds; at += 1) {
      const one = h + (turn(e, s[2][0]) ^ turn(e, s[2][1]) ^ turn(e, s[2][2])) + ((e & f) ^ (~e & mask & g)) + k[at] + w[at];
      const two = (turn(a, s[3][0]) ^ turn(a, s[3][1]) ^ turn(a, s[3][2])) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) & mask, c, b, a, (one + two) & mask];
    }
    [a, b, c, d, e, f, g, h].forEach((each, at) => { state[at] = (state[at] + each) & mask; });
  }
  return joined(...state.map((each) => littleBytes(each, Number(word)).reverse()));
}

/** @param {Uint8Array} message */
export const sha256 = (message) => sha2(message, 256);
/** @param {Uint8Array} message */
export const sha512 = (message) => sha2(message, 512);

// RFC 7693, section 2.7; each digit is the place of a word.
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
];
const MIX = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

/** @param {Uint8Array} message @returns {Uint8Array} 32 bytes */
export function blake2b(message) {
  const h = [...IV512];
  h[0] ^= 0x01010000n ^ 32n;
  const blocks = Math.max(1, Math.ceil(message.length / 128));
  for (let block = 0; block < blocks; block += 1) {
    const part = new Uint8Array(128);
    part.set(message.subarray(block * 128, block * 128 + 128));
    const m = Array.from({ length: 16 }, (_, at) => little(part.subarray(at * 8, at * 8 + 8)));
    const isLast = block === blocks - 1;
    const v = [...h, ...IV512];
    v[12] ^= BigInt(isLast ? message.length : (block + 1) * 128);
    if (isLast) v[14] ^= MASK;
    for (let round = 0; round < 12; round += 1) {
      MIX.forEach(([a, b, c, d], at) => {
        const row = SIGMA[round % 10];
        v[a] = (v[a] + v[b] + m[parseInt(row[2 * at], 16)]) & MASK;
        v[d] = rotr(v[d] ^ v[a], 32n);
        v[c] = (v[c] + v[d]) & MASK;
        v[b] = rotr(v[b] ^ v[c], 24n);
        v[a] = (v[a] + v[b] + m[parseInt(row[2 * at + 1], 16)]) & MASK;
        v[d] = rotr(v[d] ^ v[a], 16n);
        v[c] = (v[c] + v[d]) & MASK;
        v[b] = rotr(v[b] ^ v[c], 63n);
      });
    }
    for (let at = 0; at < 8; at += 1) h[at] ^= v[at] ^ v[at + 8];
  }
  return joined(...h.slice(0, 4).map((each) => littleBytes(each, 8)));
}

const RATE = 136;

/** @param {Uint8Array} message @returns {Uint8Array} 32 bytes */
export function keccak(message) {
  const padded = new Uint8Array((Math.floor(message.length / RATE) + 1) * RATE);
  padded.set(message);
  padded[message.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  /** @type {bigint[]} */
  const a = new Array(25).fill(0n);
  for (let start = 0; start < padded.length; start += RATE) {
    for (let at = 0; at < RATE / 8; at += 1) a[at] ^= little(padded.subarray(start + at * 8, start + at * 8 + 8));
    permute(a);
  }
  return joined(...a.slice(0, 4).map((each) => littleBytes(each, 8)));
}

/** @param {bigint[]} a 25 words, x + 5 y */
function permute(a) {
  let lfsr = 1;
  for (let round = 0; round < 24; round += 1) {
    const c = [0, 1, 2, 3, 4].map((x) => a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]);
    for (let at = 0; at < 25; at += 1) a[at] ^= c[(at + 4) % 5] ^ rotr(c[(at + 1) % 5], 63n);
    let [x, y] = [1, 0];
    let current = a[1];
    for (let t = 0; t < 24; t += 1) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const by = BigInt(64 - ((((t + 1) * (t + 2)) / 2) % 64));
      const next = a[x + 5 * y];
      a[x + 5 * y] = rotr(current, by % 64n);
      current = next;
    }
    for (let row = 0; row < 25; row += 5) {
      const b = a.slice(row, row + 5);
      for (let at = 0; at < 5; at += 1) a[row + at] = b[at] ^ (~b[(at + 1) % 5] & MASK & b[(at + 2) % 5]);
    }
    for (let j = 0; j < 7; j += 1) {
      if (lfsr & 1) a[0] ^= 1n << BigInt((1 << j) - 1);
      lfsr = (lfsr << 1) ^ (lfsr & 0x80 ? 0x171 : 0);
    }
  }
}

const P = (1n << 255n) - 19n;
const L = (1n << 252n) + 27742317777372353535851937790883648493n;

/** @param {bigint} value */
const mod = (value) => {
  const found = value % P;
  return found < 0n ? found + P : found;
};

/** @param {bigint} base @param {bigint} exponent */
function power(base, exponent) {
  let found = 1n;
  for (; exponent > 0n; exponent >>= 1n, base = mod(base * base)) if (exponent & 1n) found = mod(found * base);
  return found;
}

/** @param {bigint} value */
const inverse = (value) => power(mod(value), P - 2n);
const D = mod(-121665n * inverse(121666n));
const BASE_Y = mod(4n * inverse(5n));
const BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202n;

/** @typedef {[bigint, bigint, bigint, bigint]} Point extended coordinates */

/** @param {Point} one @param {Point} two @returns {Point} */
function add([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = mod((y1 - x1) * (y2 - x2));
  const b = mod((y1 + x1) * (y2 + x2));
  const c = mod(2n * t1 * t2 * D);
  const d = mod(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

/** @param {bigint} scalar @returns {{y: bigint, packed: Uint8Array}} that many times the base */
function times(scalar) {
  /** @type {Point} */
  let point = [BASE_X, BASE_Y, 1n, mod(BASE_X * BASE_Y)];
  /** @type {Point} */
  let found = [0n, 1n, 1n, 0n];
  for (; scalar > 0n; scalar >>= 1n, point = add(point, point)) if (scalar & 1n) found = add(found, point);
  const z = inverse(found[2]);
  const [x, y] = [mod(found[0] * z), mod(found[1] * z)];
  const packed = littleBytes(y, 32);
  packed[31] |= Number(x & 1n) << 7;
  return { y, packed };
}

/** @typedef {{privateKey: Uint8Array, publicKey: Uint8Array}} Keys */

/**
 * The first account of a seed phrase.
 * @param {string} seed
 * @returns {Keys}
 */
export function keysOf(seed) {
  const hashed = keccak(blake2b(joined([0, 0, 0, 0], new TextEncoder().encode(seed))));
  const privateKey = sha256(hashed);
  privateKey[0] &= 248;
  privateKey[31] = (privateKey[31] & 127) | 64;
  const { y } = times(little(privateKey));
  return { privateKey, publicKey: littleBytes(mod((1n + y) * inverse(1n - y)), 32) };
}

/**
 * @param {Uint8Array} privateKey
 * @param {Uint8Array} message
 * @returns {Uint8Array}
 */
export function sign(privateKey, message) {
  const scalar = little(privateKey);
  const own = times(scalar).packed;
  const random = crypto.getRandomValues(new Uint8Array(64));
  const prefix = new Uint8Array(32).fill(255);
  prefix[0] = 254;
  const r = little(sha512(joined(prefix, privateKey, message, random))) % L;
  const first = times(r).packed;
  const h = little(sha512(joined(first, own, message))) % L;
  const signature = joined(first, littleBytes((r + h * scalar) % L, 32));
  signature[63] |= own[31] & 128;
  return signature;
}

/**
 * @param {Uint8Array} publicKey
 * @param {number} chainId
 */
export function addressOf(publicKey, chainId) {
  const body = joined([1, chainId], keccak(blake2b(publicKey)).subarray(0, 20));
  return joined(body, keccak(blake2b(body)).subarray(0, 4));
}
