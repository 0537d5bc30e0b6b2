// The exchange page: markets, book, candles and trades as they happen. Whose orders are signed here is
// for `own.js`.

import { LOADING } from "./axes.js";
import { book } from "./book.js";
import { candles } from "./candles.js";
import { depth } from "./depth.js";
import { pointed, widen } from "./digits.js";
import { at, h, redraw, show } from "./dom.js";
import { stranger, tick, time } from "./format.js";
import { beginOwn, refreshOwn, showAccount, takePrice } from "./own.js";
import { connect, watchBook } from "./stream.js";
import { loadTerms, showTerms } from "./terms.js";
import { turns } from "./turns.js";
import { ROOT, ask, codes, markets, nameOf, onChange, pathOf, refresh, report, state } from "./venue.js";

/** @typedef {import("./json.js").Json} Json */

/** @type {Record<string, number>} */
const INTERVALS = { "1m": 60_000, "5m": 300_000, "1h": 3_600_000, "1d": 86_400_000 };
const TRADES = 50;
const CANDLES = 500;
const MARKETS = 200;
const REFRESH_MS = 10_000;

/** @type {Json[]} */
let tickers = [];
let interval = "1m";
const [marketTurn, tradeTurn] = [turns(), turns()];

const chart = candles(/** @type {any} */ (at("chart")), (words) => { at("under").textContent = words; });
const drawDepth = depth(/** @type {any} */ (at("depth-chart")), (words) => { at("depth-words").textContent = words; });
const levels = book(takePrice, drawDepth);

async function loadMarkets() {
  const isNews = marketTurn();
  const [found, books] = await Promise.all([ask("api/v1/tickers"), ask("matcher/orderbook")]);
  if (!isNews()) return;
  tickers = found;
  codes.clear();
  for (const each of found) {
    // The operator of the matcher vouches for these: each code stands for one asset.
    const both = each.name?.split("/") ?? [];
    if (both.length === 2) codes.set(each.amountAsset, both[0]).set(each.priceAsset, both[1]);
  }
  for (const each of books.markets) {
    markets.set(`${each.amountAsset}-${each.priceAsset}`, {
      amount: { id: each.amountAsset, name: each.amountAssetName, decimals: each.amountAssetInfo?.decimals ?? 8 },
      price: { id: each.priceAsset, name: each.priceAssetName, decimals: each.priceAssetInfo?.decimals ?? 8 },
    });
  }
  showMarkets();
  if (!tickers.length) nothingTraded();
  // A matcher that has begun anew may not have the market any more.
  if (tickers.length && !tickers.some((each) => each.symbol === state.symbol)) choose(named() ?? tickers[0].symbol);
}

/** The market that the address names, by both assets or one of them. */
function named() {
  const [first, second] = location.hash.slice(1).split("/");
  if (!first) return undefined;
  const symbols = tickers.map((each) => each.symbol);
  return symbols.find((each) => (second ? each === `${first}-${second}` : each.split("-").includes(first)));
}

/** There is no market to ask about. */
function nothingTraded() {
  if (state.symbol !== null) return;
  show(at("markets"), h("tr", null, h("td", { colspan: 2, class: "empty" }, "No markets yet: the first order opens one.")));
  show(at("pair"), "No market");
  showTerms("No market is selected.");
  chart.show([], INTERVALS[interval]);
  showTrades([]);
  levels.change([], []);
}

function showMarkets() {
  if (!tickers.length) return;
  const words = /** @type {HTMLInputElement} */ (at("find")).value.trim().toLowerCase();
  const found = tickers.filter((each) => `${nameOf(each.symbol)} ${each.symbol}`.toLowerCase().includes(words));
  redraw(at("markets"), found.length ? found.slice(0, MARKETS).map(marketRow) : h("tr", null, h("td", { colspan: 2, class: "empty" }, "No such market.")),
    found.length > MARKETS && h("tr", null, h("td", { colspan: 2, class: "empty" }, `${found.length - MARKETS} more: search for them.`)));
}

/** @param {Json} each */
function marketRow(each) {
  const change = each.open && each.last ? (Number(each.last) / Number(each.open) - 1) * 100 : null;
  return h("tr", { "data-symbol": each.symbol, class: each.symbol === state.symbol && "chosen", onclick: () => choose(each.symbol) },
    h("td", null, h("button", { type: "button", "data-key": each.symbol, title: each.symbol, "aria-current": each.symbol === state.symbol && "true" }, stranger(nameOf(each.symbol), 64)),
      h("div", { class: "soft" }, `24 h: ${each.volume ?? "–"}`)),
    h("td", { class: "numeric" }, each.last ?? "–",
      h("div", { class: !change ? "soft" : change < 0 ? "sell" : "buy" }, change === null ? "–" : `${change > 0 ? "+" : ""}${change.toFixed(2)} %`)));
}

/** @param {string} symbol */
function choose(symbol) {
  if (symbol === state.symbol) return;
  state.symbol = symbol;
  levels.anew();
  chart.show(null, INTERVALS[interval]);
  showTrades(null);
  show(at("pair"), nameOf(symbol));
  at("pair").title = nameOf(symbol);
  history.replaceState(null, "", `#${symbol.replace("-", "/")}`);
  showMarkets();
  watchBook(symbol);
  refresh();
  showAccount();
  showTerms(LOADING);
  loadTerms().catch(report);
}

/** @param {Json[] | null} trades null until they are known */
function showTrades(trades) {
  const place = at("trades");
  if (!trades?.length) return show(place, h("tr", null, h("td", { colspan: 3, class: "empty" }, trades ? "none yet" : LOADING)));
  for (const name of ["price", "amount"]) widen(place, `--${name}`, trades.map((each) => each[name]));
  return show(place, [...trades].reverse().map((each) => h("tr", { title: new Date(each.timestamp).toISOString() },
    h("td", null, time(each.timestamp)), h("td", { class: `numeric prices ${each.side}` }, pointed(each.price).nodes), h("td", { class: "numeric amounts" }, pointed(each.amount).nodes))));
}

async function loadTrades() {
  const { symbol } = state;
  if (symbol === null) return;
  const asked = interval;
  const isNews = tradeTurn();
  const [trades, found] = await Promise.all([
    ask(`api/v1/trades/${pathOf(symbol)}?limit=${TRADES}`),
    ask(`api/v1/candles/${pathOf(symbol)}?interval=${asked}&limit=${CANDLES}`)]);
  if (symbol !== state.symbol || asked !== interval || !isNews()) return;
  showTrades(trades);
  chart.show(found, INTERVALS[asked]);
}

/** @param {Json} message */
function showBook(message) {
  if (message.U === 0) levels.clear();
  levels.change(message.b, message.a);
  if (message.t || message.U === 0) refresh();
}

function beginChart() {
  const lengths = [...at("intervals").children];
  for (const each of lengths) each.addEventListener("click", () => {
    interval = each.textContent ?? interval;
    for (const other of lengths) other.setAttribute("aria-pressed", String(other === each));
    loadTrades().catch(report);
  });
  [...at("zoom").children].forEach((each, isNearer) => each.addEventListener("click", () => chart.zoom(isNearer > 0)));
}

function begin() {
  beginChart();
  at("find").addEventListener("input", showMarkets);
  window.addEventListener("hashchange", () => {
    const symbol = named();
    if (symbol) choose(symbol);
  });
  if (ROOT.node) {
    at("explorer").setAttribute("href", `${ROOT.node}/`);
    at("explorer").hidden = false;
  }
  onChange(loadTrades);
  onChange(loadMarkets);
  onChange(loadTerms);
  beginOwn();
  connect({ book: showBook, account: refreshOwn });
  loadMarkets().catch(report);
  setInterval(tick, 1_000);
  setInterval(refresh, REFRESH_MS);
}

begin();
