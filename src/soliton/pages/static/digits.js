// Numbers of a market: as people read them, never as powers of ten, with their points below each other;
// and finding one among those that are sorted.

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
  const whole = document.createTextNode("");
  const rest = h("span", { class: "rest" });
  let before = "";
  const write = (/** @type {string} */ now) => {
    if (now === before) return;
    before = now;
    const point = now.indexOf(".");
    whole.data = point < 0 ? now : now.slice(0, point);
    rest.textContent = point < 0 ? "" : now.slice(point);
  };
  write(text);
  return { nodes: [whole, rest], write };
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

/** All that a side of the book has. @param {{sums: number[]}} levels */
export function total({ sums }) {
  return sums[sums.length - 1] ?? 0;
}

/**
 * How many of the first things a test holds for; they are sorted by it.
 * @param {number} count
 * @param {(number: number) => boolean} holds
 */
export function before(count, holds) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
