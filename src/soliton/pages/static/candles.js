// Candles with volume, a time axis and a crosshair, that can be moved and looked at from near and far.

import { LETTER, LOADING, fitted, nothing, tag, ticks } from "./axes.js";
import { figure } from "./digits.js";
import { svg } from "./dom.js";

/** @typedef {[number, string, string, string, string, string, string, number]} Candle start, open, high, low, close, volumes, trades */
/** @typedef {(price: number) => number} Scale */

const [TOP, BOTTOM] = [12, 22];
const VOLUME = 0.22;
const DAY = 86_400_000;
/** Pixels for each candle, at first. */
const COMFORT = 9;
const FEWEST = 12;
const ZOOM = 1.3;

/**
 * @param {SVGElement} chart
 * @param {(words: string) => void} tell what is below the crosshair, or of the last candle
 */
export function candles(chart, tell) {
  /** @type {Candle[]} */
  let all = [];
  /** What stands in place of candles. */
  let none = LOADING;
  let length = 60_000;
  /** How many are seen; 0 for what fits. */
  let wanted = 0;
  /** How many newer ones are out of sight. */
  let after = 0;
  /** @type {number | null} the start of the candle below the crosshair */
  let chosen = null;
  /** @type {number | null} */
  let level = null;
  let room = 0;

  const count = () => wanted || Math.max(FEWEST, Math.floor(room / COMFORT));
  const bound = (/** @type {number} */ value, /** @type {number} */ most) => Math.max(0, Math.min(most, value));
  /** @returns {[number, number]} the first candle that is seen, and the one behind the last */
  const seen = () => {
    after = bound(after, all.length - Math.min(all.length, FEWEST));
    const end = all.length - after;
    return [Math.max(0, end - count()), end];
  };
  const older = (/** @type {number} */ by) => {
    after += by;
    // Bounded at once: several of them may come before a frame.
    seen();
  };

  const again = fitted(chart, (width, height) => {
    if (!all.length) return nothing(chart, none, width, height);
    const right = Math.max(...all.slice(-1).map((each) => figure(Number(each[2])).length), 6) * LETTER + 14;
    const [plot, floor] = [width - right, height - BOTTOM];
    room = plot;
    const shown = all.slice(...seen());
    const step = plot / Math.max(shown.length, Math.min(count(), 30));
    const [top, bottom] = [Math.max(...shown.map((each) => Number(each[2]))), Math.min(...shown.map((each) => Number(each[3])))];
    // One price alone stands in the middle.
    const around = top > bottom ? 0 : top * 0.01 || 1;
    const [highest, lowest] = [top + around, bottom - around];
    const gap = highest - lowest;
    const most = Math.max(...shown.map((each) => Number(each[5]))) || 1;
    const low = floor * (1 - VOLUME) - TOP;
    /** @type {Scale} */
    const y = (price) => TOP + (low - TOP) * ((highest - price) / gap);
    const x = (/** @type {number} */ number) => plot - (shown.length - number - 0.5) * step;
    const grid = ticks(lowest - gap * 0.02, highest + gap * 0.02, Math.max(2, Math.floor(low / 40)));
    chart.replaceChildren(
      ...grid.flatMap((price) => [svg("line", { class: "grid", x1: 0, x2: plot, y1: y(price), y2: y(price) }), svg("text", { x: plot + 6, y: y(price) + 4 }, figure(price))]),
      ...times(shown, x, step, length, plot).map(([place, words]) => svg("text", { x: place, y: height - 6, "text-anchor": "middle" }, words)),
      ...bodies(shown, x, y, step, floor, most));
    chart.dataset.candles = String(shown.length);
    const number = chosen === null ? -1 : shown.findIndex((each) => each[0] === chosen);
    const one = shown[number] ?? all[all.length - 1];
    tell(`${label(one[0], length, true)} · O ${one[1]} · H ${one[2]} · L ${one[3]} · C ${one[4]} · V ${one[5]}`);
    if (number >= 0) {
      const place = bound(level ?? y(Number(one[4])), floor);
      const words = label(one[0], length, true);
      const wide = words.length * LETTER + 8;
      chart.append(svg("line", { class: "cross", x1: x(number), x2: x(number), y1: 0, y2: floor }), svg("line", { class: "cross", x1: 0, x2: plot, y1: place, y2: place }),
        ...tag(plot + 2, place, figure(highest - ((place - TOP) / (low - TOP)) * gap)), ...tag(bound(x(number) - wide / 2, plot - wide), height - 10, words));
    }
    chart.onpointermove = (event) => {
      const box = chart.getBoundingClientRect();
      const place = event.clientX - box.left;
      if (grip) {
        older(Math.round(grip.after + (place - grip.place) / step) - after);
        again();
        return;
      }
      chosen = shown[bound(Math.round(shown.length - 0.5 - (plot - place) / step), shown.length - 1)][0];
      level = event.clientY - box.top;
      again();
    };
    return undefined;
  });

  /** @type {{place: number, after: number} | null} what is held and drawn along */
  let grip = null;
  /** What a wheel has been moved by, below a whole candle. */
  let turned = 0;
  const leave = () => {
    chosen = null;
    grip = null;
    again();
  };
  const zoom = (/** @type {boolean} */ isNearer) => {
    wanted = Math.round(bound(count() * (isNearer ? 1 / ZOOM : ZOOM), Math.max(FEWEST, all.length)));
    wanted = Math.max(FEWEST, wanted);
    again();
  };
  chart.onkeydown = (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "+" || event.key === "-") zoom(event.key === "+");
    else if (move !== undefined && event.shiftKey) older(-5 * move);
    else if (move !== undefined && all.length) {
      // Keys may come faster than frames: what is drawn does not count.
      const [first, end] = seen();
      const now = all.findIndex((each) => each[0] === chosen);
      const to = now < first || now >= end ? end - 1 : now + move;
      if (to < first || to >= end) after -= move;
      chosen = all[bound(to, all.length - 1)][0];
      level = null;
    } else return;
    event.preventDefault();
    again();
  };
  chart.onpointerdown = (event) => {
    grip = { place: event.clientX - chart.getBoundingClientRect().left, after };
    chart.setPointerCapture(event.pointerId);
  };
  chart.onpointerup = () => { grip = null; };
  chart.onpointercancel = leave;
  chart.onpointerleave = leave;
  chart.onblur = leave;
  // A wheel alone goes on moving the page.
  chart.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) zoom(event.deltaY < 0);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      turned -= event.deltaX / COMFORT;
      const whole = Math.trunc(turned);
      turned -= whole;
      older(whole);
      again();
    } else return;
    event.preventDefault();
  }, { passive: false });

  return {
    zoom,
    /** @param {Candle[] | null} candles the oldest first; null until they are known @param {number} milliseconds that each is long */
    show(candles, milliseconds) {
      none = candles ? "No trades yet." : LOADING;
      const found = candles ?? [];
      if (milliseconds !== length) wanted = 0;
      if (!candles || milliseconds !== length) [after, chosen, grip] = [0, null, null];
      // Who looks at older ones goes on looking at them.
      const newest = all[all.length - 1]?.[0];
      const more = found.filter((each) => each[0] > newest).length;
      if (grip) grip.after += more;
      if (after) after += more;
      [all, length] = [found, milliseconds];
      if (!all.length) tell("");
      again();
    },
  };
}

/**
 * All candles as two outlines of each kind, the rising and the falling.
 * @param {Candle[]} shown
 * @param {(number: number) => number} x
 * @param {Scale} y
 * @param {number} step
 * @param {number} floor
 * @param {number} most volume
 */
function bodies(shown, x, y, step, floor, most) {
  const width = Math.max(1, Math.min(24, step * 0.65));
  /** @type {Record<string, string[]>} */
  const lines = {};
  const add = (/** @type {string} */ name, /** @type {number} */ left, /** @type {number} */ top, /** @type {number} */ wide, /** @type {number} */ tall) => {
    (lines[name] ??= []).push(`M${left.toFixed(1)} ${top.toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}h${(-wide).toFixed(1)}z`);
  };
  shown.forEach((each, number) => {
    const [, open, high, low, close, volume] = each.map(Number);
    const kind = close >= open ? "up" : "down";
    const [left, upper, lower] = [x(number) - width / 2, y(Math.max(open, close)), y(Math.min(open, close))];
    const tall = Math.max(0.5, (floor * VOLUME * volume) / most);
    add(`volume ${kind}`, left, floor - tall, width, tall);
    add(`body ${kind}`, left, upper, width, Math.max(1, lower - upper));
    add(`wick ${kind}`, x(number) - 0.5, y(high), 1, Math.max(0.5, y(low) - y(high)));
  });
  return Object.entries(lines).map(([name, parts]) => svg("path", { class: name, d: parts.join("") }));
}

/**
 * Times along the axis, far enough from each other.
 * @param {Candle[]} shown
 * @param {(number: number) => number} x
 * @param {number} step
 * @param {number} length
 * @param {number} plot
 * @returns {[number, string][]}
 */
function times(shown, x, step, length, plot) {
  const each = Math.max(1, Math.ceil(78 / step));
  /** @type {[number, string][]} */
  const found = [];
  let day = "";
  for (let number = shown.length - 1 - (Math.floor(each / 2) % shown.length); number >= 0; number -= each) {
    if (x(number) < 20) continue;
    found.unshift([x(number), label(shown[number][0], length)]);
  }
  // A day's name stands where the day begins.
  return found.map(([place, words], number) => {
    const one = shown[Math.round(shown.length - 0.5 - (plot - place) / step)] ?? shown[0];
    const today = label(one[0], DAY);
    const isNew = number > 0 && day !== "" && today !== day;
    day = today;
    return [place, length < DAY && isNew ? today : words];
  });
}

/**
 * @param {number} start
 * @param {number} length
 * @param {boolean} [whole]
 */
function label(start, length, whole = false) {
  const text = new Date(start).toISOString();
  if (whole) return length >= DAY ? text.slice(0, 10) : `${text.slice(0, 16).replace("T", " ")} UTC`;
  return length >= DAY ? text.slice(5, 10) : text.slice(11, 16);
}
