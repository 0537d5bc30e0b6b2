// The first view: blocks, transactions and the pool as they come.

import { h, show } from "./dom.js";
import { aligned, decimal, time } from "./format.js";
import { live, watch } from "./live.js";
import { COIN } from "./node.js";
import { accountLink, blockLink } from "./parts.js";
import { counted, kindOf, sentence } from "./sentence.js";

/** @typedef {import("./json.js").Json} Json */

const ROWS = 12;

/** @param {string} name */
function figure(name) {
  const value = h("dd", null, "–");
  return { value, element: h("div", null, h("dt", null, name), value) };
}

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
  const height = figure("Height");
  const last = figure("Last block");
  const waiting = figure("Waiting");
  const fees = figure(`Fees waiting, ${COIN.name}`);
  const blocks = h("tbody");
  const transactions = h("ol", { class: "feed" });
  const pool = h("ol", { class: "feed" });
  const noTransactions = h("p", { class: "empty" });
  const noPool = h("p", { class: "empty" });
  const showBlocks = rows((each) => `${each.height} ${each.id} ${each.parts}`, blockRow);
  const showTransactions = rows((each) => each.id, (each) => feedRow(each, true));
  const showPool = rows((each) => each.id, (each) => feedRow(each, false));

  const update = () => {
    height.value.textContent = live.height ? String(live.height) : "–";
    const newest = live.blocks[0];
    if (newest && last.value.firstElementChild?.getAttribute("data-ms") !== String(newest.timestamp)) {
      show(last.value, time(newest.timestamp));
    }
    waiting.value.textContent = String(live.pool.size);
    fees.value.textContent = decimal(live.fees, COIN.decimals);
    showBlocks(blocks, live.blocks.slice(0, ROWS));
    showTransactions(transactions, live.transactions.slice(0, ROWS));
    showPool(pool, newestOf(live.pool, ROWS));
    const isThere = live.state === "live" || live.state === "polled";
    noTransactions.textContent = live.transactions.length ? "" : !isThere ? "Waiting for the node…" : live.isLooking ? "Looking for the last transactions…" : "No transactions in the last blocks.";
    noPool.textContent = live.pool.size ? "" : isThere ? "Nothing waits for a block." : "Waiting for the node…";
  };
  update();
  const node = h("div", null,
    h("h1", { tabindex: -1, class: "offscreen" }, "Blocks and transactions"),
    h("dl", { class: "figures" }, height.element, last.element, waiting.element, fees.element),
    h("div", { class: "columns" },
      h("section", null, h("h2", null, "Blocks"),
        h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Blocks" },
          h("table", null,
            h("thead", null, h("tr", null, ["Height", "Age", "Generator"].map((name) => h("th", { scope: "col" }, name)),
              h("th", { scope: "col", class: "numeric" }, "Txs"), h("th", { scope: "col", class: "numeric" }, "Fees"))),
            blocks))),
      h("section", null, h("h2", null, "Transactions"),
        h("div", { class: "tall" }, noTransactions, transactions))),
    h("section", null, h("h2", null, "Waiting for a block"),
      h("div", { class: "low" }, noPool, pool)));
  return { title: "Explorer", node, stop: watch(update) };
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
    h("span", { class: "words" }, sentence(transaction), transaction.applicationStatus === "script_execution_failed" && h("strong", { class: "bad" }, " failed")),
    h("span", { class: "when" }, confirmed ? blockLink(transaction.height) : time(transaction.timestamp)));
}

