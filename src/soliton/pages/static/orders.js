// Orders as the matcher takes them: their bytes, prices in the units of an order, and signing. A seed phrase that
// signs here never leaves the page: nothing but public keys and signatures is sent.

import { addressOf, joined, keysOf, long, sign } from "./crypto.js";
import { base58, toBase58 } from "./format.js";

/** @typedef {{id: string, name: string, decimals: number}} Side */
/** @typedef {{amount: Side, price: Side}} Market */
/** @typedef {{address: string, publicKey: string, sign: (message: Uint8Array) => string}} Signer */

const LIFETIME_MS = 29 * 86_400_000;
const DECIMALS = 8;

/**
 * @param {string} seed
 * @param {number} chainId
 * @returns {Signer}
 */
export function signerOf(seed, chainId) {
  const { privateKey, publicKey } = keysOf(seed);
  return {
    address: toBase58(addressOf(publicKey, chainId)),
    publicKey: toBase58(publicKey),
    sign: (message) => toBase58(sign(privateKey, message)),
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
export function order(signer, market, matcher, side, amount, price, fee, now) {
  const expiration = now + LIFETIME_MS;
  const feeAsset = fee.feeAssetId ?? "WAVES";
  const body = joined(
    [3], bytes(signer.publicKey), bytes(matcher), assetBytes(market.amount.id), assetBytes(market.price.id),
    [side === "buy" ? 0 : 1], long(price), long(amount), long(now), long(expiration), long(fee.matcherFee),
    assetBytes(feeAsset));
  return {
    version: 3, senderPublicKey: signer.publicKey, matcherPublicKey: matcher,
    assetPair: { amountAsset: assetJson(market.amount.id), priceAsset: assetJson(market.price.id) },
    orderType: side, amount, price, timestamp: now, expiration,
    matcherFee: fee.matcherFee, matcherFeeAssetId: assetJson(feeAsset), proofs: [signer.sign(body)],
  };
}

/**
 * What lets somebody see the account's own orders.
 * @param {Signer} signer
 * @param {number} now
 */
export function admission(signer, now) {
  return { Timestamp: String(now), Signature: signer.sign(joined(bytes(signer.publicKey), long(now))) };
}

/**
 * @param {Signer} signer
 * @param {string} orderId
 */
export function cancellation(signer, orderId) {
  return { sender: signer.publicKey, orderId, signature: signer.sign(joined(bytes(signer.publicKey), bytes(orderId))) };
}
