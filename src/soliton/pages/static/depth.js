// The depth of the book: how much is bid and asked up to each price.

import { fitted, nothing, LETTER, tag, ticks } from "./axes.js";
import { figure, full } from "./digits.js";
import { svg } from "./dom.js";

/** @typedef {import("./book.js").Level} Level */

const BOTTOM = 22;
const TOP = 8;
/** No more than this part of the price is shown to either side: one order far away is no depth. */
const FARTHEST = 0.5;

/** @param {SVGElement} chart @param {(words: string) => void} tell what is below the pointer */
export function depth(chart, tell) {
  /** @type {Level[][]} */
  let sides = [[], []];
  const again = fitted(chart, (width, height) => {
    const [bids, asks] = sides;
    const best = [bids[0]?.price, asks[0]?.price].filter((each) => each !== undefined);
    chart.onpointermove = null;
    if (!best.length) return nothing(chart, "No orders.", width, height);
    const middle = best.reduce((sum, each) => sum + each, 0) / best.length;
    const reach = Math.max(middle - (bids[bids.length - 1]?.price ?? middle), (asks[asks.length - 1]?.price ?? middle) - middle);
    const span = Math.min(reach * 1.05, middle * FARTHEST) || middle * 0.01;
    const [lower, upper] = [bids.filter((each) => each.price >= middle - span), asks.filter((each) => each.price <= middle + span)];
    const most = Math.max(lower[lower.length - 1]?.sum ?? 0, upper[upper.length - 1]?.sum ?? 0) || 1;
    const sums = ticks(0, most, 4);
    const right = Math.max(...sums.map((each) => figure(each, 5).length)) * LETTER + 12;
    const [plot, floor] = [width - right, height - BOTTOM];
    const x = (/** @type {number} */ price) => (plot * (price - middle + span)) / (2 * span);
    const y = (/** @type {number} */ sum) => floor - ((floor - TOP) * sum) / most;
    const cross = svg("g", { visibility: "hidden" });
    chart.replaceChildren(
      ...sums.flatMap((each) => [svg("line", { class: "grid", x1: 0, x2: plot, y1: y(each), y2: y(each) }), svg("text", { x: plot + 6, y: y(each) + 4 }, figure(each, 5))]),
      ...ticks(middle - span, middle + span, Math.max(2, Math.floor(plot / 110))).filter((each) => x(each) > 24 && x(each) < plot - 24)
        .map((each) => svg("text", { x: x(each), y: height - 6, "text-anchor": "middle" }, figure(each, 6))),
      svg("path", { class: "down", d: steps(lower, x, y, 0) }), svg("path", { class: "up", d: steps(upper, x, y, plot) }),
      cross);
    chart.onpointermove = (event) => {
      const place = event.clientX - chart.getBoundingClientRect().left;
      const price = middle - span + (place / plot) * 2 * span;
      const isBid = price < middle;
      const level = last(isBid ? lower : upper, (each) => (isBid ? each.price >= price : each.price <= price));
      if (place > plot || !level) return leave();
      cross.setAttribute("visibility", "visible");
      const words = figure(price, 6);
      cross.replaceChildren(svg("line", { class: "cross", x1: place, x2: place, y1: 0, y2: floor }), svg("circle", { cx: place, cy: y(level.sum), r: 3 }),
        ...tag(Math.max(0, Math.min(plot - words.length * LETTER - 8, place - (words.length * LETTER) / 2)), height - 10, words));
      return tell(`${full(level.sum)} ${isBid ? "bid at" : "asked up to"} ${figure(price, 6)}${isBid ? " or more" : ""}`);
    };
    const leave = () => {
      cross.setAttribute("visibility", "hidden");
      tell("");
    };
    chart.onpointerleave = leave;
    return undefined;
  });
  return (/** @type {Level[]} */ bids, /** @type {Level[]} */ asks) => {
    sides = [bids, asks];
    chart.setAttribute("aria-label", bids.length || asks.length
      ? `Depth: ${full(bids[bids.length - 1]?.sum ?? 0)} bid, ${full(asks[asks.length - 1]?.sum ?? 0)} asked` : "Depth: no orders");
    again();
  };
}

/**
 * An outline in steps; what is closer than a pixel is one step.
 * @param {Level[]} levels
 * @param {(price: number) => number} x
 * @param {(sum: number) => number} y
 * @param {number} edge
 */
function steps(levels, x, y, edge) {
  if (!levels.length) return "";
  const words = [`M${x(levels[0].price).toFixed(1)} ${y(0).toFixed(1)}`];
  let before = NaN;
  let sum = 0;
  for (const level of levels) {
    const place = Math.round(x(level.price));
    if (place !== before) {
      words.push(`V${y(sum).toFixed(1)}H${x(level.price).toFixed(1)}`);
      before = place;
    }
    sum = level.sum;
  }
  words.push(`V${y(sum).toFixed(1)}H${edge}V${y(0).toFixed(1)}Z`);
  return words.join("");
}

/** @template T @param {T[]} all sorted by the test @param {(each: T) => boolean} holds */
function last(all, holds) {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(all[middle])) low = middle + 1;
    else high = middle;
  }
  return low ? all[low - 1] : undefined;
}
