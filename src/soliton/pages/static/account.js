// The view of an account: what it has, what it is, what it did.

import { h, show } from "./dom.js";
import { aligned, clean, decimal, grouped, stranger, time } from "./format.js";
import { isCurrent, live, watch, watchRollbacks } from "./live.js";
import { COIN, OBEYS, ask, get, getOr, noteAsset } from "./node.js";
import { accountLink, assetLink, blockLink, column, folded, idLink, later, place, section, table, trouble, whole } from "./parts.js";
import { kindOf, sentence } from "./sentence.js";
import { snippets } from "./snippets.js";
import { source } from "./source.js";
import { dataTable } from "./transaction.js";

/** @typedef {import("./json.js").Json} Json */

const PAGE = 20;
const ENTRIES = 100;
const AGAIN_MS = 2_000;

/** @param {string} address */
export async function account(address) {
  const name = encodeURIComponent(address);
  const names = new Set([address]);
  let settle = () => {};
  // From before the answers on: what comes meanwhile may not be in them.
  const heard = listen(names, () => settle());
  /** @type {Json} */
  let details;
  try {
    details = await get(`/addresses/balance/details/${name}`);
  } catch (error) {
    heard.stop();
    throw error;
  }
  const figures = h("dl", { class: "figures" });
  const showBalances = (/** @type {Json} */ found) => {
    figures.replaceChildren(...[
      ["Balance", found.regular], ["Available", found.available], ["Effective", found.effective], ["Generating", found.generating],
    ].map(([word, units]) => h("div", null, h("dt", null, `${word}, ${COIN.name}`), h("dd", null, decimal(units, COIN.decimals)))));
  };
  showBalances(details);
  // The history is of now.
  heard.lowest = Infinity;
  const history = pages(name, () => settle());
  const hint = h("p", { class: "hint", role: "status" });
  const again = h("button", { type: "button", onclick: () => { window.dispatchEvent(new HashChangeEvent("hashchange")); } });
  let isAsking = false;
  let isStopped = false;
  let timer = 0;
  /** @type {Json} the last news that there was */
  let news;
  settle = () => {
    // Who catches up with the chain asks once, not for each block.
    if (isStopped || !history.isSettled() || !isCurrent()) return;
    const isNews = history.lacks(heard.own);
    if (isNews && heard.own !== news) {
      news = heard.own;
      heard.isOther = true;
    }
    const [words, offer] = isNews ? ["New transactions. ", "Show them"]
      : history.reaches(heard.lowest) ? ["The chain rolled back. ", "Show the present history"] : ["", ""];
    if (again.textContent !== offer) {
      again.textContent = offer;
      show(hint, words, offer && again);
    }
    if (!heard.isOther || isAsking) return;
    heard.isOther = false;
    isAsking = true;
    get(`/addresses/balance/details/${name}`).then((found) => {
      isAsking = false;
      showBalances(found);
      // What came while it was asked for is not in the answer.
      settle();
    }, () => {
      isAsking = false;
      heard.isOther = true;
      clearTimeout(timer);
      timer = setTimeout(settle, AGAIN_MS);
    });
  };
  const stop = () => {
    isStopped = true;
    clearTimeout(timer);
    heard.stop();
  };
  const node = h("article", null,
    h("h1", { tabindex: -1 }, "Account"),
    h("p", { class: "name" }, whole(address, "the address")),
    hint,
    figures,
    later(() => aliases(name).then((found) => {
      for (const each of found) names.add(each);
      heard.again();
      return aliasLine(found);
    }), "Loading aliases…"),
    section("Assets", later(() => assets(name))),
    section("History", history.node),
    section("Leases", later(() => leases(name, address))),
    section("Data", later(() => data(name))),
    section("Script", later(() => script(name, address))),
    folded("API request", () => snippets(`/addresses/balance/details/${name}`)));
  return { title: `Account ${address.slice(0, 8)}`, node, stop };
}

/**
 * What happens to an account from now on.
 * @param {Set<string>} names its address and aliases
 * @param {() => void} changed
 */
function listen(names, changed) {
  let { height, transactions: [newest] } = live;
  let isAway = !isCurrent();
  const heard = {
    /** Whether its balances may be others. */
    isOther: false,
    /** @type {Json} its newest transaction, once there is one */
    own: undefined,
    /** The lowest height that has lost transactions in a rollback. */
    lowest: Infinity,
    /** Look for other names. */
    again: () => look(true),
    stop: () => {
      unwatch();
      unwatchRollbacks();
    },
  };
  const look = (/** @type {boolean} */ isAgain) => {
    const wasAway = isAway;
    isAway = !isCurrent();
    // Transactions of microblocks come to a block that is known.
    if (isAway || (!wasAway && !isAgain && live.height === height && live.transactions[0] === newest)) return;
    const at = live.transactions.indexOf(newest);
    const since = height;
    const found = live.transactions.slice(0, at < 0 ? undefined : at).some((each) => each.height >= since && mentions(each, names));
    // Of a burst only the newest are in the list. Transactions of others are no reason to ask again.
    if (live.height !== height || found || (newest && at < 0)) heard.isOther = true;
    heard.own = live.transactions.find((each) => mentions(each, names)) ?? heard.own;
    ({ height, transactions: [newest] } = live);
    changed();
  };
  const unwatch = watch(() => look(false));
  const unwatchRollbacks = watchRollbacks((_left, lost) => {
    // The chain may be as high again by the next frame.
    height = Math.min(height, lost - 1);
    heard.lowest = Math.min(heard.lowest, lost);
    if (heard.own?.height >= lost) heard.own = undefined;
  });
  return heard;
}

/**
 * @param {Json} transaction
 * @param {Set<string>} names
 */
function mentions({ sender, recipient, dApp, payload, transfers, order1, order2 }, names) {
  return [sender, recipient, dApp, payload?.dApp, payload?.recipient, order1?.sender, order2?.sender]
    .some((each) => names.has(each)) || (transfers ?? []).some((/** @type {Json} */ each) => names.has(each.recipient));
}

/** @param {string} name @returns {Promise<string[]>} */
const aliases = (name) => getOr(`/alias/by-address/${name}`, []);

/** @param {string[]} found */
function aliasLine(found) {
  if (!found.length) return null;
  return h("p", null, "Aliases: ", found.slice(0, 50).map((each, at) => [at > 0 && ", ", stranger(each.split(":").slice(2).join(":"))]),
    found.length > 50 && ` and ${found.length - 50} more`);
}

/** @param {string} name */
async function assets(name) {
  const { balances } = await get(`/assets/balance/${name}`);
  for (const each of balances) if (each.issueTransaction) noteAsset(each.assetId, each.issueTransaction);
  const tokens = await getOr(`/assets/nft/${name}/limit/100`, []);
  for (const each of tokens) noteAsset(each.assetId, each);
  return [
    table("Assets", ["Asset", "#Balance", "Id"], balances.slice(0, 500).map((/** @type {Json} */ each) =>
      [assetLink(each.assetId), column(each.balance, each.assetId), idLink("asset", each.assetId)]), "No assets."),
    balances.length > 500 && h("p", { class: "soft" }, `${grouped(balances.length - 500)} more are not shown.`),
    tokens.length > 0 && h("p", null, "NFTs: ", tokens.map((/** @type {Json} */ each, /** @type {number} */ at) =>
      [at > 0 && ", ", assetLink(each.assetId)]), tokens.length === 100 && " and perhaps more"),
  ];
}

/**
 * @param {string} name
 * @param {string} address
 */
async function leases(name, address) {
  /** @type {Json[]} */
  const found = await get(`/leasing/active/${name}`);
  return table("Active leases", ["Direction", "Account", `#${COIN.name}`, "Since", "Lease"], found.slice(0, 200).map((each) => {
    const isOut = each.sender === address;
    return [isOut ? "to" : "from", accountLink(isOut ? each.recipient : each.sender), aligned(each.amount, COIN.decimals),
      each.height ? blockLink(each.height) : "–", idLink("tx", each.id)];
  }), "No active leases.");
}

/** @param {string} name */
async function data(name) {
  /** @type {Json[]} */
  const found = await get(`/addresses/data/${name}`);
  if (!found.length) return h("p", { class: "empty" }, "No data entries.");
  const holder = h("div");
  const count = h("span", { class: "soft", role: "status" });
  const draw = (/** @type {string} */ words) => {
    const wanted = words.toLowerCase();
    const fitting = wanted === "" ? found : found.filter((each) =>
      each.key.toLowerCase().includes(wanted) || String(each.value).toLowerCase().includes(wanted));
    count.textContent = fitting.length > ENTRIES
      ? `${grouped(fitting.length)} entries, the first ${ENTRIES} are shown`
      : `${grouped(fitting.length)} of ${grouped(found.length)} entries`;
    holder.replaceChildren(dataTable(fitting.slice(0, ENTRIES)));
  };
  const field = h("input", { type: "search", "aria-label": "Search keys and values", placeholder: "Search keys and values", maxlength: 400 });
  field.addEventListener("input", () => draw(field.value));
  draw("");
  return [h("p", { class: "row" }, field, count), holder];
}

/**
 * @param {string} name
 * @param {string} address
 */
async function script(name, address) {
  const info = await get(`/addresses/scriptInfo/${name}`);
  if (!info.script) return h("p", { class: "empty" }, "No script: the account's signature is enough.");
  const { meta } = await getOr(`/addresses/scriptInfo/${name}/meta`, { meta: null });
  const costs = info.callableComplexities ?? {};
  const functions = Object.entries(meta?.callableFuncTypes ?? {});
  return [
    h("p", null, `Complexity ${grouped(info.complexity)}`,
      info.verifierComplexity > 0 && `, of its verifier ${grouped(info.verifierComplexity)}`,
      info.version && `, version ${info.version} of the language`, "."),
    functions.length > 0 && table("Functions", ["Function", "Takes", "#Complexity"], functions.map(([word, takes]) => [
      h("a", { href: `${place("call", address)}/${encodeURIComponent(word)}` }, h("code", null, clean(word, 60))),
      h("code", null, /** @type {Json[]} */ (takes).map((each) => `${clean(each.name, 40)}: ${clean(each.type, 60)}`).join(", ") || "nothing"),
      grouped(costs[word] ?? 0)])),
    OBEYS && h("p", null, h("a", { href: place("deploy", address) }, "Edit")),
    folded("Source", () => later(() => source(info.script))),
  ];
}

/**
 * Transactions page by page.
 * @param {string} name
 * @param {() => void} settled
 */
function pages(name, settled) {
  const list = h("ol", { class: "feed" });
  const foot = h("p", { class: "row" });
  /** @type {Set<string>} */
  const ids = new Set();
  let after = "";
  let isSettled = false;
  let isLoaded = false;
  let height = -1;
  const more = h("button", { type: "button" }, "Show older transactions");
  const load = async () => {
    more.disabled = true;
    try {
      const query = after ? `?after=${encodeURIComponent(after)}` : "";
      const { value } = await ask(`/transactions/address/${name}/limit/${PAGE}${query}`);
      /** @type {Json[]} */
      const found = Array.isArray(value[0]) ? value[0] : value;
      for (const each of found) {
        ids.add(each.id);
        list.append(row(each));
      }
      if (!isLoaded) height = found[0]?.height ?? height;
      isLoaded = true;
      after = found.length ? found[found.length - 1].id : after;
      if (found.length === PAGE) foot.replaceChildren(more);
      else foot.replaceChildren(ids.size ? "" : h("span", { class: "empty" }, "No transactions yet."));
    } catch (error) {
      foot.replaceChildren(trouble(error), more);
    }
    more.disabled = false;
    isSettled = true;
    settled();
  };
  more.addEventListener("click", load);
  return {
    node: later(() => load().then(() => [list, foot])),
    /** Whether an answer has come, or none will. */
    isSettled: () => isSettled,
    /** Whether a transaction is not in it; behind one that is, all are, or they are older than its page. */
    lacks: (/** @type {Json} */ each) => isLoaded && each && !ids.has(each.id),
    /** Whether it has transactions from a height on. */
    reaches: (/** @type {number} */ lowest) => height >= lowest,
  };
}

/** @param {Json} each */
function row(each) {
  return h("li", null,
    h("span", { class: "kind" }, h("a", { href: place("tx", each.id), title: each.id }, kindOf(each))),
    h("span", { class: "words" }, sentence(each), each.applicationStatus === "script_execution_failed" && h("strong", { class: "bad" }, " failed")),
    h("span", { class: "when" }, blockLink(each.height), " ", time(each.timestamp)));
}
