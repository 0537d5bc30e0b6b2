// The first view: blocks, transactions and the pool as they come.

import { at, h, show } from "./dom.js";
import { aligned, decimal, time } from "./format.js";
import { isCurrent, live, watch } from "./live.js";
import { COIN } from "./node.js";
import { accountLink, blockLink } from "./parts.js";
import { counted, kindOf, sentence } from "./sentence.js";

/** @typedef {import("./json.js").Json} Json */

const ROWS = 12;

/** What the page has from the start, so that it is painted before any of this runs. */
const FRAME = at("home");
const [HEIGHT, LAST, WAITING, FEES] = ["height", "last", "waiting", "fees"].map(at);
const [BLOCKS, TRANSACTIONS, POOL] = ["blocks", "transactions", "pool"].map(at);
const [NO_TRANSACTIONS, NO_POOL] = ["no-transactions", "no-pool"].map(at);

/**
 * Rows that are made once for each thing, and moved rather than made anew.
 * @param {(each: Json) => string} key
 * @param {(each: Json) => HTMLElement} make
 */
function rows(key, make) {
  /** @type {Map<string, HTMLElement>} */
  let made = new Map();
  return (/** @type {Element} */ parent, /** @type {Json[]} */ things) => {
    const next = new Map();
    for (const each of things) {
      const name = key(each);
      next.set(name, made.get(name) ?? make(each));
    }
    made = next;
    const wanted = [...next.values()];
    const same = wanted.length === parent.children.length && wanted.every((each, at) => parent.children[at] === each);
    if (!same) parent.replaceChildren(...wanted);
  };
}

export function home() {
  delete document.documentElement.dataset.elsewhere;
  const showBlocks = rows((each) => `${each.height} ${each.id} ${each.parts}`, blockRow);
  // A rollback may bring one again, elsewhere and with another outcome.
  const showTransactions = rows((each) => `${each.id} ${each.height} ${each.applicationStatus}`, (each) => feedRow(each, true));
  const showPool = rows((each) => each.id, (each) => feedRow(each, false));

  const update = () => {
    HEIGHT.textContent = live.height ? String(live.height) : "–";
    const newest = live.blocks[0];
    if (newest && LAST.firstElementChild?.getAttribute("data-ms") !== String(newest.timestamp)) {
      show(LAST, time(newest.timestamp));
    }
    WAITING.textContent = String(live.pool.size);
    FEES.textContent = decimal(live.fees, COIN.decimals);
    showBlocks(BLOCKS, live.blocks.slice(0, ROWS));
    showTransactions(TRANSACTIONS, live.transactions.slice(0, ROWS));
    showPool(POOL, newestOf(live.pool, ROWS));
    const isThere = isCurrent();
    NO_TRANSACTIONS.textContent = live.transactions.length ? "" : !isThere ? "Waiting for the node…" : live.isLooking ? "Loading the last transactions…" : "No transactions in the last blocks.";
    NO_POOL.textContent = live.pool.size ? "" : isThere ? "No unconfirmed transactions." : "Waiting for the node…";
  };
  update();
  return { title: "Explorer", node: FRAME, stop: watch(update) };
}

/**
 * @param {Map<string, Json>} pool
 * @param {number} count
 */
function newestOf(pool, count) {
  const skipped = Math.max(0, pool.size - count);
  const found = [];
  let at = 0;
  for (const each of pool.values()) if (at++ >= skipped) found.unshift(each);
  return found;
}

/** @param {Json} block */
function blockRow(block) {
  const grows = block.parts ? `grew ${counted(block.parts, "time")}` : null;
  return h("tr", { class: grows && "fresh", title: grows },
    h("td", null, blockLink(block.height)),
    h("td", null, time(block.timestamp)),
    h("td", null, accountLink(block.generator)),
    h("td", { class: "numeric" }, block.transactionCount),
    h("td", { class: "numeric" }, aligned(block.totalFee ?? 0, COIN.decimals)));
}

/**
 * @param {Json} transaction
 * @param {boolean} confirmed
 */
function feedRow(transaction, confirmed) {
  return h("li", null,
    h("span", { class: "kind" }, h("a", { href: `#tx/${transaction.id}`, title: transaction.id }, kindOf(transaction))),
    h("span", { class: "words" }, sentence(transaction), (transaction.applicationStatus ?? "succeeded") !== "succeeded" && h("strong", { class: "bad" }, " failed")),
    h("span", { class: "when" }, confirmed ? blockLink(transaction.height) : time(transaction.timestamp)));
}

