// How values are written for people: amounts, times, ids, and texts of strangers.

import { h } from "./dom.js";

const LONGEST = 120;
// What has no look of its own, or turns the text around it: controls, joiners, marks of direction.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]/g;

/**
 * A stranger's text on one line, with marks where it holds what cannot be seen.
 * @param {unknown} text
 * @param {number} [longest]
 */
export function clean(text, longest = LONGEST) {
  const shown = String(text ?? "").slice(0, longest * 4).replace(INVISIBLE, "\u25a1");
  const letters = [...shown];
  return letters.length > longest ? `${letters.slice(0, longest).join("")}…` : shown;
}

/**
 * The same as an element that nothing inside can turn around.
 * @param {unknown} text
 * @param {number} [longest]
 */
export function stranger(text, longest = LONGEST) {
  const shown = clean(text, longest);
  return h("bdi", { class: "stranger" }, shown === "" ? "(empty)" : shown);
}

/** @param {number | bigint} value */
export function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/**
 * Units of an asset as a decimal number.
 * @param {number | bigint | string} units
 * @param {number} decimals
 * @returns {[string, string]} before the point, and from the point on without zeros at the end
 */
export function parts(units, decimals) {
  const value = BigInt(units);
  const digits = String(value < 0n ? -value : value).padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const rest = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return [(value < 0n ? "\u2212" : "") + grouped(BigInt(whole)), rest ? `.${rest}` : ""];
}

/**
 * @param {number | bigint | string} units
 * @param {number} decimals
 */
export function decimal(units, decimals) {
  return parts(units, decimals).join("");
}

/**
 * A number whose point stands below that of its neighbours in a column.
 * @param {number | bigint | string} units
 * @param {number} decimals
 */
export function aligned(units, decimals) {
  const [whole, rest] = parts(units, decimals);
  return h("span", { class: "number" }, whole, h("span", { class: "fraction" }, rest));
}

/**
 * What a person types, as units; null for what is no amount.
 * @param {string} text
 * @param {number} decimals
 * @returns {bigint | null}
 */
export function units(text, decimals) {
  const found = /^(\d{1,19})(?:[.,](\d*))?$/.exec(text.replace(/[\s\u202f_]/g, ""));
  if (!found) return null;
  const rest = found[2] ?? "";
  if (rest.length > decimals) return null;
  const value = BigInt(found[1] + rest.padEnd(decimals, "0"));
  return value < 2n ** 63n ? value : null;
}

/**
 * The beginning and end of an id.
 * @param {string} id
 */
export function short(id) {
  return id.length > 16 ? `${id.slice(0, 7)}…${id.slice(-5)}` : id;
}

/** Clocks may differ by so much without a word about it. */
export const SKEW = 60_000;
/** How far the clock that the page goes by is ahead of this machine's, in milliseconds. */
let ahead = 0;

/**
 * Go by the clock of who serves the page where this machine's is far from it.
 * @param {number} time what that one says
 * @param {string} whose
 * @returns {string} what a person should know; empty where both agree
 */
export function goBy(time, whose) {
  const difference = Math.round(time - Date.now());
  const isFar = Math.abs(difference) >= SKEW;
  if (!isFar && ahead === 0) return "";
  ahead = isFar ? difference : 0;
  tick();
  const rounded = Math.round(ahead / SKEW) * SKEW;
  return isFar ? `The ${whose}'s clock is ${duration(rounded)} ${ahead > 0 ? "ahead of" : "behind"} this machine's; times are by the ${whose}'s clock.` : "";
}

let began = Date.now() - performance.now();

/** Whether somebody has set this machine's clock since the last question. */
export function wasSet() {
  const before = began;
  began = Date.now() - performance.now();
  return Math.abs(began - before) >= SKEW;
}

/** The time by the clock that the page goes by. */
export function now() {
  return Date.now() + ahead;
}

/** @param {number} milliseconds */
export function utc(milliseconds) {
  const date = new Date(Number(milliseconds));
  if (Number.isNaN(date.getTime())) return "not a time";
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** @type {[number, string][]} */
const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];

/** @param {number} milliseconds a length of time */
export function duration(milliseconds) {
  const seconds = Math.floor(Math.abs(milliseconds) / 1000);
  const days = Math.floor(seconds / 86_400);
  if (days > 730) return `${Math.floor(days / 365)} years`;
  for (const [size, name] of UNITS) {
    if (seconds >= size) {
      const rest = Math.floor((seconds % size) / (size === 86_400 ? 3_600 : 60));
      const finer = size >= 3_600 && rest ? ` ${rest} ${size === 86_400 ? "h" : "min"}` : "";
      return `${Math.floor(seconds / size)} ${name}${finer}`;
    }
  }
  return "0 s";
}

/** @param {number} milliseconds */
function relative(milliseconds) {
  const distance = now() - milliseconds;
  if (Math.abs(distance) < 1_000) return "now";
  return distance < 0 ? `in ${duration(distance)}` : `${duration(distance)} ago`;
}

/**
 * A moment, relative; the time in UTC stands beside it or in its title.
 * @param {number} milliseconds
 * @param {boolean} [both]
 */
export function time(milliseconds, both = false) {
  const value = Number(milliseconds);
  const words = utc(value);
  const element = h("time", { title: words, "data-ms": value }, relative(value));
  return both ? h("span", null, `${words} (`, element, ")") : element;
}

/** Let the relative times of the page go on. */
export function tick() {
  for (const element of document.querySelectorAll("time[data-ms]")) {
    const words = relative(Number(element.getAttribute("data-ms")));
    if (element.textContent !== words) element.textContent = words;
  }
}

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/**
 * Bytes of base58; null for what is none.
 * @param {string} text
 * @returns {Uint8Array | null}
 */
export function base58(text) {
  if (text.length > 400) return null;
  let value = 0n;
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter);
    if (digit < 0) return null;
    value = value * 58n + BigInt(digit);
  }
  /** @type {number[]} */
  const bytes = [];
  for (; value > 0n; value >>= 8n) bytes.unshift(Number(value & 255n));
  for (const letter of text) {
    if (letter !== "1") break;
    bytes.unshift(0);
  }
  return Uint8Array.from(bytes);
}

/** @param {Uint8Array} bytes */
export function toBase58(bytes) {
  let value = 0n;
  for (const each of bytes) value = (value << 8n) | BigInt(each);
  let text = "";
  for (; value > 0n; value /= 58n) text = ALPHABET[Number(value % 58n)] + text;
  for (const each of bytes) {
    if (each !== 0) break;
    text = `1${text}`;
  }
  return text;
}

/**
 * An attachment as text, where it is one.
 * @param {string} encoded
 * @returns {string | null}
 */
export function attachmentText(encoded) {
  const bytes = base58(encoded);
  if (!bytes) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
