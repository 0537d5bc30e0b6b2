// The order book: levels by side, put together by steps of prices, and as many rows as can be seen. A
// book of ten thousand levels has no more elements than one of twenty.

import { LOADING } from "./axes.js";
import { before, figure, full, pointed, total, widen } from "./digits.js";
import { at, h, show, svg } from "./dom.js";

/** @typedef {{prices: number[], amounts: number[], sums: number[]}} Levels the best first; sums up to each */
/** @typedef {[string | number, string | number][]} Changes */

/** In pixels; `exchange.css` says the same. */
const ROW = 24;
/** Rows that are there above and below those in sight. */
const SPARE = 8;
/** What a drawing of the whole book may lag behind. */
const TELL_MS = 200;
const COLUMNS = ["--price", "--amount", "--sum"];
const GROUPS = [-4, -3, -2, -1, 0];

/** One side of the book, the best first: prices and amounts beside each other. */
class Side {
  /** @param {boolean} isBid */
  constructor(isBid) {
    this.isBid = isBid;
    /** @type {number[]} */
    this.prices = [];
    /** @type {number[]} */
    this.amounts = [];
    /** @type {Map<number, Levels>} by step */
    this.views = new Map();
  }

  clear() {
    this.prices = [];
    this.amounts = [];
    this.views.clear();
  }

  /** @param {Changes | undefined} changes */
  change(changes) {
    const { prices, amounts, isBid } = this;
    for (const [one, other] of changes ?? []) {
      const [price, amount] = [Number(one), Number(other)];
      const at = before(prices.length, (number) => (isBid ? prices[number] > price : prices[number] < price));
      const isThere = prices[at] === price ? 1 : 0;
      if (amount === 0) {
        prices.splice(at, isThere);
        amounts.splice(at, isThere);
      } else {
        prices.splice(at, isThere, price);
        amounts.splice(at, isThere, amount);
      }
    }
    if (changes?.length) this.views.clear();
  }

  /**
   * Levels put together by a step of prices; bids go down to it, asks up.
   * @param {number} step 0 for none
   * @returns {Levels}
   */
  levels(step) {
    const known = this.views.get(step);
    if (known) return known;
    /** @type {Levels} */
    const found = { prices: [], amounts: [], sums: [] };
    let sum = 0;
    this.prices.forEach((price, at) => {
      sum += this.amounts[at];
      const place = step ? this.stepOf(price, step) : price;
      const last = found.prices.length - 1;
      if (found.prices[last] === place) {
        found.amounts[last] += this.amounts[at];
        found.sums[last] = sum;
      } else {
        found.prices.push(place);
        found.amounts.push(this.amounts[at]);
        found.sums.push(sum);
      }
    });
    this.views.set(step, found);
    return found;
  }

  /** @param {number} price @param {number} step */
  stepOf(price, step) {
    const steps = price / step;
    // A price that is a multiple already must not move by what a double cannot hold.
    const whole = Math.abs(steps - Math.round(steps)) < 1e-9 ? Math.round(steps) : this.isBid ? Math.floor(steps) : Math.ceil(steps);
    return Number((whole * step).toPrecision(12));
  }
}

/** The rows of a side that are in sight. */
class Rows {
  /**
   * @param {string} name of the table's body; its scrolling box is `name-box`
   * @param {boolean} isUp whether the best is at the bottom
   * @param {(price: string) => void} take
   */
  constructor(name, isUp, take) {
    this.body = at(name);
    this.box = at(`${name}-box`);
    this.isUp = isUp;
    this.take = take;
    /** @type {HTMLElement[]} */
    this.spaces = [...this.box.querySelectorAll("td.space")].map((each) => /** @type {HTMLElement} */ (each));
    /** @type {Levels} */
    this.levels = { prices: [], amounts: [], sums: [] };
    this.most = 1;
    this.isDue = false;
    /** @type {ReturnType<Rows["row"]>[]} */
    this.made = [];
    this.room = 0;
    // How far the best level is from its edge: what comes behind it must not move what is looked at.
    this.left = 0;
    this.box.addEventListener("scroll", () => {
      this.left = isUp ? this.box.scrollHeight - this.room - this.box.scrollTop : this.box.scrollTop;
      this.later();
    }, { passive: true });
    new ResizeObserver(() => {
      this.room = this.box.clientHeight;
      this.draw();
    }).observe(this.box);
  }

  /** @param {Levels} levels @param {number} most the larger sum of both sides */
  show(levels, most) {
    this.levels = levels;
    this.most = most;
    this.draw();
    this.box.setAttribute("aria-label", `${this.isUp ? "Asks" : "Bids"}, ${levels.prices.length} levels`);
  }

  later() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => { if (this.isDue) this.draw(); });
  }

  draw() {
    this.isDue = false;
    const { isUp } = this;
    const { prices, amounts, sums } = this.levels;
    const seen = Math.ceil(this.room / ROW) + 2 * SPARE;
    const first = Math.max(0, Math.min(Math.floor(this.left / ROW) - SPARE, prices.length - seen));
    const part = prices.slice(first, first + seen).map((_, at) => first + at);
    if (isUp) part.reverse();
    const [near, far] = [first * ROW, (prices.length - first - part.length) * ROW];
    for (const [space, height] of [[this.spaces[0], isUp ? far : near], [this.spaces[1], isUp ? near : far]]) {
      /** @type {HTMLElement} */ (space).style.height = `${height}px`;
    }
    while (this.made.length < part.length) this.made.push(this.row());
    for (const each of this.made.splice(part.length)) each.element.remove();
    const texts = part.map((each) => [full(prices[each]), figure(amounts[each], 10), figure(sums[each], 10)]);
    COLUMNS.forEach((name, column) => widen(at("book"), name, texts.map((each) => each[column])));
    part.forEach((each, number) => this.made[number].fill(texts[number], sums[each] / this.most));
    if (this.body.childElementCount !== part.length) this.body.replaceChildren(...this.made.map((each) => each.element));
    if (!isUp) return;
    const wanted = this.box.scrollHeight - this.room - this.left;
    if (Math.abs(this.box.scrollTop - wanted) >= 1) this.box.scrollTop = wanted;
  }

  row() {
    const numbers = COLUMNS.map(() => pointed(""));
    let price = "";
    const bar = svg("rect", { x: 0, width: 0, height: 1 });
    const element = h("tr", null,
      h("td", { class: "prices numeric" }, h("button", { type: "button", title: "Take this price", onclick: () => this.take(price) }, numbers[0].nodes)),
      h("td", { class: "numeric amounts" }, numbers[1].nodes),
      h("td", { class: "numeric sums" }, svg("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" }, bar), numbers[2].nodes));
    return { element, fill: (/** @type {string[]} */ texts, /** @type {number} */ share) => {
      [price] = texts;
      numbers.forEach((each, at) => each.write(texts[at]));
      bar.setAttribute("x", (100 - 100 * share).toFixed(2));
      bar.setAttribute("width", (100 * share).toFixed(2));
    } };
  }

  /** Begin at the best level, in columns of other numbers. */
  anew() {
    this.left = 0;
    if (!this.isUp) this.box.scrollTop = 0;
    for (const name of COLUMNS) at("book").style.removeProperty(name);
  }
}

/**
 * The book of the market that was chosen.
 * @param {(price: string) => void} take what to do with a price that was clicked
 * @param {(sides: [Levels, Levels] | null) => void} tell of what has changed, bids and asks, ungrouped; null until they are known
 */
export function book(take, tell) {
  const [bids, asks] = [new Side(true), new Side(false)];
  const [low, high] = [new Rows("bids", false, take), new Rows("asks", true, take)];
  const select = /** @type {HTMLSelectElement} */ (at("group"));
  let step = 0;
  let isKnown = false;
  let isDue = false;
  let isToldLater = false;
  const draw = () => {
    isDue = false;
    const [lower, upper] = [bids.levels(step), asks.levels(step)];
    const most = Math.max(total(lower), total(upper)) || 1;
    low.show(lower, most);
    high.show(upper, most);
    at("spread").textContent = !isKnown ? LOADING : lower.prices.length && upper.prices.length
      ? `spread ${full(Number((upper.prices[0] - lower.prices[0]).toPrecision(12)))}` : lower.prices.length || upper.prices.length ? "one-sided book" : "no orders";
    const price = bids.prices[0] ?? asks.prices[0];
    if (price && !select.options.length) showSteps(price);
    if (isToldLater) return;
    isToldLater = true;
    setTimeout(() => {
      isToldLater = false;
      tell(isKnown ? [bids.levels(0), asks.levels(0)] : null);
    }, TELL_MS);
  };
  const changed = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(draw);
  };
  const showSteps = (/** @type {number} */ price) => {
    const size = Math.floor(Math.log10(price));
    show(select, h("option", { value: 0 }, "none"), GROUPS.map((each) => {
      const text = full(Number((10 ** (size + each)).toPrecision(1)));
      return h("option", { value: text }, text);
    }));
  };
  select.addEventListener("change", () => {
    step = Number(select.value);
    low.anew();
    high.anew();
    changed();
  });
  return {
    /** Another market. */
    anew() {
      step = 0;
      isKnown = false;
      select.replaceChildren();
      for (const each of [low, high]) each.anew();
      this.clear();
    },
    clear() {
      bids.clear();
      asks.clear();
      changed();
    },
    /** @param {Changes | undefined} lower @param {Changes | undefined} upper */
    change(lower, upper) {
      isKnown = true;
      bids.change(lower);
      asks.change(upper);
      changed();
    },
  };
}
