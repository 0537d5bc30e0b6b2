// Orders as the matcher takes them: their bytes, prices in the units of an order, and signing. A seed phrase that
// signs here never leaves the page: nothing but public keys and signatures is sent. Others that sign are in
// `wallets.js`.

import { addressOf, joined, keysOf, long, sign } from "./crypto.js";
import { base58, toBase58 } from "./format.js";

/** @typedef {{id: string, name: string, decimals: number}} Side */
/** @typedef {{amount: Side, price: Side}} Market */
/** @typedef {import("./json.js").Json} Json */
/**
 * Who signs: an order (it is given with its bytes, and comes back with its proofs), the bytes that take an order back,
 * the bytes that let the account see its own. `asks` is what a person is told meanwhile who has to agree elsewhere.
 * @typedef {{address: string, publicKey: string, asks?: string, order: (order: Json, body: Uint8Array, market: Market) => Promise<Json>,
 *   cancel: (orderId: string, body: Uint8Array) => Promise<string>, admit: (timestamp: number, body: Uint8Array) => Promise<string>}} Signer
 */

const LIFETIME_MS = 29 * 86_400_000;
const DECIMALS = 8;
const ID_BYTES = 32;
/** Matchers take such a signature for an hour, unless their operator sets another time. */
const ADMITTED_MS = 50 * 60_000;

/**
 * @param {string} seed
 * @param {number} chainId
 * @returns {Signer}
 */
export function signerOf(seed, chainId) {
  const { privateKey, publicKey } = keysOf(seed);
  const signed = (/** @type {Uint8Array} */ message) => toBase58(sign(privateKey, message));
  return {
    address: toBase58(addressOf(publicKey, chainId)),
    publicKey: toBase58(publicKey),
    order: async (made, body) => ({ ...made, proofs: [signed(body)] }),
    cancel: async (_, body) => signed(body),
    admit: async (_, body) => signed(body),
  };
}

/** @param {Market} market how many decimals a price has in an order */
export function priceDecimals(market) {
  return DECIMALS + market.price.decimals - market.amount.decimals;
}

/** @param {string} text */
function bytes(text) {
  const found = base58(text);
  if (!found) throw new Error(`${text.slice(0, 60)} is no base58`);
  return found;
}

/** @param {string} id */
function assetBytes(id) {
  return id === "WAVES" ? Uint8Array.of(0) : joined([1], bytes(id));
}

/** @param {string} id */
const assetJson = (id) => (id === "WAVES" ? null : id);

/**
 * A signed order of version 3.
 * @param {Signer} signer
 * @param {Market} market
 * @param {string} matcher its public key
 * @param {"buy" | "sell"} side
 * @param {bigint} amount
 * @param {bigint} price in the units of an order
 * @param {{matcherFee: bigint | number, feeAssetId: string | null}} fee
 * @param {number} now
 */
export async function order(signer, market, matcher, side, amount, price, fee, now) {
  const expiration = now + LIFETIME_MS;
  const feeAsset = fee.feeAssetId ?? "WAVES";
  const body = joined(
    [3], bytes(signer.publicKey), bytes(matcher), assetBytes(market.amount.id), assetBytes(market.price.id),
    [side === "buy" ? 0 : 1], long(price), long(amount), long(now), long(expiration), long(fee.matcherFee),
    assetBytes(feeAsset));
  return signer.order({
    version: 3, senderPublicKey: signer.publicKey, matcherPublicKey: matcher,
    assetPair: { amountAsset: assetJson(market.amount.id), priceAsset: assetJson(market.price.id) },
    orderType: side, amount, price, timestamp: now, expiration,
    matcherFee: fee.matcherFee, matcherFeeAssetId: assetJson(feeAsset),
  }, body, market);
}

/** @type {WeakMap<Signer, {at: number, headers: Promise<Record<string, string>>}>} */
const admitted = new WeakMap();

/**
 * What lets somebody see the account's own orders. A person is asked for it once in a while, and who has refused it is
 * not asked again before `forgetAdmission`.
 * @param {Signer} signer
 * @param {number} now
 * @param {() => void} [isAsked] called when the signer is asked
 */
export function admission(signer, now, isAsked = () => undefined) {
  const before = admitted.get(signer);
  if (before && Math.abs(now - before.at) < ADMITTED_MS) return before.headers;
  isAsked();
  const headers = admit(signer, now);
  admitted.set(signer, { at: now, headers });
  return headers;
}

/** @param {Signer} signer @param {number} now @returns {Promise<Record<string, string>>} */
async function admit(signer, now) {
  const signature = await signer.admit(now, joined(bytes(signer.publicKey), long(now)));
  return { Timestamp: String(now), Signature: signature };
}

/** @param {Signer} signer who is asked again the next time */
export function forgetAdmission(signer) {
  admitted.delete(signer);
}

/**
 * @param {Signer} signer
 * @param {string} orderId
 */
export async function cancellation(signer, orderId) {
  const id = bytes(orderId);
  // The matcher names the id, and longer bytes behind the public key would be an order.
  if (id.length !== ID_BYTES) throw new Error(`not the id of an order: ${orderId}`);
  const signature = await signer.cancel(orderId, joined(bytes(signer.publicKey), id));
  return { sender: signer.publicKey, orderId, signature };
}
