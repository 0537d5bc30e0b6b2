// The account that trades here: its form for orders, what it has, its orders and what became of them.

import { at, h, redraw, show } from "./dom.js";
import { figure } from "./digits.js";
import { clean, decimal, now, short, stranger, time, units } from "./format.js";
import { admission, cancellation, forgetAdmission, order, priceDecimals } from "./orders.js";
import { forgetAccount, watchAccount } from "./stream.js";
import { turns } from "./turns.js";
import { MATCHER, ROOT, Refused, ask, current, gathered, markets, nameOf, onChange, pathOf, post, refresh, report, state } from "./venue.js";
import { signIn } from "./wallets.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./orders.js").Market} Market */
/** @typedef {import("./orders.js").Signer} Signer */

const SHOWN = 20;
/** A signature that is wrong or too old. */
const INVALID_SIGNATURE = 1051904;
/** @type {Record<string, string>} */
const SCOPES = { open: "Open", market: "This market", all: "All markets" };

let scope = "market";
let shown = SHOWN;
/** @type {Signer | null} who may be taking a while to say that the orders may be seen */
let asking = null;
/** @type {Signer | null} whose order is on its way: there is one at a time */
let placing = null;
/** Orders that are being taken back. @type {Set<string>} */
const cancelling = new Set();
/** @type {Json[]} the account's orders as they were told last */
let listed = [];
const [balanceTurn, orderTurn] = [turns(), turns()];
/** What becomes of an order, whichever market is looked at by then; and of one that is taken back. */
const outcome = h("div", { id: "outcome", role: "status" });
const undone = h("p", { id: "undone", role: "status" });
/** @type {Map<string, { filled: number | bigint, exchanges: Json[] }>} orders whose exchanges were asked for */
const opened = new Map();

/** The form that goes with who is there and with the market that is looked at. */
export function showAccount() {
  const place = at("account");
  const { signer } = state;
  const market = current();
  if (!signer) {
    // Who is about to sign in goes on with that in another market.
    if (!document.getElementById("sign-in")) showSignIn(place);
    return;
  }
  if (!placing) show(outcome);
  show(place, h("p", null, h("code", { id: "own-address" }, signer.address), " ", h("button", { type: "button", class: "copy", onclick: forget }, "Forget")),
    h("div", { id: "balances" }), market ? orderForm(signer, market) : h("p", { class: "empty" }, "Choose a market to trade."), outcome);
}

/** @param {HTMLElement} place */
function showSignIn(place) {
  const forms = signIn(Number(ROOT.chainId), (chosen) => {
    // Another wallet may have been faster, whose account is open then or was already.
    if (!forms.isConnected) return;
    state.signer = chosen;
    showAccount();
    loadOwn().catch(report);
  });
  show(place, forms, outcome);
}

function forget() {
  state.signer = placing = null;
  opened.clear();
  cancelling.clear();
  listed = [];
  forgetAccount();
  show(outcome);
  say("");
  showAccount();
  show(at("orders"), h("p", { class: "empty" }, "Connect an account to see your orders."));
}

/** @param {unknown} error */
const words = (error) => (error instanceof Error ? error.message : String(error));

/** @param {Signer} signer @param {Market} market */
function orderForm(signer, market) {
  const kind = h("select", { id: "kind" }, h("option", { value: "limit" }, "Limit"), h("option", { value: "market" }, "Market"));
  const price = h("input", { id: "price", inputmode: "decimal", autocomplete: "off", maxlength: 30 });
  const amount = h("input", { id: "amount", inputmode: "decimal", autocomplete: "off", maxlength: 30 });
  const total = h("span", { class: "soft" });
  const count = () => {
    const [first, second] = [Number(price.value), Number(amount.value)];
    total.textContent = first > 0 && second > 0 ? `Total ${figure(first * second)} ${clean(market.price.name, 30)}` : "";
  };
  price.addEventListener("input", count);
  amount.addEventListener("input", count);
  const button = (/** @type {"buy" | "sell"} */ side, /** @type {string} */ name) => h("button", { type: "button", class: side, disabled: placing !== null, onclick: () =>
    submit(signer, market, { side, price: price.value, amount: amount.value, isMarket: kind.value === "market" }) }, name);
  return h("form", { class: "order", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    h("label", null, "Order", kind), h("label", null, `Price, ${clean(market.price.name, 12)}`, price), h("label", null, `Amount, ${clean(market.amount.name, 12)}`, amount),
    total, h("div", { class: "sides" }, button("buy", "Buy"), button("sell", "Sell")));
}

/** @typedef {{side: "buy" | "sell", price: string, amount: string, isMarket: boolean}} Wish what the form said when its button was pressed */

/** @param {Signer} signer @param {Market} market @param {Wish} wish */
async function submit(signer, market, wish) {
  if (placing) return;
  placing = signer;
  enable();
  show(outcome, signer.asks && h("p", null, signer.asks));
  /** @type {Node} */
  let said;
  try {
    const id = await place(signer, market, wish);
    said = h("p", { class: "good" }, elsewhere(market), `Order accepted: ${id}`);
  } catch (error) {
    said = h("p", { class: "bad", role: "alert" }, elsewhere(market), words(error));
  }
  if (placing === signer) placing = null;
  // An account that was opened meanwhile may have an order of its own on its way.
  if (!placing) show(outcome, said);
  enable();
  refresh();
}

/** Which market is meant, if it is not the one that is looked at. @param {Market} market */
function elsewhere(market) {
  const symbol = `${market.amount.id}-${market.price.id}`;
  return symbol !== state.symbol && `${nameOf(symbol)}: `;
}

function enable() {
  for (const each of document.querySelectorAll(".sides button")) /** @type {HTMLButtonElement} */ (each).disabled = placing !== null;
}

/** @param {Signer} signer @param {Market} market @param {Wish} wish @returns {Promise<string>} the order's id */
async function place(signer, market, { side, price, amount, isMarket }) {
  const wanted = units(amount, market.amount.decimals);
  const offered = units(price, priceDecimals(market));
  if (!wanted) throw new Error(`“${clean(amount, 30)}” is no amount with ${market.amount.decimals} decimals.`);
  if (!offered) throw new Error(`“${clean(price, 30)}” is no price with ${priceDecimals(market)} decimals.`);
  const path = `matcher/orderbook/${encodeURIComponent(market.amount.id)}/${encodeURIComponent(market.price.id)}`;
  const { base, discount } = await post(`${path}/calculateFee`, { orderType: side, amount: wanted, price: offered });
  const fee = discount ?? base;
  const made = await order(signer, market, MATCHER, side, wanted, offered, { matcherFee: fee.matcherFee, feeAssetId: fee.feeAssetId === "WAVES" ? null : fee.feeAssetId }, now());
  if (signer !== state.signer) throw new Error(`${short(signer.address)} was forgotten before its order was signed: it was not sent.`);
  const { message } = await post(isMarket ? "matcher/orderbook/market" : "matcher/orderbook", made);
  return message.id;
}

async function loadOwn() {
  const { signer, symbol } = state;
  const market = current();
  if (!signer || !market || symbol === null) return;
  await Promise.all([loadBalances(signer, market, symbol), loadOrders(signer)]);
}

/** @param {Signer} signer @param {Market} market @param {string} symbol */
async function loadBalances(signer, market, symbol) {
  const isNews = balanceTurn();
  const balances = await ask(`matcher/orderbook/${pathOf(symbol)}/tradableBalance/${signer.address}`);
  const holder = document.getElementById("balances");
  if (!holder || signer !== state.signer || symbol !== state.symbol || !isNews()) return;
  show(holder, [market.amount, market.price].map((each) => h("p", null, `${decimal(balances[each.id] ?? 0, each.decimals)} `, stranger(each.name, 30), " to trade")));
}

/** @param {Signer} signer */
async function loadOrders(signer) {
  const headers = await admitted(signer);
  // That may have taken a while: what is looked at now counts.
  const { symbol } = state;
  const wanted = scope;
  if (!headers || signer !== state.signer || symbol === null) return;
  const isNews = orderTurn();
  watchAccount(signer, headers);
  const path = wanted === "market" ? `matcher/orderbook/${pathOf(symbol)}/publicKey/${signer.publicKey}` : `matcher/orderbook/${signer.publicKey}?activeOnly=${wanted === "open"}`;
  const orders = await ask(path, { headers }).catch((error) => {
    if (error instanceof Refused && error.code === INVALID_SIGNATURE) forgetAdmission(signer);
    throw error;
  });
  // What was opened stays open, and shows what an order has traded since.
  await Promise.all(orders.map((/** @type {Json} */ each) => opened.has(each.id) && open(each)));
  if (signer !== state.signer || symbol !== state.symbol || wanted !== scope || !isNews()) return;
  listed = orders;
  showOrders(signer);
}

/**
 * What lets in who looks at the account's orders; nothing while that is asked for already, or where it was refused,
 * which is said.
 * @param {Signer} signer
 */
async function admitted(signer) {
  if (asking === signer) return null;
  asking = signer;
  const place = at("orders");
  try {
    return await admission(signer, now(), () => signer.asks && show(place, h("p", { class: "empty" }, signer.asks)));
  } catch (error) {
    if (signer === state.signer && !document.getElementById("admit")) {
      show(place, h("p", { class: "bad" }, words(error)), h("button", { type: "button", id: "admit", onclick: () => {
        forgetAdmission(signer);
        show(place);
        loadOwn().catch(report);
      } }, "Show my orders"));
    }
    return null;
  } finally {
    if (asking === signer) asking = null;
  }
}

/** @param {Signer} signer */
function showOrders(signer) {
  const more = listed.length - shown;
  redraw(at("orders"),
    h("p", { class: "row", role: "group", "aria-label": "Which orders" }, Object.entries(SCOPES).map(([name, title]) =>
      h("button", { type: "button", "data-scope": name, "data-key": name, "aria-pressed": String(name === scope), onclick: () => { choose(name); } }, title))),
    undone,
    listed.length ? ordersTable(listed.slice(0, shown), signer) : h("p", { class: "empty" }, scope === "open" ? "No open orders." : "No orders yet."),
    more > 0 && h("button", { type: "button", "data-key": "more", onclick: () => {
      shown += SHOWN;
      showOrders(signer);
    } }, `Show more (${more} left)`));
}

/** @param {string} name */
function choose(name) {
  scope = name;
  shown = SHOWN;
  loadOwn().catch(report);
}

/** @param {Json[]} orders @param {Signer} signer */
function ordersTable(orders, signer) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Your orders" }, h("table", null,
    h("thead", null, h("tr", null, ["Order", "Price", "Amount"].map((each, number) => h("th", { scope: "col", class: number > 0 && "numeric" }, each)),
      h("th", { scope: "col", class: "numeric" }, h("span", { class: "offscreen" }, "Actions")))),
    h("tbody", null, orders.map((each) => orderRow(each, signer)))));
}

/** @param {Json} each @param {Signer} signer */
function orderRow(each, signer) {
  const symbol = `${each.assetPair.amountAsset ?? "WAVES"}-${each.assetPair.priceAsset ?? "WAVES"}`;
  const market = markets.get(symbol);
  const isActive = each.status === "Accepted" || each.status === "PartiallyFilled";
  const [price, places] = market ? [decimal(each.price, priceDecimals(market)), market.amount.decimals] : [String(each.price), 0];
  return h("tr", { "data-order": each.id },
    h("td", null, h("span", { class: each.type }, each.type), " ", h("span", null, stateOf(each.status)), scope !== "market" && h("div", { class: "soft" }, stranger(nameOf(symbol), 40))),
    h("td", { class: "numeric" }, price, h("div", { class: "soft" }, time(each.timestamp))),
    h("td", { class: "numeric" }, decimal(each.amount, places), h("div", { class: "soft" }, `${decimal(each.filled, places)} filled`)),
    h("td", { class: "numeric" }, isActive && cancelButton(signer, each.id, symbol), " ", exchangesOf(each)));
}

/** @param {string} status as the matcher names it, `PartiallyFilled` */
function stateOf(status) {
  return clean(status, 30).replace(/([a-z])([A-Z])/g, (_, one, other) => `${one} ${other.toLowerCase()}`);
}

/** @param {Signer} signer @param {string} id @param {string} symbol */
function cancelButton(signer, id, symbol) {
  const isGoing = cancelling.has(id);
  return h("button", { type: "button", class: "cancel", "data-key": `cancel ${id}`, "aria-disabled": isGoing && "true", onclick: () => cancel(signer, id, symbol) }, isGoing ? "Cancelling…" : "Cancel");
}

/** @param {Signer} signer @param {string} id @param {string} symbol */
async function cancel(signer, id, symbol) {
  if (cancelling.has(id)) return;
  cancelling.add(id);
  say(signer.asks ?? "");
  showOrders(signer);
  try {
    await post(`matcher/orderbook/${pathOf(symbol)}/cancel`, await cancellation(signer, id));
    if (signer === state.signer) say("");
  } catch (error) {
    cancelling.delete(id);
    if (signer === state.signer) {
      say(words(error), true);
      showOrders(signer);
    }
  }
  refresh();
}

/** @param {string} text */
function say(text, isBad = false) {
  undone.textContent = text;
  undone.className = isBad ? "bad" : "";
}

/** The transactions of an order, asked for once for each state of it. @param {Json} order */
async function open(order) {
  const before = opened.get(order.id);
  if (before && before.filled === order.filled && before.exchanges.length) return;
  const exchanges = await ask(`matcher/transactions/${order.id}`);
  const after = opened.get(order.id);
  if (!after || after.filled <= order.filled) opened.set(order.id, { filled: order.filled, exchanges });
}

/** A button, or what it has opened. @param {Json} order */
function exchangesOf(order) {
  const place = h("span", null);
  const links = () => show(place, (opened.get(order.id)?.exchanges ?? []).map((each) => (ROOT.node
    ? h("a", { class: "id", href: `${ROOT.node}/#tx/${each.id}`, title: each.id }, `${each.id.slice(0, 8)}… `)
    : h("code", { title: each.id }, `${each.id.slice(0, 8)}… `))));
  if (opened.has(order.id)) links();
  else if (order.filled > 0) {
    // The list may be drawn anew before the matcher has answered: it then asks what is open.
    show(place, h("button", { type: "button", class: "copy", "data-key": `open ${order.id}`, onclick: () => { open(order).then(links, (error) => say(words(error), true)).then(refresh); } }, "Exchanges"));
  }
  return place;
}

/** Something has changed in the account. */
export const refreshOwn = gathered(loadOwn);

/** Let the account be loaded with the rest of the page. */
export function beginOwn() {
  onChange(loadOwn);
  showAccount();
}

/** @param {string} price of a level that was clicked */
export function takePrice(price) {
  const field = /** @type {HTMLInputElement | null} */ (document.getElementById("price"));
  if (!field) return;
  field.value = price;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}
