// The terms of a market: steps and limits of prices and amounts, and what the matcher takes.

import { clean, decimal, stranger } from "./format.js";
import { at, h, show } from "./dom.js";
import { ROOT, ask, current, markets, pathOf, state } from "./venue.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./dom.js").Children} Children */

const COIN = { name: "WAVES", decimals: 8 };
/** @type {Record<string, string>} */
const SHARES = { amount: "of the amount", price: "of the amount in the price asset", receiving: "of what is received", spending: "of what is spent" };

/** @type {Promise<Json> | null} */
let settings = null;
/** @type {string | null} the market whose terms are shown */
let shown = null;

/** @param {string} words what stands in place of terms */
export function showTerms(words) {
  shown = null;
  show(at("terms"), h("p", { class: "empty" }, words));
}

/** What holds for the chosen market, once it is known. */
export async function loadTerms() {
  const { symbol } = state;
  const market = current();
  if (symbol === null || !market || symbol === shown) return;
  settings ??= ask("matcher/settings");
  settings.catch(() => { settings = null; });
  const [{ orderFee, rates }, { matchingRules, restrictions }] = await Promise.all([settings, ask(`matcher/orderbook/${pathOf(symbol)}/info`)]);
  if (symbol !== state.symbol) return;
  shown = symbol;
  const [amount, price] = [clean(market.amount.name, 20), clean(market.price.name, 20)];
  /** @type {(readonly [string, Children] | false)[]} */
  const rows = [
    Boolean(ROOT.node) && ["Assets", [market.amount, market.price].map((each, number) => [number > 0 && ", ", each.id === "WAVES" ? each.name
      : h("a", { href: `${ROOT.node}/#asset/${each.id}` }, stranger(each.name, 30))])],
    ["Tick size", matchingRules ? `${matchingRules.tickSize} ${price}` : "none"],
    Boolean(restrictions) && ["Prices", `${restrictions.minPrice} to ${restrictions.maxPrice} ${price}, in steps of ${restrictions.stepPrice}`],
    ["Amounts", restrictions ? `${restrictions.minAmount} to ${restrictions.maxAmount} ${amount}, in steps of ${restrictions.stepAmount}`
      : `from ${decimal(1, market.amount.decimals)} ${amount}`],
    ["Fee", h("span", { id: "fee" }, fee(orderFee, symbol, rates))],
  ];
  show(at("terms"), h("dl", { class: "facts" }, rows.map((each) => each && h("div", null, h("dt", null, each[0]), h("dd", null, each[1])))));
}

/** @param {string} id */
function assetOf(id) {
  if (id === "WAVES") return COIN;
  for (const each of markets.values()) for (const side of [each.amount, each.price]) if (side.id === id) return side;
  return { name: `${id.slice(0, 8)}…`, decimals: 0 };
}

/** @param {number | bigint} units @param {string} id */
function sum(units, id) {
  const found = assetOf(id);
  return [decimal(units, found.decimals), " ", stranger(found.name, 20)];
}

/**
 * @param {Json} mode how the matcher counts fees
 * @param {string} symbol
 * @param {Record<string, number>} rates
 * @returns {Children}
 */
function fee(mode, symbol, rates) {
  if (mode.composite) {
    const { discount } = mode.composite;
    return [fee(mode.composite.custom[symbol] ?? mode.composite.default, symbol, rates), discount && [`; ${discount.value} % less in `, stranger(assetOf(discount.assetId).name, 20)]];
  }
  if (mode.percent) return [`${mode.percent.minFee} % ${SHARES[mode.percent.type] ?? ""}, at least `, ...sum(mode.percent.minFeeInWaves, "WAVES")];
  if (mode.fixed) return [...sum(mode.fixed.minFee, mode.fixed.assetId), " for an order"];
  const others = Object.keys(rates ?? {}).filter((each) => each !== "WAVES");
  return [...sum(mode.dynamic.baseFee, "WAVES"), " for an order", others.length > 0 && [", or as much in ", others.slice(0, 10).map((each, number) => [number > 0 && ", ", stranger(assetOf(each).name, 20)])]];
}
