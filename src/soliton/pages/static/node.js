// The node that the page looks at: its own, or the one that `?node=` names. What is asked of it, and
// what is remembered of its answers.

import { compact, parse } from "./json.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {{id: string | null, name: string, decimals: number, details: Json}} Asset */

const ROOT = document.documentElement.dataset;
const NAMED = new URLSearchParams(location.search).get("node");

/** Whether it is another node than the one that served the page: nothing is changed there. */
export const IS_FOREIGN = NAMED !== null && /^https?:\/\//.test(NAMED);
/** Its address, without a slash at the end. */
export const BASE = IS_FOREIGN ? String(NAMED).replace(/\/+$/, "") : location.origin;
/** Whether it is a private chain that does what it is told. */
export const OBEYS = !IS_FOREIGN && ROOT.obeys === "yes";
/** The generation of its interface. */
export const FAMILY = IS_FOREIGN ? "waves" : ROOT.family ?? "waves";
export const COIN = { name: ROOT.coin ?? "coins", decimals: 8 };
/** Kept for as many assets and no more. */
const MAX_ASSETS = 5_000;
const SECONDS = 30;

/** What a node refused, or that it cannot be reached. */
export class NodeError extends Error {
  /**
   * @param {number} status 0 where there was no answer
   * @param {number | null} code the interface's number of the error
   * @param {string} message
   * @param {string} [hint]
   * @param {Json} [body] all that the node said
   */
  constructor(status, code, message, hint = "", body = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.body = body;
  }

  /** Whether what was asked for does not exist. */
  get isMissing() {
    return this.status === 404 || (this.code !== null && [301, 302, 304, 311, 313, 4007].includes(this.code));
  }
}

/**
 * @param {string} path
 * @param {{method?: string, body?: Json, text?: string, key?: string, signal?: AbortSignal}} [options]
 * @returns {Promise<{value: Json, next: string | null}>}
 */
export async function ask(path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  let body = options.text;
  if (options.body !== undefined) {
    body = compact(options.body);
    headers["Content-Type"] = "application/json";
  }
  if (options.key) headers["X-API-Key"] = options.key;
  const limit = AbortSignal.timeout(SECONDS * 1000);
  let response;
  let text;
  try {
    response = await fetch(BASE + path, {
      method: options.method ?? (body === undefined ? "GET" : "POST"), headers, body, signal: limit,
      credentials: "omit", cache: "no-store",
    });
    text = await response.text();
  } catch (error) {
    const words = limit.aborted ? `did not answer within ${SECONDS} s` : "cannot be reached";
    throw new NodeError(0, null, `The node ${words}.`, String(error));
  }
  let value = null;
  try {
    value = text === "" ? null : parse(text);
  } catch {
    // What is no JSON may be a text; what began as such goes too deep, or was cut off.
    if (response.ok && /^[[{]/.test(text)) throw new NodeError(response.status, null, "The node's response is not valid.");
    if (response.ok) return { value: text, next: null };
  }
  if (!response.ok || (value !== null && typeof value === "object" && value.status === "error")) {
    const message = value?.message ?? value?.details ?? `The node responded with status ${response.status}.`;
    throw new NodeError(response.status, value?.error ?? null, String(message), value?.hint ?? "", value);
  }
  const link = /^<([^>]*)>; *rel="next"/.exec(response.headers.get("Link") ?? "");
  return { value, next: link ? link[1] : null };
}

/**
 * @param {string} path
 * @returns {Promise<Json>}
 */
export async function get(path) {
  return (await ask(path)).value;
}

/**
 * @param {string} path
 * @param {Json} [body]
 * @param {string} [key]
 * @returns {Promise<Json>}
 */
export async function post(path, body = {}, key = undefined) {
  return (await ask(path, { body, key })).value;
}

/**
 * What a path holds, or what stands for it where the node does not have that.
 * @template T
 * @param {string} path
 * @param {T} otherwise
 * @returns {Promise<Json | T>}
 */
export async function getOr(path, otherwise) {
  try {
    return await get(path);
  } catch (error) {
    if (error instanceof NodeError && error.status !== 0) return otherwise;
    throw error;
  }
}

/** @type {Map<string, Promise<Asset>>} */
const asked = new Map();
/** @type {Map<string, Asset>} */
const known = new Map();
/** @type {Asset} */
export const COIN_ASSET = { id: null, name: COIN.name, decimals: COIN.decimals, details: null };

/** @param {string | null | undefined} id */
function isCoin(id) {
  return id === null || id === undefined || id === "" || id === "WAVES";
}

/**
 * An asset, if the page knows it already.
 * @param {string | null | undefined} id
 * @returns {Asset | undefined}
 */
export function knownAsset(id) {
  return isCoin(id) ? COIN_ASSET : known.get(/** @type {string} */ (id));
}

/**
 * @param {string | null | undefined} id
 * @returns {Promise<Asset>}
 */
export function asset(id) {
  if (isCoin(id)) return Promise.resolve(COIN_ASSET);
  const name = /** @type {string} */ (id);
  let found = asked.get(name);
  if (!found) {
    if (asked.size >= MAX_ASSETS) forgetAssets();
    found = get(`/assets/details/${encodeURIComponent(name)}`).then((details) => noteAsset(name, details));
    asked.set(name, found);
    found.catch(() => asked.delete(name));
  }
  return found;
}

/**
 * Remember an asset of which an answer has told.
 * @param {string} id
 * @param {Json} details
 * @returns {Asset}
 */
export function noteAsset(id, details) {
  const made = { id, name: String(details.name), decimals: Number(details.decimals), details };
  known.set(id, made);
  return made;
}

export function forgetAssets() {
  asked.clear();
  known.clear();
}

/** @returns {Asset[]} */
export function knownAssets() {
  return [...known.values()];
}
