// Blocks and transactions by asking for them: the last transactions, however old, and what is new on a
// node that has no event stream.

import { get } from "./node.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {{blocks: Json[], transactions: Json[], pool: Map<string, Json>, fees: bigint, height: number, notice: string}} Live */

/** The interface gives no more headers at once. */
const PIECE = 100;
/** How far back transactions are looked for. */
const FARTHEST = 10_000;
const SHOWN = 12;
const MAX_OF_BLOCK = 30;
const MAX_WAITING = 1_000;

/**
 * The last transactions below a height, the newest first.
 * @param {number} below
 * @param {number} wanted
 * @returns {Promise<Json[]>}
 */
export async function older(below, wanted) {
  /** @type {Json[]} */
  const found = [];
  const end = Math.max(1, below - FARTHEST);
  for (let top = below - 1; top >= end && found.length < wanted; top -= PIECE) {
    /** @type {Json[]} */
    const headers = await get(`/blocks/headers/seq/${Math.max(end, top - PIECE + 1)}/${top}`);
    for (const header of headers.filter((each) => each.transactionCount > 0).reverse()) {
      found.push(...await transactionsOf(header.height));
      if (found.length >= wanted) break;
    }
  }
  return found.slice(0, wanted);
}

/** @param {number} height the newest first @returns {Promise<Json[]>} */
async function transactionsOf(height) {
  const { transactions } = await get(`/blocks/at/${height}`);
  return transactions.map((/** @type {Json} */ each, /** @type {number} */ index) => ({ ...each, height, index })).slice(-MAX_OF_BLOCK).reverse();
}

/**
 * See what has changed since the last look, and tell of it as a stream would.
 * @param {Live} live
 * @param {Record<string, (data: Json) => void>} tell
 */
export async function look(live, tell) {
  const { height } = await get("/blocks/height");
  /** @type {Json[]} */
  const headers = await get(`/blocks/headers/seq/${Math.max(1, height - SHOWN + 1)}/${height}`);
  const kept = headers.filter((each) => live.blocks.some((old) => old.height === each.height && isSame(old, each)));
  const common = kept[kept.length - 1];
  if (live.height > (common?.height ?? 0) && live.height >= headers[0].height) {
    // What the block that is left has lost or gained itself is seen below.
    tell.rollback(common ? blockAt(live, common.height) : { height: headers[0].height - 1 });
  }
  for (const header of headers) {
    const old = blockAt(live, header.height);
    if (old && old.id === header.id) continue;
    const found = header.transactionCount > 0 ? await transactionsOf(header.height) : [];
    if (old) {
      const left = leftOf(live, old, header, found);
      if (left !== null) tell.rollback({ height: header.height, id: header.id, transactionCount: left });
      Object.assign(blockAt(live, header.height), { id: header.id, transactionCount: header.transactionCount, totalFee: header.totalFee });
    } else tell.block(header);
    for (const each of found.reverse()) tell.transaction({ height: header.height, index: each.index, transaction: each });
  }
  await pool(live, tell);
}

/** @param {Live} live @param {number} height @returns {Json} */
function blockAt(live, height) {
  return live.blocks.find((each) => each.height === height);
}

/**
 * How many transactions of a block are left of those that it had, or nothing where it has only grown.
 * @param {Live} live
 * @param {Json} old
 * @param {Json} header
 * @param {Json[]} found its last transactions now
 */
function leftOf(live, old, header, found) {
  const ids = new Map(found.map((each) => [each.index, each.id]));
  const other = live.transactions.filter((each) => each.height === header.height && ids.has(each.index) && ids.get(each.index) !== each.id);
  const left = Math.min(header.transactionCount, ...other.map((each) => each.index));
  return left < old.transactionCount ? left : null;
}

/** Whether both are one block: it has another id for each microblock that is added. @param {Json} one @param {Json} other */
function isSame(one, other) {
  return one.reference === other.reference && one.timestamp === other.timestamp && one.generator === other.generator;
}

/** @param {Live} live @param {Record<string, (data: Json) => void>} tell */
async function pool(live, tell) {
  const { size } = await get("/transactions/unconfirmed/size");
  /** @type {Json[]} */
  const waiting = size <= MAX_WAITING ? await get("/transactions/unconfirmed") : [];
  live.pool.clear();
  live.fees = 0n;
  for (const transaction of waiting) tell.unconfirmed({ transaction });
}
