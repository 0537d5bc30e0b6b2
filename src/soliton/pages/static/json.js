// JSON with exact numbers. A number of JavaScript holds 53 bits and amounts have 63: integers that
// do not fit are read as BigInt, and written as they came.

/** @typedef {any} Json a parsed answer; its shape is the interface's, not ours */

// No text of the answer can hold this: it is made when the page starts.
const MARK = `#${crypto.getRandomValues(new Uint32Array(4)).join("")}:`;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * @param {string} text
 * @returns {Json}
 */
export function parse(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKEN, (token) =>
    token.length > 15 && /^-?\d{16,}$/.test(token) ? `"${MARK}${token}"` : token);
  return JSON.parse(marked, (_, value) =>
    typeof value === "string" && value.startsWith(MARK) ? exact(value.slice(MARK.length)) : value);
}

/** @param {string} digits */
function exact(digits) {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : BigInt(digits);
}

/** Values in values: deeper, the spaces alone would be more than a page can show. */
const DEEPEST = 1_000;

/**
 * @param {Json} value
 * @param {string} [indent]
 * @returns {string}
 */
export function pretty(value, indent = "") {
  if (indent.length > 2 * DEEPEST) throw new Error(`Nested more than ${DEEPEST} levels deep: not shown.`);
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const more = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const parts = Array.isArray(value)
    ? value.map((each) => pretty(each, more))
    : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pretty(each, more)}`);
  if (!parts.length) return open + close;
  return `${open}\n${more}${parts.join(`,\n${more}`)}\n${indent}${close}`;
}

/**
 * On one line.
 * @param {Json} value
 * @returns {string}
 */
export function compact(value) {
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(compact).join(",")}]`;
  return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}:${compact(each)}`).join(",")}}`;
}
