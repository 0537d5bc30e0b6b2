// The depth of the book: how much is bid and ask up to each price.

import { LETTER, LOADING, fitted, nothing, tag, ticks } from "./axes.js";
import { before, figure, full, total } from "./digits.js";
import { svg } from "./dom.js";

/** @typedef {import("./book.js").Levels} Levels */

const BOTTOM = 22;
const TOP = 8;
/** No more than this part of the price is shown to either side: one order far away is no depth. */
const FARTHEST = 0.5;

/** @param {SVGElement} chart @param {(words: string) => void} tell what is below the pointer */
export function depth(chart, tell) {
  /** @type {[Levels, Levels] | null} */
  let sides = null;
  /** @type {number | null} where the pointer is, which stays there when the book changes */
  let pointer = null;
  let mark = () => {};
  const again = fitted(chart, (width, height) => {
    mark = () => tell("");
    mark();
    if (!sides) return nothing(chart, LOADING, width, height);
    const [bids, asks] = sides;
    const best = [...bids.prices.slice(0, 1), ...asks.prices.slice(0, 1)];
    if (!best.length) return nothing(chart, "No orders.", width, height);
    const middle = best.reduce((sum, each) => sum + each, 0) / best.length;
    const reach = Math.max(middle - (bids.prices[bids.prices.length - 1] ?? middle), (asks.prices[asks.prices.length - 1] ?? middle) - middle);
    const span = Math.min(reach * 1.05, middle * FARTHEST) || middle * 0.01;
    const [lower, upper] = [cut(bids, (each) => each >= middle - span), cut(asks, (each) => each <= middle + span)];
    const most = Math.max(total(lower), total(upper)) || 1;
    const sums = ticks(0, most, 4);
    const right = Math.max(...sums.map((each) => figure(each, 5).length)) * LETTER + 12;
    const [plot, floor] = [width - right, height - BOTTOM];
    const x = (/** @type {number} */ price) => (plot * (price - middle + span)) / (2 * span);
    const y = (/** @type {number} */ sum) => floor - ((floor - TOP) * sum) / most;
    const cross = svg("g");
    chart.replaceChildren(
      ...sums.flatMap((each) => [svg("line", { class: "grid", x1: 0, x2: plot, y1: y(each), y2: y(each) }), svg("text", { x: plot + 6, y: y(each) + 4 }, figure(each, 5))]),
      ...ticks(middle - span, middle + span, Math.max(2, Math.floor(plot / 110))).filter((each) => x(each) > 24 && x(each) < plot - 24)
        .map((each) => svg("text", { x: x(each), y: height - 6, "text-anchor": "middle" }, figure(each, 6))),
      svg("path", { class: "down", d: steps(lower, x, y, 0) }), svg("path", { class: "up", d: steps(upper, x, y, plot) }),
      cross);
    mark = () => {
      const place = pointer ?? Infinity;
      const price = middle - span + (place / plot) * 2 * span;
      const isBid = price < middle;
      const sum = total(cut(isBid ? lower : upper, (each) => (isBid ? each >= price : each <= price)));
      if (place > plot || !sum) {
        cross.replaceChildren();
        return tell("");
      }
      const words = figure(price, 6);
      cross.replaceChildren(svg("line", { class: "cross", x1: place, x2: place, y1: 0, y2: floor }), svg("circle", { cx: place, cy: y(sum), r: 3 }),
        ...tag(Math.max(0, Math.min(plot - words.length * LETTER - 8, place - (words.length * LETTER) / 2)), height - 10, words));
      return tell(`${full(sum)} ${isBid ? "bid at" : "ask up to"} ${figure(price, 6)}${isBid ? " or more" : ""}`);
    };
    return mark();
  });
  chart.onpointermove = (event) => {
    pointer = event.clientX - chart.getBoundingClientRect().left;
    mark();
  };
  chart.onpointerleave = () => {
    pointer = null;
    mark();
  };
  return (/** @type {[Levels, Levels] | null} */ found) => {
    sides = found;
    chart.setAttribute("aria-label", found ? words(...found) : "Depth");
    again();
  };
}

/** @param {Levels} bids @param {Levels} asks */
function words(bids, asks) {
  return bids.prices.length || asks.prices.length ? `Depth: ${full(total(bids))} bid, ${full(total(asks))} ask` : "Depth: no orders";
}

/**
 * An outline in steps; what is closer than a pixel is one step.
 * @param {Levels} levels
 * @param {(price: number) => number} x
 * @param {(sum: number) => number} y
 * @param {number} edge
 */
function steps({ prices, sums }, x, y, edge) {
  if (!prices.length) return "";
  const words = [`M${x(prices[0]).toFixed(1)} ${y(0).toFixed(1)}`];
  let last = NaN;
  prices.forEach((price, at) => {
    const place = Math.round(x(price));
    if (place === last) return;
    last = place;
    words.push(`V${y(at ? sums[at - 1] : 0).toFixed(1)}H${x(price).toFixed(1)}`);
  });
  words.push(`V${y(sums[sums.length - 1]).toFixed(1)}H${edge}V${y(0).toFixed(1)}Z`);
  return words.join("");
}

/** The first levels, for which a test of their prices holds. @param {Levels} levels @param {(price: number) => boolean} holds */
function cut({ prices, amounts, sums }, holds) {
  const count = before(prices.length, (at) => holds(prices[at]));
  return { prices: prices.slice(0, count), amounts: amounts.slice(0, count), sums: sums.slice(0, count) };
}
