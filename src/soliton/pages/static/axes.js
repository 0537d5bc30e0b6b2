// What the drawings of the exchange share: their size in pixels, so that nothing is stretched, round
// numbers along an axis, and the labels of a crosshair.

import { svg } from "./dom.js";

/** The width of a letter of a label. */
export const LETTER = 6.7;
/** What is said until there is an answer. */
export const LOADING = "Loading…";

/**
 * Draw in pixels, and again when the element has another size.
 * @param {SVGElement} chart
 * @param {(width: number, height: number) => void} draw
 * @returns {() => void} draws at the next frame
 */
export function fitted(chart, draw) {
  let isDue = false;
  const again = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      const [width, height] = [chart.clientWidth, chart.clientHeight];
      if (!width || !height) return;
      chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
      draw(width, height);
    });
  };
  new ResizeObserver(again).observe(chart);
  return again;
}

/**
 * Round numbers from one value to another.
 * @param {number} lowest
 * @param {number} highest
 * @param {number} most how many there may be
 */
export function ticks(lowest, highest, most) {
  const rough = (highest - lowest) / Math.max(1, most);
  if (!(rough > 0) || !Number.isFinite(rough)) return [lowest];
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * ([1, 2, 5].find((each) => each * size >= rough) ?? 10);
  /** @type {number[]} */
  const found = [];
  for (let at = Math.ceil(lowest / step); at * step <= highest && found.length <= most; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/**
 * Words on a ground of their own.
 * @param {number} x of the left edge
 * @param {number} y of the middle
 * @param {string} words
 */
export function tag(x, y, words) {
  return [svg("rect", { class: "ground", x, y: y - 9, width: words.length * LETTER + 8, height: 18, rx: 3 }), svg("text", { class: "tag", x: x + 4, y: y + 4 }, words)];
}

/**
 * @param {SVGElement} chart
 * @param {string} words
 * @param {number} width
 * @param {number} height
 */
export function nothing(chart, words, width, height) {
  chart.replaceChildren(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, words));
}
