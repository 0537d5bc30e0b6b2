// Decimal numbers of a market as people read them: never as powers of ten, with their points below each
// other.

import { h } from "./dom.js";

/** What a double holds for certain. */
const EXACT = 15;
const PLACES = 18;

/**
 * @param {number} value
 * @param {number} [digits] that count
 */
export function figure(value, digits = 7) {
  const text = String(Number(value.toPrecision(digits)));
  return text.includes("e") ? Number(text).toFixed(PLACES).replace(/\.?0+$/, "") : text;
}

/** A price or amount with all its digits. @param {number} value */
export function full(value) {
  return figure(value, EXACT);
}

/**
 * A number whose point stands below those of its column; the room behind it is the column's
 * `--places`.
 * @param {string} text
 */
export function pointed(text) {
  const [whole, rest] = text.split(".");
  return [whole, h("span", { class: "rest" }, rest === undefined ? "" : `.${rest}`)];
}

/**
 * Let a column have room for the longest of its fractions. It only grows: rows that come and go move
 * nothing.
 * @param {HTMLElement} column
 * @param {string} name
 * @param {string[]} texts
 */
export function widen(column, name, texts) {
  const most = texts.reduce((found, each) => Math.max(found, each.includes(".") ? each.length - each.indexOf(".") - 1 : 0), 0);
  if (most > Number(column.style.getPropertyValue(name) || 0)) column.style.setProperty(name, String(most));
}
