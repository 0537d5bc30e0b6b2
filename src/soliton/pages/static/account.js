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
const LONGEST_MS = 60_000;
/** What is told of the history, and offered. */
const WORDS = { same: ["", ""], news: ["New transactions. ", "Show them"], cut: ["The chain rolled back. ", "Show the present history"] };

/** @param {string} address */
export async function account(address) {
  const name = encodeURIComponent(address);
  const figures = h("dl", { class: "figures" });
  const hint = h("p", { class: "hint", role: "status" });
  const again = h("button", { type: "button", onclick: () => { window.dispatchEvent(new HashChangeEvent("hashchange")); } });
  const showBalances = (/** @type {Json} */ found) => {
    figures.replaceChildren(...[
      ["Balance", found.regular], ["Available", found.available], ["Effective", found.effective], ["Generating", found.generating],
    ].map(([word, units]) => h("div", null, h("dt", null, `${word}, ${COIN.name}`), h("dd", null, decimal(units, COIN.decimals)))));
  };
  let settle = () => {};
  // From before the answers on: what comes meanwhile may not be in them.
  const heard = listen(address, () => settle());
  try {
    showBalances(await get(`/addresses/balance/details/${name}`));
  } catch (error) {
    heard.stop();
    throw error;
  }
  const history = pages(name, () => settle());
  let isAsking = false;
  let isStopped = false;
  let timer = 0;
  let wait = AGAIN_MS;
  const read = async () => {
    const [found, [newest]] = await Promise.all([get(`/addresses/balance/details/${name}`), transactionsOf(name, 1)]);
    showBalances(found);
    const [words, offer] = WORDS[history.compare(newest)];
    if (again.textContent === offer) return;
    again.textContent = offer;
    show(hint, words, offer && again);
  };
  settle = () => {
    // Who catches up with the chain asks once, not for each block.
    if (isStopped || isAsking || timer || !heard.isOther || !history.isSettled() || !isCurrent()) return;
    heard.isOther = false;
    isAsking = true;
    read().then(() => { wait = AGAIN_MS; }, () => {
      heard.isOther = true;
      timer = setTimeout(() => {
        timer = 0;
        settle();
      }, wait);
      wait = Math.min(2 * wait, LONGEST_MS);
    }).finally(() => {
      isAsking = false;
      // What came while it was asked for is not in the answer.
      settle();
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
      heard.add(found);
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
 * @param {string} address
 * @param {() => void} changed
 */
function listen(address, changed) {
  const names = new Set([address]);
  let { height, transactions: [newest] } = live;
  const began = height;
  let isAway = !isCurrent();
  const heard = {
    /** Whether its balances and its history may be others. */
    isOther: false,
    /** Listen for more names, of which some may have been told by then. @param {string[]} more */
    add: (more) => {
      const added = new Set(more);
      for (const each of added) names.add(each);
      heard.isOther ||= live.transactions.some((each) => each.height >= began && mentions(each, added));
      changed();
    },
    stop: () => {
      unwatch();
      unwatchRollbacks();
    },
  };
  const unwatch = watch(() => {
    const wasAway = isAway;
    isAway = !isCurrent();
    // Transactions of microblocks come to a block that is known.
    if (isAway || (!wasAway && live.height === height && live.transactions[0] === newest)) return;
    const at = live.transactions.indexOf(newest);
    const since = height;
    const isOwn = live.transactions.slice(0, at < 0 ? undefined : at).some((each) => each.height >= since && mentions(each, names));
    // Of a burst only the newest are in the list. Transactions of others are no reason to ask again.
    if (live.height !== height || isOwn || (newest && at < 0)) heard.isOther = true;
    ({ height, transactions: [newest] } = live);
    changed();
  });
  const unwatchRollbacks = watchRollbacks((left) => {
    // The block that is left may have lost transactions, and the chain be as high again by the next frame.
    height = Math.min(height, left - 1);
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
 * The newest transactions first.
 * @param {string} name
 * @param {number} count
 * @param {string} [query]
 * @returns {Promise<Json[]>}
 */
async function transactionsOf(name, count, query = "") {
  const { value } = await ask(`/transactions/address/${name}/limit/${count}${query}`);
  return Array.isArray(value[0]) ? value[0] : value;
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
  /** @type {Json} */
  let first;
  const more = h("button", { type: "button" }, "Show older transactions");
  const load = async () => {
    more.disabled = true;
    try {
      const query = after ? `?after=${encodeURIComponent(after)}` : "";
      const found = await transactionsOf(name, PAGE, query);
      for (const each of found) {
        ids.add(each.id);
        list.append(row(each));
      }
      if (!isLoaded) first = found[0];
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
    /** What the newest transaction says of it. @param {Json} newest @returns {keyof typeof WORDS} */
    compare: (newest) => {
      if (!isLoaded || (newest?.id === first?.id && newest?.height === first?.height)) return "same";
      return newest && !ids.has(newest.id) ? "news" : "cut";
    },
  };
}

/** @param {Json} each */
function row(each) {
  return h("li", null,
    h("span", { class: "kind" }, h("a", { href: place("tx", each.id), title: each.id }, kindOf(each))),
    h("span", { class: "words" }, sentence(each), (each.applicationStatus ?? "succeeded") !== "succeeded" && h("strong", { class: "bad" }, " failed")),
    h("span", { class: "when" }, blockLink(each.height), " ", time(each.timestamp)));
}
