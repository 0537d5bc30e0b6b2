// The matcher that the page belongs to: what is asked of it, the market that was chosen, and what is
// loaded anew when something has changed.

import { at } from "./dom.js";
import { clean } from "./format.js";
import { compact, parse } from "./json.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./orders.js").Market} Market */
/** @typedef {import("./orders.js").Signer} Signer */

export const ROOT = document.documentElement.dataset;
/** The public key that orders name. */
export const MATCHER = at("public-key").textContent ?? "";
const GATHER_MS = 250;

/** @type {Map<string, Market>} by symbol */
export const markets = new Map();
/** @type {Map<string, string>} the codes of known assets by id */
export const codes = new Map();
export const state = {
  /** @type {string | null} */ symbol: null,
  /** @type {Signer | null} */ signer: null,
};

/** What the matcher refused; `code` is its number of the error. */
export class Refused extends Error {
  /** @param {string} message @param {number | null} code */
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** @param {string} path @param {RequestInit} [options] @returns {Promise<Json>} */
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, cache: "no-store" });
  } catch {
    throw new Error("The matcher cannot be reached.");
  }
  const text = await response.text();
  const value = text ? parse(text) : null;
  if (!response.ok) throw new Refused(clean(value?.message ?? `The matcher responded with status ${response.status}.`, 400), value?.error ?? null);
  return value;
}

/** @param {string} path @param {Json} body */
export function post(path, body) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: compact(body) });
}

/** @param {string} symbol */
export function pathOf(symbol) {
  return symbol.split("-").map(encodeURIComponent).join("/");
}

/** @param {string} symbol */
export function nameOf(symbol) {
  const found = markets.get(symbol);
  return found ? `${titleOf(found.amount)} / ${titleOf(found.price)}` : symbol.split("-").map((id) => `${id.slice(0, 6)}…`).join(" / ");
}

/**
 * The code of a known asset; otherwise its name, with its id where others are known: anybody can
 * issue an asset of any name.
 * @param {{ id: string, name: string }} asset
 */
function titleOf({ id, name }) {
  return codes.get(id) ?? (codes.size ? `${clean(name, 30)} (${id.slice(0, 6)}…)` : clean(name, 30));
}

export function current() {
  return state.symbol === null ? undefined : markets.get(state.symbol);
}

/** @param {unknown} error */
export function report(error) {
  at("trouble").textContent = error instanceof Error ? error.message : String(error);
}

/** @type {(() => Promise<void>)[]} */
const loaders = [];

/** @param {() => Promise<void>} loader called after each change, and from time to time */
export function onChange(loader) {
  loaders.push(loader);
}

/**
 * What does some work for the first of a burst of calls, a moment later.
 * @param {() => Promise<void>} work
 */
export function gathered(work) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      work().catch(report);
    }, GATHER_MS);
  };
}

/** Ask for what a trade has changed, but not for every one of a burst. */
export const refresh = gathered(async () => {
  const outcomes = await Promise.allSettled(loaders.map((load) => load()));
  const failed = outcomes.find((each) => each.status === "rejected");
  if (failed) report(failed.reason);
  else at("trouble").textContent = "";
});
