// The account that trades here: its form for orders, what it has, its orders and what became of them.

import { at, h, show } from "./dom.js";
import { figure } from "./digits.js";
import { clean, decimal, now, stranger, time, units } from "./format.js";
import { admission, cancellation, forgetAdmission, order, priceDecimals } from "./orders.js";
import { forgetAccount, watchAccount } from "./stream.js";
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
/** @type {Map<string, { filled: number | bigint, exchanges: Json[] }>} orders whose exchanges were asked for */
const opened = new Map();

export function showAccount() {
  const place = at("account");
  const signer = state.signer;
  if (!signer) {
    return show(place, signIn(Number(ROOT.chainId), (chosen) => {
      state.signer = chosen;
      showAccount();
      loadOwn().catch(report);
    }));
  }
  const market = current();
  const leave = h("button", { type: "button", class: "copy", onclick: () => {
    state.signer = null;
    opened.clear();
    forgetAccount();
    showAccount();
    show(at("orders"), h("p", { class: "empty" }, "Open an account to see them."));
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
    const made = await order(signer, market, MATCHER, side, wanted, offered, { matcherFee: fee.matcherFee, feeAssetId: fee.feeAssetId === "WAVES" ? null : fee.feeAssetId }, now());
    const { message } = await post(kind.value === "market" ? "matcher/orderbook/market" : "matcher/orderbook", made);
    return `The matcher has taken it: ${message.id}`;
  };
  buttons.forEach((button, number) => button.addEventListener("click", async () => {
    for (const each of buttons) each.disabled = true;
    show(outcome, signer.asks && h("p", null, signer.asks));
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
  const { signer } = state;
  const market = current();
  if (!signer || !market || state.symbol === null) return;
  await Promise.all([loadBalances(signer, market, state.symbol), loadOrders(signer, state.symbol)]);
}

/** @param {Signer} signer @param {Market} market @param {string} symbol */
async function loadBalances(signer, market, symbol) {
  const balances = await ask(`matcher/orderbook/${pathOf(symbol)}/tradableBalance/${signer.address}`);
  const holder = document.getElementById("balances");
  if (!holder || signer !== state.signer || symbol !== state.symbol) return;
  show(holder, [market.amount, market.price].map((each) => h("p", null, `${decimal(balances[each.id] ?? 0, each.decimals)} `, stranger(each.name, 30), " to trade")));
}

/** @param {Signer} signer @param {string} symbol */
async function loadOrders(signer, symbol) {
  const wanted = scope;
  const headers = await admitted(signer);
  if (!headers || signer !== state.signer) return;
  watchAccount(signer, headers);
  const path = wanted === "market" ? `matcher/orderbook/${pathOf(symbol)}/publicKey/${signer.publicKey}` : `matcher/orderbook/${signer.publicKey}?activeOnly=${wanted === "open"}`;
  const orders = await ask(path, { headers }).catch((error) => {
    if (error instanceof Refused && error.code === INVALID_SIGNATURE) forgetAdmission(signer);
    throw error;
  });
  // What was opened stays open, and shows what an order has traded since.
  await Promise.all(orders.map((/** @type {Json} */ each) => opened.has(each.id) && open(each)));
  if (signer === state.signer && symbol === state.symbol && wanted === scope) showOrders(orders, signer);
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
      show(place, h("p", { class: "bad" }, error instanceof Error ? error.message : String(error)), h("button", { type: "button", id: "admit", onclick: () => {
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

/** @param {Json[]} orders @param {Signer} signer */
function showOrders(orders, signer) {
  const buttons = h("p", { class: "row", role: "group", "aria-label": "Which orders" }, Object.entries(SCOPES).map(([name, words]) =>
    h("button", { type: "button", "data-scope": name, "aria-pressed": String(name === scope), onclick: () => { choose(name); } }, words)));
  const held = at("orders").querySelector("[data-scope]:focus")?.getAttribute("data-scope");
  show(at("orders"), buttons, orders.length ? ordersTable(orders.slice(0, shown), signer) : h("p", { class: "empty" }, scope === "open" ? "No orders wait." : "No orders yet."),
    orders.length > shown && h("button", { type: "button", onclick: () => {
      shown += SHOWN;
      showOrders(orders, signer);
    } }, `Show more (${orders.length - shown} left)`));
  if (held) /** @type {HTMLElement} */ (buttons.querySelector(`[data-scope=${held}]`)).focus();
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
    h("td", null, h("span", { class: each.type }, each.type), " ", h("span", null, clean(each.status, 30)), scope !== "market" && h("div", { class: "soft" }, stranger(nameOf(symbol), 40))),
    h("td", { class: "numeric" }, price, h("div", { class: "soft" }, time(each.timestamp))),
    h("td", { class: "numeric" }, decimal(each.amount, places), h("div", { class: "soft" }, `${decimal(each.filled, places)} filled`)),
    h("td", { class: "numeric" }, isActive && h("button", { type: "button", class: "cancel", onclick: () => cancel(signer, each.id, symbol) }, "Cancel"), " ", exchangesOf(each)));
}

/** @param {Signer} signer @param {string} id @param {string} symbol */
async function cancel(signer, id, symbol) {
  try {
    await post(`matcher/orderbook/${pathOf(symbol)}/cancel`, await cancellation(signer, id));
  } catch (error) {
    report(error);
  }
  refresh();
}

/** The transactions of an order, asked for once for each state of it. @param {Json} order */
async function open(order) {
  const before = opened.get(order.id);
  if (before && before.filled === order.filled && before.exchanges.length) return;
  opened.set(order.id, { filled: order.filled, exchanges: await ask(`matcher/transactions/${order.id}`) });
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
    show(place, h("button", { type: "button", class: "copy", onclick: () => { open(order).then(links, report).then(refresh); } }, "Exchanges"));
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
