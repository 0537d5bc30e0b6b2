// The order book: levels by side, put together by steps of prices, and as many rows as can be seen. A
// book of ten thousand levels has no more elements than one of twenty.

import { full, figure, pointed, widen } from "./digits.js";
import { at, h, show, svg } from "./dom.js";

/** @typedef {{price: number, amount: number, sum: number}} Level */
/** @typedef {[string | number, string | number][]} Changes */

/** In pixels; `exchange.css` says the same. */
const ROW = 24;
/** Rows that are there above and below those in sight. */
const SPARE = 8;
const COLUMNS = ["--price", "--amount", "--sum"];
const GROUPS = [-4, -3, -2, -1, 0];

/** One side of the book, the best first. */
class Side {
  /** @param {boolean} isBid */
  constructor(isBid) {
    this.isBid = isBid;
    /** @type {Map<number, number>} */
    this.amounts = new Map();
    /** @type {number[]} */
    this.prices = [];
    this.isSorted = true;
  }

  clear() {
    this.amounts.clear();
    this.prices = [];
    this.isSorted = true;
  }

  /** @param {Changes | undefined} changes */
  change(changes) {
    for (const [price, amount] of changes ?? []) {
      const [place, left] = [Number(price), Number(amount)];
      if (left === 0) this.isSorted = !this.amounts.delete(place) && this.isSorted;
      else {
        if (!this.amounts.has(place)) {
          this.prices.push(place);
          this.isSorted = false;
        }
        this.amounts.set(place, left);
      }
    }
  }

  sorted() {
    if (this.isSorted) return this.prices;
    // What was sorted before is so still, but for what has come behind: that is quick to sort.
    this.prices = [...new Set(this.prices)].filter((each) => this.amounts.has(each)).sort((a, b) => (this.isBid ? b - a : a - b));
    this.isSorted = true;
    return this.prices;
  }

  /**
   * Levels put together by a step of prices; bids go down to it, asks up.
   * @param {number} step 0 for none
   * @returns {Level[]}
   */
  levels(step) {
    /** @type {Level[]} */
    const found = [];
    let sum = 0;
    for (const price of this.sorted()) {
      const amount = this.amounts.get(price) ?? 0;
      sum += amount;
      const steps = step ? price / step : 0;
      // A price that is a multiple already must not move by what a double cannot hold.
      const whole = Math.abs(steps - Math.round(steps)) < 1e-9 ? Math.round(steps) : this.isBid ? Math.floor(steps) : Math.ceil(steps);
      const place = step ? Number((whole * step).toPrecision(12)) : price;
      const last = found[found.length - 1];
      if (last?.price === place) {
        last.amount += amount;
        last.sum = sum;
      } else found.push({ price: place, amount, sum });
    }
    return found;
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
    /** @type {Level[]} */
    this.levels = [];
    this.most = 1;
    /** @type {ReturnType<Rows["row"]>[]} */
    this.made = [];
    this.room = 0;
    // How far the best level is from its edge: what comes behind it must not move what is looked at.
    this.left = 0;
    this.box.addEventListener("scroll", () => {
      this.left = isUp ? this.box.scrollHeight - this.room - this.box.scrollTop : this.box.scrollTop;
      this.draw();
    }, { passive: true });
    new ResizeObserver(() => {
      this.room = this.box.clientHeight;
      this.draw();
    }).observe(this.box);
  }

  /** @param {Level[]} levels @param {number} most the larger sum of both sides */
  show(levels, most) {
    this.levels = levels;
    this.most = most;
    this.draw();
    this.box.setAttribute("aria-label", `${this.isUp ? "Asks" : "Bids"}, ${levels.length} levels`);
  }

  draw() {
    const { levels, isUp } = this;
    const seen = Math.ceil(this.room / ROW) + 2 * SPARE;
    const first = Math.max(0, Math.min(Math.floor(this.left / ROW) - SPARE, levels.length - seen));
    const part = levels.slice(first, first + seen);
    if (isUp) part.reverse();
    const [near, far] = [first * ROW, (levels.length - first - part.length) * ROW];
    for (const [space, height] of [[this.spaces[0], isUp ? far : near], [this.spaces[1], isUp ? near : far]]) {
      /** @type {HTMLElement} */ (space).style.height = `${height}px`;
    }
    while (this.made.length < part.length) this.made.push(this.row());
    for (const each of this.made.splice(part.length)) each.element.remove();
    const texts = part.map((each) => [full(each.price), figure(each.amount, 10), figure(each.sum, 10)]);
    COLUMNS.forEach((name, column) => widen(at("book"), name, texts.map((each) => each[column])));
    part.forEach((level, number) => this.made[number].fill(texts[number], level.sum / this.most));
    if (this.body.childElementCount !== part.length) this.body.replaceChildren(...this.made.map((each) => each.element));
    if (!isUp) return;
    const wanted = this.box.scrollHeight - this.room - this.left;
    if (Math.abs(this.box.scrollTop - wanted) >= 1) this.box.scrollTop = wanted;
  }

  row() {
    const button = h("button", { type: "button", title: "Take this price" });
    const amount = h("td", { class: "numeric amounts" });
    const sum = h("span");
    const bar = svg("rect", { x: 0, width: 0, height: 1 });
    const element = h("tr", null, h("td", { class: "prices numeric" }, button), amount,
      h("td", { class: "numeric sums" }, svg("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" }, bar), sum));
    let price = "";
    button.addEventListener("click", () => this.take(price));
    /** @type {string[]} */
    let before = [];
    return { element, fill: (/** @type {string[]} */ texts, /** @type {number} */ share) => {
      [price] = texts;
      [button, amount, sum].forEach((place, at) => { if (texts[at] !== before[at]) show(place, pointed(texts[at])); });
      before = texts;
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
 * @param {(bids: Level[], asks: Level[]) => void} tell of what has changed, ungrouped, at most once a frame
 */
export function book(take, tell) {
  const [bids, asks] = [new Side(true), new Side(false)];
  const [low, high] = [new Rows("bids", false, take), new Rows("asks", true, take)];
  const select = /** @type {HTMLSelectElement} */ (at("group"));
  let step = 0;
  let isDue = false;
  const draw = () => {
    isDue = false;
    const all = [bids.levels(0), asks.levels(0)];
    const [lower, upper] = step ? [bids.levels(step), asks.levels(step)] : all;
    const most = Math.max(lower[lower.length - 1]?.sum ?? 0, upper[upper.length - 1]?.sum ?? 0) || 1;
    low.show(lower, most);
    high.show(upper, most);
    at("spread").textContent = lower.length && upper.length
      ? `spread ${full(Number((upper[0].price - lower[0].price).toPrecision(12)))}` : lower.length || upper.length ? "one side is empty" : "no orders";
    const price = all[0][0]?.price ?? all[1][0]?.price;
    if (price && !select.options.length) showSteps(price);
    tell(all[0], all[1]);
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
      bids.change(lower);
      asks.change(upper);
      changed();
    },
  };
}
