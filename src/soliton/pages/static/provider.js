// A provider for `@waves/signer` whose keys stay with a signing service:
//
//   import { ProviderSoliton } from "http://127.0.0.1:6888/pages/provider.js";
//   const signer = new Signer({ NODE_URL });
//   await signer.setProvider(new ProviderSoliton("http://127.0.0.1:6888", { apiKey }));
//
// It needs nothing else. The service's setting `signer.origins` has to name the page's origin.

/** @typedef {any} Json */
/** @typedef {{address: string, publicKey: string}} User */
/**
 * `apiKey` is a text or what asks for one; `key` a name, an address or a public key (else the first
 * one that is not locked); `onWaiting` is told of what needs the approval of others; `waitSeconds` is
 * how long that is waited for.
 * @typedef {{apiKey: string | (() => string | Promise<string>), key?: string, onWaiting?: (pending: Json) => void, waitSeconds?: number}} Options
 */

/** The newest versions: who needs another one says so. @type {Record<number, number>} */
const VERSIONS = { 3: 3, 4: 3, 5: 3, 6: 3, 7: 3, 8: 3, 9: 3, 10: 3, 11: 2, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 17: 1 };
/** What the ecosystem's library fills in. @type {Record<number, Json>} */
const DEFAULTS = {
  3: { description: "", reissuable: false, decimals: 8, script: null },
  4: { assetId: null, feeAssetId: null, attachment: "" },
  11: { assetId: null, attachment: "" },
  15: { script: null },
  16: { payment: [], feeAssetId: null },
};
const ORDER_VERSION = 4;
const ORDER_FEE = 300_000;
const ORDER_MS = 29 * 24 * 60 * 60 * 1_000;
const PLACEHOLDER_FEE = 500_000;
const SECONDS = 120;
const POLL_MS = 1_000;
const WAIT_SECONDS = 3_600;
const ADDRESS_BYTES = 26;
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** Numbers that are texts in the ecosystem's libraries, and numbers for a node. */
const NUMBERS = /("(?:amount|quantity|minSponsoredAssetFee|timestamp)":|"type":"integer","value":)"(-?\d{1,20})"/g;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** What the service refused; `code` is its number (0 where there was no answer), `body` all that it said. */
export class SolitonSignerError extends Error {
  /** @param {number} code @param {string} message @param {Json} [body] */
  constructor(code, message, body = null) {
    super(message);
    this.name = "SolitonSignerError";
    this.code = code;
    this.body = body;
  }
}

export class ProviderSoliton {
  #url;
  #options;
  #apiKey = "";
  /** Counts logins and logouts: an answer to an older one changes nothing. */
  #visits = 0;
  #node = { NODE_URL: "", NETWORK_BYTE: 0 };
  /** @type {Map<string, Set<{handler: (data: Json) => void, once: boolean}>>} */
  #handlers = new Map([["login", new Set()], ["logout", new Set()]]);

  /** @param {string} url where the service listens @param {Options} options */
  constructor(url, options) {
    this.#url = url.replace(/\/+$/, "");
    this.#options = options;
    /** @type {User | null} */
    this.user = null;
    this.isSignAndBroadcastByProvider = false;
  }

  /** @param {{NODE_URL: string, NETWORK_BYTE: number}} node */
  async connect(node) {
    this.#node = node;
  }

  /** @returns {Promise<User>} */
  async login() {
    const { apiKey, key } = this.#options;
    const mine = (this.#visits += 1);
    const given = typeof apiKey === "function" ? await apiKey() : apiKey;
    this.#check(mine);
    this.#apiKey = given;
    const { keys } = await this.#ask("GET", "/keys");
    this.#check(mine);
    const found = keys.find((/** @type {Json} */ each) => (key ? [each.name, each.address, each.publicKey].includes(key) : !each.locked)) ?? (key ? undefined : keys[0]);
    if (!found) throw new SolitonSignerError(0, key ? "The signer has no such key." : "The signer has no keys.");
    const byte = bytesOf(found.address)[1];
    if (this.#node.NETWORK_BYTE && byte !== this.#node.NETWORK_BYTE) {
      throw new SolitonSignerError(0, `The signer is for the network ${String.fromCharCode(byte)}, the node for ${String.fromCharCode(this.#node.NETWORK_BYTE)}.`);
    }
    this.user = { address: found.address, publicKey: found.publicKey };
    this.#emit("login", this.user);
    return this.user;
  }

  /** @param {number} visit */
  #check(visit) {
    if (visit !== this.#visits) throw new SolitonSignerError(0, "The login changed in the meantime.");
  }

  async logout() {
    this.#visits += 1;
    this.user = null;
    this.#apiKey = "";
    this.#emit("logout", undefined);
  }

  /** Transactions with proofs. @param {Json | Json[]} list @returns {Promise<Json>} */
  async sign(list) {
    const isOne = !Array.isArray(list);
    const user = this.#user();
    const ready = await Promise.all((isOne ? [list] : list).map((each) => this.#filled(each, user)));
    const signed = ready.length === 1 ? [await this.#signed({ transaction: ready[0] }, user)] : await this.#signed({ package: ready.map((transaction) => ({ transaction })) }, user);
    return isOne ? signed[0] : signed;
  }

  /** The signature of a text, in base58. @param {string | number} data */
  async signMessage(data) {
    return (await this.#signed({ customData: { version: 1, text: String(data) } })).signature;
  }

  /** The signature of entries, in base58. @param {Json[]} data */
  async signTypedData(data) {
    return (await this.#signed({ customData: { version: 2, data: data.map(typed) } })).signature;
  }

  /** @param {Json} order without proofs */
  async signOrder(order) {
    const { amountAsset, priceAsset, ...own } = present(order);
    const assetPair = own.assetPair ?? { amountAsset: coinOr(amountAsset), priceAsset: coinOr(priceAsset) };
    const expiration = Date.now() + ORDER_MS;
    const version = own.version ?? ORDER_VERSION;
    const mode = version === ORDER_VERSION ? { priceMode: "fixedDecimals" } : {};
    return this.#signed({ order: { matcherFee: ORDER_FEE, expiration, ...mode, ...own, version, assetPair } });
  }

  /** What takes an order back. @param {string} orderId @returns {Promise<Json>} sender, orderId, signature */
  async signCancelOrder(orderId) {
    return this.#signed({ cancelOrder: { orderId } });
  }

  /** What lets in at a matcher. @param {number} timestamp @returns {Promise<Json>} publicKey, timestamp, signature */
  async signWavesAuth(timestamp) {
    return this.#signed({ wavesAuth: { timestamp } });
  }

  /** @param {string} event @param {(data: Json) => void} handler */
  on(event, handler) {
    return this.#add(event, handler, false);
  }

  /** @param {string} event @param {(data: Json) => void} handler */
  once(event, handler) {
    return this.#add(event, handler, true);
  }

  /** @param {string} event @param {(data: Json) => void} handler */
  off(event, handler) {
    const known = this.#handlers.get(event);
    for (const each of known ?? []) if (each.handler === handler) known?.delete(each);
    return this;
  }

  /** @param {string} event @param {(data: Json) => void} handler @param {boolean} once */
  #add(event, handler, once) {
    this.#handlers.get(event)?.add({ handler, once });
    return this;
  }

  /** @param {string} event @param {Json} data */
  #emit(event, data) {
    const known = this.#handlers.get(event) ?? new Set();
    for (const each of [...known]) {
      if (each.once) known.delete(each);
      each.handler(data);
    }
  }

  /** With all that the service does not fill in. @param {Json} given @param {User} user */
  async #filled(given, user) {
    const { id: _, ...own } = present(given);
    const senderPublicKey = own.senderPublicKey ?? user.publicKey;
    const made = { ...DEFAULTS[own.type], version: VERSIONS[own.type], ...own, senderPublicKey };
    if (made.type === 12) made.data = made.data.map(typed);
    if (made.fee === undefined) made.fee = await this.#fee(made);
    return made;
  }

  /** @param {Json} made @returns {Promise<Json>} */
  async #fee(made) {
    const body = JSON.stringify({ timestamp: Date.now(), ...made, fee: PLACEHOLDER_FEE }).replace(NUMBERS, "$1$2");
    const url = `${this.#node.NODE_URL.replace(/\/+$/, "")}/transactions/calculateFee`;
    const told = await answer(url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    return told.feeAmount;
  }

  #user() {
    if (!this.user) throw new SolitonSignerError(0, "Not logged in.");
    return this.user;
  }

  /** What the service signs, after the approval of others where that takes it. @param {Json} wanted @param {User} [user] who is there now */
  async #signed(wanted, user = this.#user()) {
    const told = await this.#ask("POST", "/sign", { key: user.publicKey, ...wanted });
    return told.pending ? this.#approved(told) : told.signed;
  }

  /** @param {Json} pending */
  async #approved(pending) {
    this.#options.onWaiting?.(pending);
    const end = Date.now() + (this.#options.waitSeconds ?? WAIT_SECONDS) * 1_000;
    for (let told = pending; ; told = await this.#ask("GET", `/pending/${encodeURIComponent(pending.pending)}`)) {
      if (told.state === "signed") return told.signed;
      if (told.state === "refused") throw new SolitonSignerError(0, `Refused by ${told.refusedBy}.`, told);
      if (told.state === "expired") throw new SolitonSignerError(0, "The approval timed out.", told);
      if (Date.now() > end) throw new SolitonSignerError(0, "Still waiting for approval.", told);
      await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
    }
  }

  /** @param {string} method @param {string} path @param {Json} [body] */
  #ask(method, path, body) {
    /** @type {Record<string, string>} */
    const headers = { "X-API-Key": this.#apiKey };
    if (body) headers["Content-Type"] = "application/json";
    return answer(this.#url + path, { method, headers, body: body && JSON.stringify(body) });
  }
}

/** @param {string} url @param {RequestInit} options @returns {Promise<Json>} */
async function answer(url, options) {
  let response;
  let told;
  try {
    response = await fetch(url, { ...options, credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(SECONDS * 1_000) });
    told = exact(await response.text());
  } catch {
    throw new SolitonSignerError(0, `${new URL(url).origin} gives no usable answer: is it there, and does it let this page ask?`);
  }
  if (!response.ok) throw new SolitonSignerError(told?.error ?? 0, String(told?.message ?? `Status ${response.status}.`), told);
  return told;
}

/** JSON in which numbers that JavaScript would round stay texts, as the ecosystem's libraries take them. @param {string} text */
function exact(text) {
  return JSON.parse(text.replace(TOKEN, (token) => (/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token)));
}

/** @param {string | null | undefined} asset */
function coinOr(asset) {
  return asset === "WAVES" || asset === "" ? null : asset ?? null;
}

/** Without what is not said. @param {Json} value @returns {Json} */
function present(value) {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

/** An entry with its type, bytes in base64. @param {Json} entry @returns {Json} */
function typed(entry) {
  const { key, type, value } = entry;
  if (value instanceof Uint8Array) return { key, type: "binary", value: `base64:${btoa(String.fromCharCode(...value))}` };
  if (type) return { key, type, value };
  if (value === null) return { key, value };
  return { key, type: typeof value === "number" || typeof value === "bigint" ? "integer" : typeof value, value };
}

/** @param {string} address in base58 */
function bytesOf(address) {
  let value = 0n;
  for (const letter of address) value = value * 58n + BigInt(Math.max(0, ALPHABET.indexOf(letter)));
  return Array.from({ length: ADDRESS_BYTES }, (_, at) => Number((value >> BigInt(8 * (ADDRESS_BYTES - 1 - at))) & 255n));
}
