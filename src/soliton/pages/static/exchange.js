// The exchange page: markets, book, candles and trades as they happen, and orders signed in the page.

import { draw, figure } from "./candles.js";
import { at, h, show, svg } from "./dom.js";
import { clean, decimal, now, stranger, tick, time, units } from "./format.js";
import { compact, parse } from "./json.js";
import { admission, cancellation, order, priceDecimals, signerOf } from "./orders.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./orders.js").Market} Market */
/** @typedef {import("./orders.js").Signer} Signer */

const ROOT = document.documentElement.dataset;
const MATCHER = at("public-key").textContent ?? "";
/** @type {Record<string, number>} */
const INTERVALS = { "1m": 60_000, "5m": 300_000, "1h": 3_600_000, "1d": 86_400_000 };
const LEVELS = 100;
const DEEPEST = 1_000;
const TRADES = 50;
const AGAIN_MS = 2_000;
const REFRESH_MS = 10_000;
const GATHER_MS = 250;

/** @type {Map<string, Market>} by symbol */
const markets = new Map();
/** @type {Json[]} */
let tickers = [];
const state = {
  /** @type {string | null} */ symbol: null,
  interval: "1m",
  group: 0,
  /** @type {Map<string, string>} */ bids: new Map(),
  /** @type {Map<string, string>} */ asks: new Map(),
  /** @type {WebSocket | null} */ socket: null,
  /** @type {number | null} */ number: null,
  /** @type {Signer | null} */ signer: null,
  /** @type {Map<string, { filled: number | bigint, exchanges: Json[] }>} orders whose exchanges were asked for */ opened: new Map(),
};

/** @param {string} path @param {RequestInit} [options] @returns {Promise<Json>} */
async function ask(path, options = {}) {
  const response = await fetch(path, { ...options, cache: "no-store" });
  const text = await response.text();
  const value = text ? parse(text) : null;
  if (!response.ok) throw new Error(clean(value?.message ?? `The matcher answered with status ${response.status}.`, 400));
  return value;
}

/** @param {string} path @param {Json} body */
const post = (path, body) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: compact(body) });

/** @param {string} symbol */
const pathOf = (symbol) => symbol.split("-").map(encodeURIComponent).join("/");

/** @param {string} symbol */
function nameOf(symbol) {
  const found = markets.get(symbol);
  return found ? `${clean(found.amount.name, 30)} / ${clean(found.price.name, 30)}` : symbol.split("-").map((id) => `${id.slice(0, 6)}…`).join(" / ");
}

function current() {
  return state.symbol === null ? undefined : markets.get(state.symbol);
}

async function loadMarkets() {
  const [found, books] = await Promise.all([ask("api/v1/tickers"), ask("matcher/orderbook")]);
  tickers = found;
  for (const each of books.markets) {
    markets.set(`${each.amountAsset}-${each.priceAsset}`, {
      amount: { id: each.amountAsset, name: each.amountAssetName, decimals: each.amountAssetInfo?.decimals ?? 8 },
      price: { id: each.priceAsset, name: each.priceAssetName, decimals: each.priceAssetInfo?.decimals ?? 8 },
    });
  }
  showMarkets();
  if (state.symbol === null && tickers.length) choose(tickers[0].symbol);
}

function showMarkets() {
  if (!tickers.length) return;
  const words = /** @type {HTMLInputElement} */ (at("find")).value.trim().toLowerCase();
  const shown = tickers.filter((each) => `${nameOf(each.symbol)} ${each.symbol}`.toLowerCase().includes(words));
  show(at("markets"), shown.length ? shown.map((each) => {
    const change = each.open && each.last ? (Number(each.last) / Number(each.open) - 1) * 100 : null;
    const row = h("tr", { "data-symbol": each.symbol, class: each.symbol === state.symbol && "chosen", onclick: () => choose(each.symbol) },
      h("td", null, h("button", { type: "button", title: each.symbol }, stranger(nameOf(each.symbol), 64))),
      h("td", { class: "numeric" }, each.last ?? "–"),
      h("td", { class: `numeric ${change !== null && change < 0 ? "sell" : "buy"}` }, change === null ? "–" : `${change > 0 ? "+" : ""}${change.toFixed(2)} %`),
      h("td", { class: "numeric" }, each.volume ?? "–"));
    return row;
  }) : h("tr", null, h("td", { colspan: 4, class: "empty" }, "No market is called that.")));
}

/** @param {string} symbol */
function choose(symbol) {
  if (symbol === state.symbol) return;
  if (state.symbol !== null) send({ T: "u", S: state.symbol });
  state.symbol = symbol;
  state.number = null;
  state.bids.clear();
  state.asks.clear();
  state.group = 0;
  show(at("pair"), nameOf(symbol));
  for (const each of document.querySelectorAll("#markets tr")) each.classList.toggle("chosen", each.getAttribute("data-symbol") === symbol);
  subscribe();
  refresh();
  showAccount();
}

/** @param {Json[]} trades */
function showTrades(trades) {
  if (!trades.length) return show(at("trades"), h("tr", null, h("td", { colspan: 3, class: "empty" }, "none yet")));
  return show(at("trades"), [...trades].reverse().map((each) => h("tr", { title: new Date(each.timestamp).toISOString() },
    h("td", null, time(each.timestamp)), h("td", { class: `numeric ${each.side}` }, each.price), h("td", { class: "numeric" }, each.amount))));
}

async function loadTrades() {
  const symbol = state.symbol;
  if (symbol === null) return;
  const [trades, candles] = await Promise.all([
    ask(`api/v1/trades/${pathOf(symbol)}?limit=${TRADES}`),
    ask(`api/v1/candles/${pathOf(symbol)}?interval=${state.interval}&limit=90`)]);
  if (symbol !== state.symbol) return;
  showTrades(trades);
  const length = INTERVALS[state.interval];
  draw(/** @type {any} */ (at("chart")), candles, length, (words) => { at("under").textContent = words; });
}

let isDue = false;

/** Ask for what a trade has changed, but not for every one of a burst. */
function refresh() {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    loadTrades().catch(report);
    loadMarkets().catch(report);
    loadOwn().catch(report);
  }, GATHER_MS);
}

/** @param {unknown} error */
function report(error) {
  at("under").textContent = error instanceof Error ? error.message : String(error);
}

/**
 * Levels put together by a step of prices; bids go down to it, asks up.
 * @param {Map<string, string>} levels
 * @param {boolean} isBid
 * @returns {[number, number][]} the best first
 */
function grouped(levels, isBid) {
  /** @type {Map<number, number>} */
  const found = new Map();
  for (const [price, amount] of levels) {
    const steps = state.group ? Number(price) / state.group : 0;
    // A price that is a multiple already must not move by what a double cannot hold.
    const whole = Math.abs(steps - Math.round(steps)) < 1e-9 ? Math.round(steps) : isBid ? Math.floor(steps) : Math.ceil(steps);
    const place = state.group ? Number((whole * state.group).toPrecision(12)) : Number(price);
    found.set(place, (found.get(place) ?? 0) + Number(amount));
  }
  return [...found].sort(([a], [b]) => (isBid ? b - a : a - b));
}

let isBookDue = false;

function bookChanged() {
  if (isBookDue) return;
  isBookDue = true;
  requestAnimationFrame(() => {
    isBookDue = false;
    showBook();
  });
}

function showBook() {
  const bids = grouped(state.bids, true).slice(0, LEVELS);
  const asks = grouped(state.asks, false).slice(0, LEVELS);
  const sums = [bids, asks].map((side) => side.reduce((sum, [, amount]) => sum + amount, 0));
  const most = Math.max(...sums) || 1;
  const rows = (/** @type {[number, number][]} */ side) => {
    let sum = 0;
    return side.map(([price, amount]) => {
      sum += amount;
      const bar = svg("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { x: 100 - (100 * sum) / most, width: (100 * sum) / most, height: 1 }));
      return h("tr", null, h("td", null, h("button", { type: "button", title: "Take this price", onclick: () => takePrice(price) }, figure(price))),
        h("td", { class: "numeric" }, figure(amount)), h("td", { class: "numeric" }, bar, figure(sum)));
    });
  };
  show(at("asks"), rows(asks).reverse());
  show(at("bids"), rows(bids));
  at("spread").textContent = bids.length && asks.length
    ? `spread ${figure(asks[0][0] - bids[0][0])}` : bids.length || asks.length ? "one side is empty" : "no orders";
  showGroups(bids[0]?.[0] ?? asks[0]?.[0]);
}

/** @param {number | undefined} price around which the steps are */
function showGroups(price) {
  const select = /** @type {HTMLSelectElement} */ (at("group"));
  if (select.options.length && select.dataset.symbol === state.symbol) return;
  const size = price ? Math.floor(Math.log10(price)) : 0;
  select.dataset.symbol = price ? state.symbol ?? "" : "";
  show(select, h("option", { value: 0 }, "none"), [-4, -3, -2, -1, 0].map((each) => {
    const step = Number((10 ** (size + each)).toPrecision(1));
    return h("option", { value: step }, String(step));
  }));
}

/** @param {number} price */
function takePrice(price) {
  const field = /** @type {HTMLInputElement | null} */ (document.getElementById("price"));
  if (!field) return;
  field.value = figure(price);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** @param {Map<string, string>} levels @param {[string, string][] | undefined} changes */
function change(levels, changes) {
  for (const [price, amount] of changes ?? []) {
    if (Number(amount) === 0) levels.delete(String(price));
    else levels.set(String(price), String(amount));
  }
}

/** @param {Json} message */
function send(message) {
  if (state.socket?.readyState === WebSocket.OPEN) state.socket.send(JSON.stringify(message));
}

function subscribe() {
  if (state.symbol === null) return;
  send({ T: "obs", S: state.symbol, d: DEEPEST, ...(state.number === null ? {} : { N: state.number }) });
}

function connect() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/v0?a_client=page`);
  const place = at("live");
  state.socket = socket;
  socket.onopen = () => { place.textContent = place.className = "live"; subscribe(); };
  socket.onclose = () => {
    place.textContent = "no connection, trying again…";
    place.className = "broken";
    setTimeout(connect, AGAIN_MS);
  };
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.T === "pp") socket.send(event.data);
    if (message.T !== "ob" || message.S !== state.symbol) return;
    if (message.U === 0) { state.bids.clear(); state.asks.clear(); }
    state.number = message.N;
    change(state.asks, message.a);
    change(state.bids, message.b);
    bookChanged();
    if (message.t || message.U === 0) refresh();
  };
}

function showAccount() {
  const place = at("account");
  const signer = state.signer;
  if (!signer) {
    const seed = h("input", { type: "password", id: "seed", autocomplete: "off", spellcheck: false, maxlength: 4_000, required: true });
    const form = h("form", { class: "order" },
      h("p", { class: "soft" }, "A seed phrase signs orders in this page. It is kept in memory until you leave, and is sent nowhere."),
      h("label", null, "Seed phrase", seed), h("button", { type: "submit" }, "Open the account"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      state.signer = signerOf(seed.value, Number(ROOT.chainId));
      seed.value = "";
      showAccount();
      loadOwn().catch(report);
    });
    return show(place, form);
  }
  const market = current();
  const leave = h("button", { type: "button", class: "copy", onclick: () => {
    state.signer = null;
    state.opened.clear();
    showAccount();
    show(at("orders"), h("p", { class: "empty" }, "Give a seed phrase to see them."));
  } }, "Forget");
  return show(place, h("p", null, h("code", { id: "own-address" }, signer.address), " ", leave), h("div", { id: "balances" }), market ? orderForm(signer, market) : h("p", { class: "empty" }, "Choose a market to trade."));
}

/** @param {Signer} signer @param {Market} market */
function orderForm(signer, market) {
  const kind = h("select", { id: "kind" }, h("option", { value: "limit" }, "Limit"), h("option", { value: "market" }, "Market"));
  const price = h("input", { id: "price", inputmode: "decimal", autocomplete: "off", maxlength: 30 });
  const amount = h("input", { id: "amount", inputmode: "decimal", autocomplete: "off", maxlength: 30 });
  const outcome = h("div", { id: "outcome", role: "status" });
  const total = h("span", { class: "soft" });
  const buttons = [h("button", { type: "button", class: "buy" }, "Buy"), h("button", { type: "button", class: "sell" }, "Sell")];
  const count = () => {
    const [first, second] = [Number(price.value), Number(amount.value)];
    total.textContent = first > 0 && second > 0 ? `Total ${figure(first * second)} ${clean(market.price.name, 30)}` : "";
  };
  price.addEventListener("input", count);
  amount.addEventListener("input", count);
  const place = async (/** @type {"buy" | "sell"} */ side) => {
    const wanted = units(amount.value, market.amount.decimals);
    const offered = units(price.value, priceDecimals(market));
    if (!wanted) throw new Error(`“${clean(amount.value, 30)}” is no amount with ${market.amount.decimals} decimals.`);
    if (!offered) throw new Error(`“${clean(price.value, 30)}” is no price with ${priceDecimals(market)} decimals.`);
    const path = `matcher/orderbook/${encodeURIComponent(market.amount.id)}/${encodeURIComponent(market.price.id)}`;
    const { base, discount } = await post(`${path}/calculateFee`, { orderType: side, amount: wanted, price: offered });
    const fee = discount ?? base;
    const made = order(signer, market, MATCHER, side, wanted, offered, { matcherFee: fee.matcherFee, feeAssetId: fee.feeAssetId === "WAVES" ? null : fee.feeAssetId }, Math.round(now()));
    const { message } = await post(kind.value === "market" ? "matcher/orderbook/market" : "matcher/orderbook", made);
    return `The matcher has taken it: ${message.id}`;
  };
  buttons.forEach((button, number) => button.addEventListener("click", async () => {
    for (const each of buttons) each.disabled = true;
    try {
      show(outcome, h("p", { class: "good" }, await place(number === 0 ? "buy" : "sell")));
    } catch (error) {
      show(outcome, h("p", { class: "bad", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
    for (const each of buttons) each.disabled = false;
    refresh();
  }));
  return h("form", { class: "order", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    h("label", null, "Order", kind), h("label", null, `Price, ${clean(market.price.name, 12)}`, price), h("label", null, `Amount, ${clean(market.amount.name, 12)}`, amount),
    total, h("div", { class: "sides" }, buttons), outcome);
}

async function loadOwn() {
  const { signer, symbol } = state;
  const market = current();
  if (!signer || !market || symbol === null) return;
  const headers = admission(signer, Math.round(now()));
  const path = `matcher/orderbook/${pathOf(symbol)}`;
  const [orders, balances] = await Promise.all([
    ask(`${path}/publicKey/${signer.publicKey}`, { headers }), ask(`${path}/tradableBalance/${signer.address}`)]);
  // What was opened stays open, and shows what an order has traded since.
  await Promise.all(orders.map((/** @type {Json} */ each) => state.opened.has(each.id) && open(each)));
  if (signer !== state.signer || symbol !== state.symbol) return;
  const holder = document.getElementById("balances");
  if (holder) show(holder, [market.amount, market.price].map((each) => h("p", null, `${decimal(balances[each.id] ?? 0, each.decimals)} `, stranger(each.name, 30), " to trade")));
  show(at("orders"), orders.length ? ordersTable(orders, signer, market) : h("p", { class: "empty" }, "No orders in this market."));
}

/** @param {Json[]} orders @param {Signer} signer @param {Market} market */
function ordersTable(orders, signer, market) {
  const heads = ["", "Price", "Amount", "Filled", "State", "When", ""];
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Your orders" }, h("table", null,
    h("thead", null, h("tr", null, heads.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", null, orders.slice(0, 100).map((each) => {
      const isActive = each.status === "Accepted" || each.status === "PartiallyFilled";
      return h("tr", { "data-order": each.id }, h("td", { class: each.type }, each.type), h("td", null, decimal(each.price, priceDecimals(market))),
        h("td", null, decimal(each.amount, market.amount.decimals)), h("td", null, decimal(each.filled, market.amount.decimals)),
        h("td", null, clean(each.status, 30)), h("td", null, time(each.timestamp)),
        h("td", null, isActive && h("button", { type: "button", class: "cancel", onclick: () => cancel(signer, each.id) }, "Cancel"), " ",
          exchangesOf(each)));
    }))));
}

/** @param {Signer} signer @param {string} id */
async function cancel(signer, id) {
  try {
    await post(`matcher/orderbook/${pathOf(/** @type {string} */ (state.symbol))}/cancel`, cancellation(signer, id));
  } catch (error) {
    report(error);
  }
  refresh();
}

/** The transactions of an order, asked for once for each state of it. @param {Json} order */
async function open(order) {
  const before = state.opened.get(order.id);
  if (before?.filled === order.filled && before.exchanges.length) return;
  state.opened.set(order.id, { filled: order.filled, exchanges: await ask(`matcher/transactions/${order.id}`) });
}

/** A button, or what it has opened. @param {Json} order */
function exchangesOf(order) {
  const place = h("span", null);
  const links = () => show(place, (state.opened.get(order.id)?.exchanges ?? []).map((each) => (ROOT.node
    ? h("a", { class: "id", href: `${ROOT.node}/#tx/${each.id}`, title: each.id }, `${each.id.slice(0, 8)}… `)
    : h("code", { title: each.id }, `${each.id.slice(0, 8)}… `))));
  if (state.opened.has(order.id)) links();
  else if (order.filled > 0) {
    // The list may be drawn anew before the matcher has answered: it then asks what is open.
    show(place, h("button", { type: "button", class: "copy", onclick: () => { open(order).then(links, report).then(refresh); } }, "Exchanges"));
  }
  return place;
}

function begin() {
  show(at("intervals"), Object.keys(INTERVALS).map((name) => h("button", { type: "button", "aria-pressed": String(name === state.interval), onclick: (/** @type {Event} */ event) => {
    state.interval = name;
    for (const each of at("intervals").children) each.setAttribute("aria-pressed", String(each === event.target));
    loadTrades().catch(report);
  } }, name)));
  at("find").addEventListener("input", showMarkets);
  at("group").addEventListener("change", (event) => {
    state.group = Number(/** @type {HTMLSelectElement} */ (event.target).value);
    showBook();
  });
  if (ROOT.node) {
    at("explorer").setAttribute("href", `${ROOT.node}/`);
    at("explorer").hidden = false;
  }
  showAccount();
  showBook();
  connect();
  loadMarkets().catch(report);
  setInterval(() => { tick(); }, 1_000);
  setInterval(refresh, REFRESH_MS);
}

begin();
