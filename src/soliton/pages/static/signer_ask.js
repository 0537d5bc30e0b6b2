// Asking the signer that has served the page, with an API key that stays in memory.

import { goBy } from "./format.js";
import { compact, parse } from "./json.js";

/** @typedef {import("./json.js").Json} Json */

const SECONDS = 120;
const NO_CALLER = 7020;

/** What the signer refused, or that it cannot be reached. */
export class SignerError extends Error {
  /**
   * @param {number} status 0 where there was no answer
   * @param {number | null} code
   * @param {string} message
   */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether the API key is not good for this. */
  get isStranger() {
    return this.code === NO_CALLER;
  }
}

/** Who has logged in; the key is nowhere else. */
const caller = { key: "", name: "", may: /** @type {string[]} */ ([]) };

/**
 * @param {string} method
 * @param {string} path
 * @param {Json} [body]
 * @returns {Promise<Json>}
 */
async function ask(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", "X-API-Key": caller.key };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  let text;
  try {
    response = await fetch(path, {
      method, headers, body: body === undefined ? undefined : compact(body),
      signal: AbortSignal.timeout(SECONDS * 1000), credentials: "omit", cache: "no-store",
    });
    text = await response.text();
  } catch {
    throw new SignerError(0, null, "The signer cannot be reached.");
  }
  // A browser whose clock is wrong would tell wrongly how long something waits yet.
  const time = Date.parse(response.headers.get("Date") ?? "");
  if (time) goBy(time, "signer");
  let value = null;
  try {
    value = parse(text);
  } catch {
    if (response.ok) throw new SignerError(response.status, null, "The response is not from a signer.");
  }
  if (!response.ok) {
    throw new SignerError(response.status, value?.error ?? null, String(value?.message ?? `The signer responded with status ${response.status}.`));
  }
  return value;
}

/** @param {string} path */
export const get = (path) => ask("GET", path);

/** @param {string} path @param {Json} [body] */
export const post = (path, body = {}) => ask("POST", path, body);

/** @param {string} key */
export async function logIn(key) {
  caller.key = key;
  try {
    const { name, may } = await get("caller");
    Object.assign(caller, { name, may });
  } catch (error) {
    logOut();
    throw error;
  }
}

export function logOut() {
  Object.assign(caller, { key: "", name: "", may: [] });
}

/** Who has logged in; empty for nobody. */
export const who = () => caller.name;

/** @param {string[]} scopes */
export const may = (...scopes) => scopes.some((each) => caller.may.includes(each));
