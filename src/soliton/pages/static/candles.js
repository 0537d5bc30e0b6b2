// Candles with volume, a time axis and a crosshair, drawn as SVG.

import { svg } from "./dom.js";

/** @typedef {[number, string, string, string, string, string, string, number]} Candle start, open, high, low, close, volumes, trades */

const [WIDTH, HEIGHT, RIGHT, BOTTOM] = [900, 380, 70, 22];
const VOLUME = 0.22;
const SHOWN = 90;
const LINES = 5;

/** @param {number} value */
export function figure(value) {
  return String(Number(value.toPrecision(7)));
}

/**
 * @param {SVGElement} chart
 * @param {Candle[]} all
 * @param {number} length of a candle in milliseconds
 * @param {(text: string) => void} tell what is below the crosshair
 */
export function draw(chart, all, length, tell) {
  chart.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  chart.setAttribute("preserveAspectRatio", "none");
  const candles = all.slice(-SHOWN);
  if (!candles.length) {
    chart.replaceChildren(svg("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "No trades yet."));
    return;
  }
  const [plot, floor] = [WIDTH - RIGHT, HEIGHT - BOTTOM];
  const highest = Math.max(...candles.map((each) => Number(each[2])));
  const lowest = Math.min(...candles.map((each) => Number(each[3])));
  const room = highest - lowest || highest * 0.02 || 1;
  const most = Math.max(...candles.map((each) => Number(each[5]))) || 1;
  const top = floor * (1 - VOLUME) - 10;
  const y = (/** @type {number} */ price) => 10 + (top - 10) * ((highest - price) / room);
  const step = plot / Math.max(candles.length, 30);
  const x = (/** @type {number} */ at) => plot - (candles.length - at - 0.5) * step;
  const grid = Array.from({ length: LINES }, (_, at) => lowest + (room * at) / (LINES - 1));
  const each = Math.ceil(candles.length / 6);
  const cross = svg("g", { visibility: "hidden" }, svg("line", { class: "cross", y1: 0, y2: floor }), svg("line", { class: "cross", x1: 0, x2: plot }), svg("text", { x: plot + 6 }));
  chart.replaceChildren(
    ...grid.flatMap((price) => [svg("line", { class: "grid", x1: 0, x2: plot, y1: y(price), y2: y(price) }), svg("text", { x: plot + 6, y: y(price) + 4 }, figure(price))]),
    ...candles.flatMap((one, at) => (at % each ? [] : [svg("text", { x: x(at), y: HEIGHT - 6, "text-anchor": "middle" }, label(one[0], length))])),
    ...candles.flatMap((one, at) => candle(one, x(at), step, y, floor, most)),
    cross);
  let chosen = candles.length - 1;
  const point = (/** @type {number} */ at, /** @type {number | null} */ height) => {
    chosen = Math.min(candles.length - 1, Math.max(0, at));
    const one = candles[chosen];
    const level = height ?? y(Number(one[4]));
    const [down, across, words] = cross.children;
    cross.setAttribute("visibility", "visible");
    for (const name of ["x1", "x2"]) down.setAttribute(name, String(x(chosen)));
    for (const name of ["y1", "y2"]) across.setAttribute(name, String(level));
    words.setAttribute("y", String(level - 4));
    words.textContent = figure(highest - ((level - 10) / (top - 10)) * room);
    tell(`${label(one[0], length, true)}: open ${one[1]}, high ${one[2]}, low ${one[3]}, close ${one[4]}, volume ${one[5]}`);
  };
  const leave = () => {
    cross.setAttribute("visibility", "hidden");
    tell("");
  };
  chart.onpointermove = (event) => {
    const place = chart.getBoundingClientRect();
    const at = ((event.clientX - place.left) / place.width) * WIDTH;
    point(Math.round(candles.length - 0.5 - (plot - at) / step), Math.min(top, ((event.clientY - place.top) / place.height) * HEIGHT));
  };
  chart.onpointerleave = leave;
  chart.onblur = leave;
  chart.onkeydown = (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    point(chosen + move, null);
  };
}

/**
 * @param {Candle} one
 * @param {number} x
 * @param {number} step
 * @param {(price: number) => number} y
 * @param {number} floor
 * @param {number} most
 */
function candle(one, x, step, y, floor, most) {
  const [, open, high, low, close, volume] = one.map(Number);
  const kind = close >= open ? "up" : "down";
  const width = Math.max(1, step * 0.65);
  const [upper, lower] = [y(Math.max(open, close)), y(Math.min(open, close))];
  const tall = Math.max(0.5, (floor * VOLUME * volume) / most);
  return [
    svg("rect", { class: `volume ${kind}`, x: x - width / 2, y: floor - tall, width, height: tall }),
    svg("line", { class: kind, x1: x, x2: x, y1: y(high), y2: y(low) }),
    svg("rect", { class: `body ${kind}`, x: x - width / 2, y: upper, width, height: Math.max(1, lower - upper) }),
  ];
}

/**
 * @param {number} start
 * @param {number} length
 * @param {boolean} [full]
 */
function label(start, length, full = false) {
  const text = new Date(start).toISOString();
  if (full) return `${text.slice(0, 16).replace("T", " ")} UTC`;
  return length >= 86_400_000 ? text.slice(5, 10) : text.slice(11, 16);
}
