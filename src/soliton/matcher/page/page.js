"use strict";

const INTERVALS = ["1m", "5m", "1h", "1d"];
const LEVELS = 12;
const TRADES = 20;
const CANDLES = 60;
const state = { symbol: null, interval: "1m", names: {}, bids: new Map(), asks: new Map(), socket: null, number: null };
const at = (id) => document.getElementById(id);

function cell(text, kind) {
  const td = document.createElement("td");
  td.textContent = text ?? "–";
  if (kind) td.className = kind;
  return td;
}

function row(cells) {
  const tr = document.createElement("tr");
  tr.append(...cells);
  return tr;
}

async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

const pathOf = (symbol) => symbol.split("-").join("/");
const nameOf = (symbol) => symbol.split("-").map((id) => state.names[id] ?? `${id.slice(0, 6)}…`).join(" / ");

async function showMarkets() {
  const [tickers, markets] = await Promise.all([get("api/v1/tickers"), get("matcher/orderbook")]);
  for (const market of markets.markets) {
    state.names[market.amountAsset] = market.amountAssetName;
    state.names[market.priceAsset] = market.priceAssetName;
  }
  if (!tickers.length) return;
  at("markets").tBodies[0].replaceChildren(...tickers.map((ticker) => {
    const tr = row([
      cell(nameOf(ticker.symbol)), cell(ticker.last), cell(ticker.bid, "buy"), cell(ticker.ask, "sell"),
      cell(ticker.high), cell(ticker.low), cell(ticker.volume), cell(ticker.trades),
    ]);
    tr.dataset.symbol = ticker.symbol;
    tr.className = ticker.symbol === state.symbol ? "chosen" : "";
    tr.title = ticker.symbol;
    tr.onclick = () => choose(ticker.symbol);
    return tr;
  }));
  if (!state.symbol) choose(tickers[0].symbol);
}

function choose(symbol) {
  if (state.symbol) send({ T: "u", S: state.symbol });
  state.symbol = symbol;
  state.number = null;
  at("pair").textContent = nameOf(symbol);
  state.bids.clear();
  state.asks.clear();
  subscribe();
  refresh();
  showMarkets().catch(console.error);
}

async function showTrades() {
  const trades = await get(`api/v1/trades/${pathOf(state.symbol)}?limit=${TRADES}`);
  if (!trades.length) return;
  at("trades").replaceChildren(...trades.reverse().map((trade) => row([
    cell(new Date(trade.timestamp).toLocaleTimeString()), cell(trade.price, trade.side), cell(trade.amount),
  ])));
}

function line(x1, y1, x2, y2, kind) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of Object.entries({ x1, y1, x2, y2, class: kind })) element.setAttribute(name, value);
  return element;
}

function label(x, y, words) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "text");
  element.setAttribute("x", x);
  element.setAttribute("y", y);
  element.textContent = words;
  return element;
}

async function showCandles() {
  const candles = await get(`api/v1/candles/${pathOf(state.symbol)}?interval=${state.interval}&limit=${CANDLES}`);
  const chart = at("chart");
  chart.replaceChildren();
  if (!candles.length) return;
  const highest = Math.max(...candles.map((candle) => +candle[2]));
  const lowest = Math.min(...candles.map((candle) => +candle[3]));
  const room = (highest - lowest) || highest * 0.02 || 1;
  const low = (highest + lowest - room) / 2;
  const y = (price) => 15 + (230 * (low + room * 1.05 - price)) / (room * 1.1);
  for (const part of [0, 0.5, 1]) {
    const price = low + room * part;
    chart.append(line(0, y(price), 880, y(price), "grid"), label(886, y(price) + 4, price.toPrecision(6)));
  }
  const step = 880 / CANDLES;
  candles.forEach(([, open, top, bottom, close], index) => {
    const x = (index + 0.5 + CANDLES - candles.length) * step;
    const kind = +close >= +open ? "up" : "down";
    chart.append(line(x, y(top), x, y(bottom), kind));
    const body = line(x, y(open), x, Math.abs(y(open) - y(close)) < 1 ? y(open) + 1 : y(close), kind);
    body.setAttribute("stroke-width", step * 0.6);
    chart.append(body);
  });
}

function refresh() {
  if (!state.symbol) return;
  Promise.all([showTrades(), showCandles()]).catch(console.error);
}

function showBook() {
  const side = (levels, order) => [...levels].sort((a, b) => order * (a[0] - b[0])).slice(0, LEVELS);
  const asks = side(state.asks, 1);
  const bids = side(state.bids, -1);
  const rows = (levels) => levels.map(([price, amount]) => row([cell(price), cell(amount)]));
  at("asks").replaceChildren(...rows([...asks].reverse()));
  at("bids").replaceChildren(...rows(bids));
  at("spread").textContent = asks.length && bids.length
    ? `spread ${+(asks[0][0] - bids[0][0]).toPrecision(8)}` : "one side is empty";
}

function change(levels, changes) {
  for (const [price, amount] of changes ?? []) {
    if (+amount === 0) levels.delete(+price); else levels.set(+price, +amount);
  }
}

function send(message) {
  if (state.socket?.readyState === WebSocket.OPEN) state.socket.send(JSON.stringify(message));
}

function subscribe() {
  if (!state.symbol) return;
  const resume = state.number === null ? {} : { N: state.number };
  send({ T: "obs", S: state.symbol, d: 100, ...resume });
}

function connect() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/v0?a_client=page`);
  state.socket = socket;
  socket.onopen = () => { at("live").textContent = "live"; at("live").className = "on"; subscribe(); };
  socket.onclose = () => {
    at("live").textContent = "offline";
    at("live").className = "off";
    setTimeout(connect, 2000);
  };
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.T === "pp") socket.send(event.data);
    if (message.T !== "ob" || message.S !== state.symbol) return;
    if (message.U === 0) { state.bids.clear(); state.asks.clear(); }
    state.number = message.N;
    change(state.asks, message.a);
    change(state.bids, message.b);
    showBook();
    if (message.t) { refresh(); showMarkets().catch(console.error); }
  };
}

at("intervals").append(...INTERVALS.map((name) => {
  const button = document.createElement("button");
  button.textContent = name;
  button.className = name === state.interval ? "chosen" : "";
  button.onclick = () => {
    state.interval = name;
    for (const other of at("intervals").children) other.className = other === button ? "chosen" : "";
    refresh();
  };
  return button;
}));

connect();
showMarkets().catch(console.error);
setInterval(() => { showMarkets().catch(console.error); refresh(); }, 10000);
