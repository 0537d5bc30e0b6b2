// The view of a transaction: what happened, what it changed, who called whom.

import { h } from "./dom.js";
import { attachmentText, clean, decimal, grouped, stranger, time } from "./format.js";
import { pretty } from "./json.js";
import { live, watch, watchRollbacks } from "./live.js";
import { NodeError, get, getOr } from "./node.js";
import { accountLink, amount, assetLink, blockLink, column, facts, folded, idLink, later, section, table, whole } from "./parts.js";
import { counted, kindOf, orderPrice, sentence } from "./sentence.js";
import { snippets } from "./snippets.js";
import { source } from "./source.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./dom.js").Children} Children */

/** A chain that has gone back is asked when it has gone on. */
const SETTLED_MS = 500;

/** @param {string} id */
export async function transaction(id) {
  const name = encodeURIComponent(id);
  let found;
  let waits = false;
  try {
    found = await get(`/transactions/info/${name}`);
  } catch (error) {
    if (!(error instanceof NodeError && error.isMissing)) throw error;
    found = await get(`/transactions/unconfirmed/info/${name}`);
    waits = true;
  }
  const failed = (found.applicationStatus ?? "succeeded") !== "succeeded";
  const state = h("span", null);
  const showState = () => {
    state.textContent = waits
      ? "Waiting for a block."
      : `${counted(Math.max(0, live.height - found.height) + 1, "confirmation")}`;
  };
  showState();
  let stopped = false;
  const again = () => {
    if (stopped) return;
    stopped = true;
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  };
  let wasWaiting = live.pool.has(found.id);
  const unwatch = watch(() => {
    showState();
    const isWaiting = live.pool.has(found.id);
    // Of a burst only the newest are in the list: who has left the pool may be in a block, too.
    const mined = waits && (live.transactions.some((each) => each.id === found.id) || (live.state === "live" && wasWaiting && !isWaiting));
    wasWaiting = isWaiting;
    if (mined) again();
  });
  let timer = 0;
  const unwatchRollbacks = watchRollbacks((height) => {
    if (waits || height > found.height) return;
    clearTimeout(timer);
    timer = setTimeout(again, SETTLED_MS);
  });
  const stop = () => {
    unwatch();
    unwatchRollbacks();
    clearTimeout(timer);
    stopped = true;
  };
  const path = waits ? `/transactions/unconfirmed/info/${name}` : `/transactions/info/${name}`;
  const node = h("article", null,
    h("h1", { tabindex: -1 }, kindOf(found)),
    h("p", { class: "sentence" }, sentence(found), "."),
    failed && h("div", { class: "trouble" }, h("p", null, found.applicationStatus === "script_execution_failed" ? "The script failed: only the fee was charged. " : "It was not executed. "),
      found.stateChanges?.error && h("pre", { tabindex: 0 }, clean(found.stateChanges.error.text, 2_000))),
    facts([
      ["Id", whole(found.id, "the id of the transaction")],
      ["Status", [waits ? h("strong", null, "Unconfirmed. ") : failed ? h("strong", { class: "bad" }, "Failed. ") : h("strong", { class: "good" }, "Succeeded. "), state]],
      !waits && ["Block", blockLink(found.height)],
      ["Time", time(found.timestamp, true)],
      found.sender && ["Sender", accountLink(found.sender, true)],
      ["Fee", amount(found.fee, found.feeAssetId ?? found.feeAsset)],
      found.spentComplexity > 0 && ["Complexity", grouped(found.spentComplexity)],
      ...details(found),
      ["Version", String(found.version ?? 1)],
    ]),
    ...extras(found),
    found.stateChanges && found.stateChanges.invokes?.length > 0 && section("Calls", callTree(found)),
    changes(found.stateChanges),
    !waits && later(() => snapshot(name), "Loading state changes…"),
    folded("Raw JSON", () => h("pre", { tabindex: 0 }, pretty(found))),
    folded("API request", () => snippets(path)),
    folded("Simulate again", () => snippets("/transactions/simulate", unsigned(found))));
  return { title: `${kindOf(found)} ${found.id.slice(0, 8)}`, node, stop };
}

/**
 * What one would send of it.
 * @param {Json} found
 */
function unsigned(found) {
  const { id, sender, proofs, signature, height, applicationStatus, spentComplexity, stateChanges, timestamp, ...rest } = found;
  return rest;
}

/**
 * @param {Json} tx
 * @returns {(readonly [string, Children] | null | false)[]}
 */
function details(tx) {
  const text = tx.attachment ? attachmentText(tx.attachment) : null;
  return [
    tx.recipient && ["To", accountLink(tx.recipient, true)],
    tx.dApp && ["dApp", accountLink(tx.dApp, true)],
    tx.assetId && tx.type !== 3 && ["Asset", assetLink(tx.assetId)],
    tx.type === 3 && ["Asset", [stranger(tx.name), " ", whole(tx.assetId ?? tx.id, "the id of the asset")]],
    typeof tx.description === "string" && tx.description !== "" && ["Description", stranger(tx.description, 1_000)],
    tx.alias && ["Alias", stranger(tx.alias)],
    tx.attachment && ["Attachment", text === null ? h("code", null, clean(tx.attachment, 200)) : stranger(text, 200)],
    tx.leaseId && ["Lease", idLink("tx", tx.leaseId, true)],
  ];
}

/**
 * What has a part of its own.
 * @param {Json} tx
 * @returns {Children[]}
 */
function extras(tx) {
  const call = tx.call ?? tx.payload?.call;
  return [
    tx.transfers && section("Recipients", table("Recipients", ["Account", "#Amount"],
      tx.transfers.map((/** @type {Json} */ each) => [accountLink(each.recipient), column(each.amount, tx.assetId)]))),
    tx.data && section("Data", dataTable(tx.data)),
    call && section("Arguments", table("Arguments", ["Type", "Value"],
      (call.args ?? []).map((/** @type {Json} */ each) => [each.type, h("code", null, argument(each))]), "The function takes no arguments.")),
    tx.order1 && section("Orders", table("Orders", ["Side", "Account", "#Amount", "#Price", "Order"],
      [tx.order1, tx.order2].map((each) => [each.orderType, accountLink(each.sender), column(each.amount, each.assetPair.amountAsset), orderPrice(each), h("code", null, clean(each.id, 50))]))),
    typeof tx.script === "string" && section("Script", later(() => source(tx.script))),
  ];
}

/**
 * @param {Json} value
 * @returns {string}
 */
export function argument(value) {
  if (Array.isArray(value.value)) return `[${value.value.map(argument).join(", ")}]`;
  return typeof value.value === "string" ? clean(value.value, 300) : String(value.value);
}

/** @param {Json[]} entries */
export function dataTable(entries) {
  return table("Data", ["Key", "Type", "Value"], entries.slice(0, 200).map((each) => [
    stranger(each.key, 100), each.type ?? "deleted", h("span", { class: "value" }, each.value === null || each.value === undefined ? "–" : stranger(each.value, 300)),
  ]), "No data entries.");
}

/** @param {Json} tx */
function callTree(tx) {
  const call = tx.call ?? tx.payload?.call;
  return h("ul", { class: "tree" }, h("li", null,
    callLine(tx.dApp ?? tx.payload?.dApp, call?.function, call?.args, tx.payment ?? tx.payload?.payment),
    invokes(tx.stateChanges)));
}

/** @param {Json} changes */
function invokes(changes) {
  if (!changes?.invokes?.length) return null;
  return h("ul", null, changes.invokes.map((/** @type {Json} */ each) => h("li", null,
    callLine(each.dApp, each.call?.function, each.call?.args, each.payment),
    changesOf(each.stateChanges),
    invokes(each.stateChanges))));
}

/**
 * @param {string} dApp
 * @param {string | undefined} name
 * @param {Json[] | undefined} args
 * @param {Json[] | undefined} payments
 */
function callLine(dApp, name, args, payments) {
  return h("p", null, accountLink(dApp), " ",
    h("code", null, `${clean(name ?? "default", 60)}(${(args ?? []).map(argument).join(", ")})`),
    payments?.length ? [" with ", payments.map((each) => [amount(each.amount, each.assetId ?? each.asset), " "])] : null);
}

/**
 * What a script did, in lines.
 * @param {Json} found
 */
export function changesOf(found) {
  if (!found) return null;
  const lines = [
    ...(found.data ?? []).map((/** @type {Json} */ each) => ["wrote ", stranger(each.key, 60), " = ", h("code", null, clean(each.value ?? "nothing", 80))]),
    ...(found.transfers ?? []).map((/** @type {Json} */ each) => ["sent ", amount(each.amount, each.asset), " to ", accountLink(each.address)]),
    ...(found.issues ?? []).map((/** @type {Json} */ each) => ["issued ", decimal(each.quantity, each.decimals), " ", stranger(each.name, 40), " ", idLink("asset", each.assetId)]),
    ...(found.reissues ?? []).map((/** @type {Json} */ each) => ["issued ", amount(each.quantity, each.assetId), " more"]),
    ...(found.burns ?? []).map((/** @type {Json} */ each) => ["burned ", amount(each.quantity, each.assetId)]),
    ...(found.sponsorFees ?? []).map((/** @type {Json} */ each) => ["sponsors ", assetLink(each.assetId)]),
    ...(found.leases ?? []).map((/** @type {Json} */ each) => ["leased ", amount(each.amount, null), " to ", accountLink(each.recipient)]),
    ...(found.leaseCancels ?? []).map((/** @type {Json} */ each) => ["ended the lease ", idLink("tx", each.id ?? each.leaseId ?? "")]),
  ];
  return lines.length ? h("ul", { class: "plain" }, lines.map((line) => h("li", null, line))) : null;
}

/** @param {Json} found */
function changes(found) {
  const lines = changesOf(found);
  return lines && section("State changes of the script", lines);
}

/** @param {string} name */
async function snapshot(name) {
  const found = await getOr(`/transactions/snapshot/${name}`, null);
  if (!found) return null;
  const balances = found.balances ?? [];
  const rest = [
    [(found.accountData ?? []).length, "account whose data changed", "accounts whose data changed"],
    [(found.aliases ?? []).length, "alias", "aliases"],
    [(found.assetStatics ?? []).length, "new asset", "new assets"],
    [(found.newLeases ?? []).length, "new lease", "new leases"],
    [(found.cancelledLeases ?? []).length, "lease ended", "leases ended"],
  ].filter(([count]) => count > 0);
  return section("Balances afterwards",
    table("Balances after the transaction", ["Account", "#Balance", "Asset"], balances.slice(0, 200).map((/** @type {Json} */ each) =>
      [accountLink(each.address), column(each.balance, each.asset), assetLink(each.asset)]), "No balance changed."),
    rest.length > 0 && h("p", { class: "soft" }, rest.map(([count, one, many]) => counted(count, one, many)).join(", ")));
}
