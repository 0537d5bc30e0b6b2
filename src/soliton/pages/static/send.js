// Transactions that the page sends on a devnet: signed by the node's wallet, or without proofs for an
// account that is impersonated meanwhile.

import { now } from "./format.js";
import { NodeError, ask, get, getOr, post } from "./node.js";

/** @typedef {import("./json.js").Json} Json */

const MS_BETWEEN = 200;
const SECONDS = 30;
const SEEN = 100;

/** What the devnet told its user, unless somebody has chosen another one. */
export const access = { key: "waves-private-node" };

/** @returns {Promise<string[]>} the addresses of the node's wallet */
export async function wallet() {
  return getOr("/addresses", []);
}

/**
 * The key of an account, from the wallet or from what it has sent.
 * @param {string} address
 * @returns {Promise<string>}
 */
export async function publicKeyOf(address) {
  if ((await wallet()).includes(address)) {
    const draft = { type: 10, version: 2, sender: address, alias: "just.for.the.key", fee: 100_000 };
    return (await post("/transactions/sign", draft, access.key)).senderPublicKey;
  }
  const info = await get(`/addresses/scriptInfo/${encodeURIComponent(address)}`);
  if (info.publicKey) return info.publicKey;
  const [found] = await get(`/transactions/address/${encodeURIComponent(address)}/limit/${SEEN}`);
  const own = found.find((/** @type {Json} */ each) => each.sender === address);
  if (own) return own.senderPublicKey;
  throw new NodeError(0, null, "The account's public key is unknown: it has not sent a transaction yet, and it is not in the node's wallet.");
}

/**
 * What would become of it; a refusal is an answer too.
 * @param {Json} members without sender
 * @param {string} sender
 * @returns {Promise<Json>}
 */
export async function simulated(members, sender) {
  return post("/transactions/simulate", { ...members, senderPublicKey: await publicKeyOf(sender) });
}

/**
 * Send it, with the least fee, and wait until it is in a block.
 * @param {Json} members without sender and fee
 * @param {string} sender
 * @returns {Promise<string>} its id
 */
export async function send(members, sender) {
  const senderPublicKey = await publicKeyOf(sender);
  const priced = { ...members, sender, senderPublicKey, feeAssetId: null };
  const { feeAmount } = await post("/transactions/calculateFee", { ...priced, fee: 500_000, timestamp: now() });
  const ready = { ...priced, fee: feeAmount };
  let sent;
  if ((await wallet()).includes(sender)) {
    sent = await post("/transactions/broadcast", await post("/transactions/sign", ready, access.key));
  } else {
    sent = await impersonating(sender, () => post("/transactions/broadcast", { ...ready, timestamp: now(), proofs: [] }));
  }
  await mined(sent.id);
  return sent.id;
}

/**
 * @template T
 * @param {string} address
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function impersonating(address, work) {
  const path = `/devnet/impersonated/${encodeURIComponent(address)}`;
  const { value } = await ask(path, { method: "POST" });
  try {
    return await work();
  } finally {
    // Who was impersonated before stays it. In instant mode the transaction is in its block by now.
    if (value.done) await ask(path, { method: "DELETE" });
  }
}

/** @param {string} id */
async function mined(id) {
  for (let left = (SECONDS * 1000) / MS_BETWEEN; left > 0; left -= 1) {
    const { status } = await get(`/transactions/status/${id}`);
    if (status === "confirmed") return;
    const { mining } = await get("/devnet");
    if (mining.mode === "manual") return;
    await new Promise((resolve) => { setTimeout(resolve, MS_BETWEEN); });
  }
}
