// The view of an asset.

import { h } from "./dom.js";
import { decimal, grouped, stranger, time } from "./format.js";
import { pretty } from "./json.js";
import { COIN, OBEYS, get, getOr, noteAsset } from "./node.js";
import { accountLink, amount, blockLink, column, facts, folded, idLink, later, section, table, whole } from "./parts.js";
import { snippets } from "./snippets.js";
import { source } from "./source.js";

const HOLDERS = 100;

/** @param {string} id */
export async function asset(id) {
  const name = encodeURIComponent(id);
  const path = `/assets/details/${name}`;
  const found = await get(`${path}?full=true`);
  noteAsset(id, found);
  const fee = found.minSponsoredAssetFee;
  const node = h("article", null,
    h("h1", { tabindex: -1 }, stranger(found.name, 60)),
    h("p", { class: "name" }, whole(id, "the id of the asset")),
    facts([
      ["Quantity", decimal(found.quantity, found.decimals)],
      ["Decimals", String(found.decimals)],
      ["Reissuable", found.reissuable ? "yes" : "no"],
      found.description !== "" && ["Description", stranger(found.description, 1_000)],
      ["Issuer", accountLink(found.issuer, true)],
      ["Issued", [time(found.issueTimestamp, true), " in block ", blockLink(found.issueHeight)]],
      found.originTransactionId && ["Issue transaction", idLink("tx", found.originTransactionId, true)],
      OBEYS && ["Traded", later(() => books(id), "Looking for a matcher…")],
      fee && ["Sponsorship", [amount(fee, id), ` for each ${decimal(100_000, COIN.decimals)} ${COIN.name}`]],
      ["Script", found.scripted ? "yes: it decides about every transaction with the asset" : "none"],
    ]),
    found.scriptDetails?.script && section("Script", later(() => source(found.scriptDetails.script))),
    section("Holders", later(() => holders(name, id))),
    folded("Raw JSON", () => h("pre", { tabindex: 0 }, pretty(found))),
    folded("API request", () => snippets(path)));
  return { title: "Asset", node };
}

/**
 * Where it is traded; a devnet knows its matcher.
 * @param {string} id
 */
async function books(id) {
  const { matcher } = await get("/devnet");
  return matcher ? h("a", { href: `${matcher}/#${id}` }, "Order books") : "This node has no matcher.";
}

/**
 * @param {string} name
 * @param {string} id
 */
async function holders(name, id) {
  const { height } = await get("/blocks/height");
  if (height < 2) return h("p", { class: "empty" }, "Available from height 2 on.");
  const page = await getOr(`/assets/${name}/distribution/${height - 1}/limit/${HOLDERS}`, null);
  if (!page) return h("p", { class: "empty" }, "Not available on this node.");
  const rows = Object.entries(page.items).sort(([, a], [, b]) => (BigInt(a) < BigInt(b) ? 1 : -1));
  return [
    table("Holders", ["Account", "#Balance"], rows.map(([address, units]) => [accountLink(address), column(units, id)]),
      `No holders at height ${height - 1}.`),
    h("p", { class: "soft" }, page.hasNext
      ? `${grouped(rows.length)} of the holders after the block at height ${height - 1}.`
      : `As of height ${height - 1}.`),
  ];
}
