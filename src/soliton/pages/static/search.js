// Search by anything: what a text could be is asked of the node, and what it is becomes a result.

import { h } from "./dom.js";
import { clean, stranger } from "./format.js";
import { parse } from "./json.js";
import { BASE, get, getOr, knownAssets, noteAsset } from "./node.js";
import { place } from "./parts.js";

/** @typedef {{kind: string, name: string, words: Node | string, href: string}} Found */

const ID = /^[1-9A-HJ-NP-Za-km-z]{32,90}$/;
const ADDRESS = /^[1-9A-HJ-NP-Za-km-z]{30,40}$/;
const ALIAS = /^(?:alias:.:)?([-.0-9@_a-z]{4,30})$/;
const LONGEST = 200;
/** How far back names of assets are looked for: the stream goes no further. */
const BLOCKS = 10_000;
const MAX_FOUND = 50;

/** @type {Promise<void> | null} */
let names = null;

/**
 * What goes with a text; never more than a person can read.
 * @param {string} text
 * @returns {Promise<Found[]>}
 */
export async function find(text) {
  const wanted = text.trim().slice(0, LONGEST);
  if (wanted === "") return [];
  const found = await Promise.all([height(wanted), address(wanted), id(wanted), alias(wanted)]);
  const exact = found.flat();
  return exact.length ? exact : await assets(wanted);
}

/** @param {string} wanted */
async function height(wanted) {
  if (!/^\d{1,10}$/.test(wanted)) return [];
  const { height: top } = await get("/blocks/height");
  const number = Number(wanted);
  return number >= 1 && number <= top
    ? [{ kind: "Block", name: wanted, words: `at height ${number}`, href: place("block", number) }] : [];
}

/** @param {string} wanted */
async function address(wanted) {
  if (!ADDRESS.test(wanted)) return [];
  const { valid } = await getOr(`/addresses/validate/${wanted}`, { valid: false });
  return valid ? [{ kind: "Account", name: wanted, words: wanted, href: place("account", wanted) }] : [];
}

/** @param {string} wanted */
async function id(wanted) {
  if (!ID.test(wanted)) return [];
  const [transaction, waiting, block, asset, key] = await Promise.all([
    getOr(`/transactions/info/${wanted}`, null),
    getOr(`/transactions/unconfirmed/info/${wanted}`, null),
    getOr(`/blocks/headers/${wanted}`, null),
    getOr(`/assets/details/${wanted}`, null),
    wanted.length < 46 ? getOr(`/addresses/publicKey/${wanted}`, null) : null,
  ]);
  /** @type {Found[]} */
  const found = [];
  if (asset?.name !== undefined) {
    noteAsset(wanted, asset);
    found.push({ kind: "Asset", name: wanted, words: stranger(asset.name), href: place("asset", wanted) });
  }
  if ((transaction ?? waiting)?.id) found.push({ kind: "Transaction", name: wanted, words: wanted, href: place("tx", wanted) });
  if (block?.height) found.push({ kind: "Block", name: wanted, words: `at height ${block.height}`, href: place("block", block.height) });
  if (!found.length && key?.address) found.push({ kind: "Account", name: wanted, words: `${key.address}, of this public key`, href: place("account", key.address) });
  return found;
}

/** @param {string} wanted */
async function alias(wanted) {
  const match = ALIAS.exec(wanted);
  if (!match) return [];
  const found = await getOr(`/alias/by-alias/${encodeURIComponent(match[1])}`, null);
  return found?.address ? [{ kind: "Alias", name: match[1], words: `of ${found.address}`, href: place("account", found.address) }] : [];
}

/** @param {string} wanted */
async function assets(wanted) {
  names ??= readNames().finally(() => { names = null; });
  await names;
  const words = wanted.toLowerCase();
  /** @type {Found[]} */
  const found = [];
  for (const each of knownAssets()) {
    if (each.id !== null && each.name.toLowerCase().includes(words)) {
      found.push({ kind: "Asset", name: each.id, words: stranger(each.name), href: place("asset", each.id) });
      if (found.length === MAX_FOUND) break;
    }
  }
  return found;
}

/** Read the issues of the last blocks off the event stream; names that came otherwise are known too. */
async function readNames() {
  const { height: top } = await get("/blocks/height");
  const from = Math.max(1, top - BLOCKS + 1);
  await new Promise((resolve) => {
    const source = new EventSource(`${BASE}/events?events=transaction&type=3&type=16&from=${from}`);
    const end = () => { source.close(); resolve(null); };
    source.addEventListener("transaction", (event) => {
      const { transaction } = parse(/** @type {MessageEvent} */ (event).data);
      if (transaction.type === 3) noteAsset(transaction.assetId ?? transaction.id, transaction);
      for (const each of transaction.stateChanges?.issues ?? []) noteAsset(each.assetId, each);
    });
    source.addEventListener("synced", end);
    source.addEventListener("error", end);
  });
}

/** @param {string} text */
export async function results(text) {
  const shown = clean(text, LONGEST);
  const found = await find(text);
  const node = h("article", null,
    h("h1", { tabindex: -1 }, "Search"),
    found.length
      ? h("ul", { class: "results" }, found.map((each) =>
        h("li", null, h("a", { href: each.href }, h("span", { class: "kind" }, each.kind), " ", each.words), " ",
          h("code", { class: "soft" }, each.words === each.name ? "" : clean(each.name, 60)))))
      : h("div", { class: "empty" },
        h("p", null, "No results for ", h("bdi", { class: "stranger" }, shown), "."),
        h("p", null, "Search by height, address, public key, alias, block id, transaction id, asset id or asset name.",
          ` Names are found for assets issued in the last ${BLOCKS} blocks, and for those the page has met.`)));
  return { title: "Search", node, ...(found.length === 1 ? { instead: found[0].href } : {}) };
}
