// A transaction in one sentence, and the names of its types.

import { h } from "./dom.js";
import { clean, stranger } from "./format.js";
import { accountLink, amount, assetLink, idLink } from "./parts.js";
import { asset } from "./node.js";
import { decimal } from "./format.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./dom.js").Children} Children */

/** @type {Record<number, string>} */
const NAMES = {
  1: "Genesis", 2: "Payment", 3: "Issue", 4: "Transfer", 5: "Reissue", 6: "Burn", 7: "Exchange",
  8: "Lease", 9: "Lease cancel", 10: "Alias", 11: "Mass transfer", 12: "Data", 13: "Account script",
  14: "Sponsorship", 15: "Asset script", 16: "Call", 17: "Asset info update", 18: "Ethereum",
  19: "Generation", 101: "Genesis permission", 102: "Permission", 105: "Data",
};

/** @param {Json} transaction */
export function kindOf(transaction) {
  return NAMES[transaction.type] ?? `Type ${transaction.type}`;
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/**
 * @param {Json} transaction
 * @returns {Children}
 */
export function sentence(transaction) {
  const tell = SENTENCES[transaction.type];
  const sender = transaction.sender ? accountLink(transaction.sender) : "Somebody";
  return tell ? tell(transaction, sender) : [sender, ` made a transaction of type ${transaction.type}`];
}

/** @type {Record<number, (tx: Json, sender: Node | string) => Children>} */
const SENTENCES = {
  1: (tx) => [accountLink(tx.recipient), " began with ", amount(tx.amount, null)],
  2: (tx, sender) => [sender, " paid ", amount(tx.amount, null), " to ", accountLink(tx.recipient)],
  3: (tx, sender) => [sender, " issued ", amount(tx.quantity, tx.assetId ?? tx.id)],
  4: (tx, sender) => [sender, " sent ", amount(tx.amount, tx.assetId), " to ", accountLink(tx.recipient)],
  5: (tx, sender) => [sender, " issued ", amount(tx.quantity, tx.assetId), " more"],
  6: (tx, sender) => [sender, " burned ", amount(tx.amount ?? tx.quantity, tx.assetId)],
  7: (tx) => exchange(tx),
  8: (tx, sender) => [sender, " leased ", amount(tx.amount, null), " to ", accountLink(tx.recipient)],
  9: (tx, sender) => [sender, " ended the lease ", idLink("tx", tx.leaseId ?? tx.lease?.id ?? "")],
  10: (tx, sender) => [sender, " took the alias ", stranger(tx.alias)],
  11: (tx, sender) => [sender, " sent ", amount(tx.totalAmount ?? 0, tx.assetId), ` to ${counted(tx.transferCount ?? tx.transfers?.length ?? 0, "account")}`],
  12: (tx, sender) => [sender, ` wrote ${counted(tx.data?.length ?? 0, "data entry", "data entries")}`],
  13: (tx, sender) => [sender, tx.script ? " set the script of the account" : " removed the account's script"],
  14: (tx, sender) => tx.minSponsoredAssetFee
    ? [sender, " takes fees of ", amount(tx.minSponsoredAssetFee, tx.assetId)]
    : [sender, " takes no more fees in ", assetLink(tx.assetId)],
  15: (tx, sender) => [sender, " set the script of ", assetLink(tx.assetId)],
  16: (tx, sender) => [sender, " called ", called(tx.call), " of ", accountLink(tx.dApp), paid(tx.payment)],
  17: (tx, sender) => [sender, " named an asset ", stranger(tx.name)],
  18: (tx, sender) => ethereum(tx, sender),
  19: (tx, sender) => [sender, " committed to generate blocks from height ", String(tx.generationPeriodStart)],
};

/** @param {Json} call */
function called(call) {
  return h("code", null, clean(call?.function ?? "default", 60));
}

/** @param {Json[] | undefined} payments */
function paid(payments) {
  if (!payments?.length) return null;
  return [" with ", payments.map((each, at) => [at > 0 && ", ", amount(each.amount, each.assetId)])];
}

/**
 * @param {Json} tx
 * @param {Node | string} sender
 */
function ethereum(tx, sender) {
  const what = tx.payload ?? {};
  if (what.type === "transfer") {
    return [sender, " sent ", amount(what.amount, what.asset), " to ", accountLink(what.recipient), " from an Ethereum wallet"];
  }
  if (what.type === "invocation") {
    return [sender, " called ", called(what.call), " of ", accountLink(what.dApp), paid(what.payment), " from an Ethereum wallet"];
  }
  return [sender, " sent a transaction of an Ethereum wallet"];
}

/** @param {Json} tx */
function exchange(tx) {
  const orders = [tx.order1, tx.order2];
  const buy = orders.find((each) => each?.orderType === "buy");
  const sell = orders.find((each) => each?.orderType === "sell");
  if (!buy || !sell) return ["An exchange"];
  const { amountAsset, priceAsset } = buy.assetPair;
  return [accountLink(buy.sender), " bought ", amount(tx.amount, amountAsset), " from ", accountLink(sell.sender),
    " at ", price(tx.price, buy.assetPair, tx.version >= 3), " ", assetLink(priceAsset)];
}

/** The price of an order, whose version and mode say how it is written. @param {Json} order */
export function orderPrice(order) {
  return price(order.price, order.assetPair, order.version >= 4 && order.priceMode !== "assetDecimals");
}

/**
 * The price of one of the asset.
 * @param {number | bigint} written
 * @param {{amountAsset: string | null, priceAsset: string | null}} pair
 * @param {boolean} isFixed whether it has eight decimals whatever the assets have
 */
function price(written, { amountAsset, priceAsset }, isFixed) {
  const element = h("span", null, "…");
  Promise.all([asset(amountAsset), asset(priceAsset)]).then(([first, second]) => {
    element.textContent = decimal(written, isFixed ? 8 : 8 + second.decimals - first.decimals);
  }, () => { element.textContent = `${written} (not scaled)`; });
  return element;
}
