// The view of a block, by its height or id.

import { h } from "./dom.js";
import { aligned, decimal, grouped, time } from "./format.js";
import { live, watch, watchRollbacks } from "./live.js";
import { COIN, FAMILY, get } from "./node.js";
import { accountLink, facts, folded, idLink, place, section, table, whole } from "./parts.js";
import { pretty } from "./json.js";
import { snippets } from "./snippets.js";
import { kindOf, sentence } from "./sentence.js";

/** @typedef {import("./json.js").Json} Json */

const SHOWN = 100;

/** @param {string} name */
export async function block(name) {
  const path = pathOf(name);
  const found = await get(path);
  const id = found.id ?? found.signature;
  const shares = Object.entries(found.rewardShares ?? {});
  const gone = h("p", { class: "hint bad", role: "status" });
  const above = h("a", { href: place("block", found.height + 1), rel: "next" }, "Above →");
  const leave = () => {
    if (gone.textContent === "") gone.textContent = "This block was rolled back: it is no longer part of the chain.";
  };
  const look = () => {
    // Nothing is above the last one, yet.
    above.hidden = live.height > 0 && live.height <= found.height;
    const known = live.blocks.find((each) => each.height === found.height);
    // The last block has another id for each microblock.
    if (known && known.timestamp !== found.timestamp) leave();
  };
  look();
  const unwatch = watch(look);
  const unwatchRollbacks = watchRollbacks((height) => {
    if (height < found.height) leave();
  });
  const stop = () => {
    unwatch();
    unwatchRollbacks();
  };
  const node = h("article", null,
    h("h1", { tabindex: -1 }, `Block ${found.height}`),
    gone,
    h("p", { class: "steps" },
      found.height > 1 && h("a", { href: place("block", found.height - 1), rel: "prev" }, "← Below"), " ",
      above),
    facts([
      ["Id", whole(id, "the id of the block")],
      ["Time", time(found.timestamp, true)],
      ["Generator", accountLink(found.generator, true)],
      ["Transactions", grouped(found.transactionCount ?? found.transactions.length)],
      ["Fees", `${decimal(found.totalFee ?? found.fee ?? 0, COIN.decimals)} ${COIN.name}`],
      found.reward > 0 && ["Reward", [`${decimal(found.reward, COIN.decimals)} ${COIN.name}`,
        shares.length > 1 && h("ul", { class: "plain" }, shares.map(([who, share]) =>
          h("li", null, accountLink(who), ` ${decimal(/** @type {number} */ (share), COIN.decimals)}`)))]],
      ["Size", `${grouped(found.blocksize)} bytes`],
      found.height > 1 && ["Below it", idLink("block", found.reference)],
      ["Version", String(found.version)],
      found.features?.length && ["Votes for features", found.features.join(", ")],
      ["Base target", String(found["nxt-consensus"]?.["base-target"] ?? "–")],
      found.stateHash && ["State hash", whole(found.stateHash, "the state hash")],
    ]),
    section("Transactions", transactionTable(found.transactions)),
    folded("Raw JSON", () => h("pre", { tabindex: 0 }, pretty(found))),
    folded("API request", () => snippets(path)));
  return { title: `Block ${found.height}`, node, stop };
}

/** @param {string} name */
function pathOf(name) {
  if (/^\d{1,10}$/.test(name)) return `/blocks/at/${name}`;
  // Networks of the older generations call ids signatures.
  return FAMILY === "waves" ? `/blocks/${encodeURIComponent(name)}` : `/blocks/signature/${encodeURIComponent(name)}`;
}

/** @param {Json[]} transactions */
function transactionTable(transactions) {
  const holder = h("div");
  const draw = (/** @type {number} */ count) => {
    holder.replaceChildren(
      table("Transactions of the block", ["Type", "What happened", "#Fee", "Id"], transactions.slice(0, count).map((each) => [
        kindOf(each),
        [sentence(each), (each.applicationStatus ?? "succeeded") !== "succeeded" && h("strong", { class: "bad" }, " failed")],
        each.feeAssetId ? idLink("asset", each.feeAssetId) : aligned(each.fee, COIN.decimals),
        idLink("tx", each.id),
      ]), "This block has no transactions."));
    if (count < transactions.length) {
      holder.append(h("button", { type: "button", onclick: () => draw(count + SHOWN) },
        `Show more (${grouped(transactions.length - count)} left)`));
    }
  };
  draw(SHOWN);
  return holder;
}
