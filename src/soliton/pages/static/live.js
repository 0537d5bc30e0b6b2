// What the node's event stream tells: the newest blocks and transactions, the pool, and whether the
// stream goes. It keeps what a view can show and no more; views are told at most once a frame.

import { parse } from "./json.js";
import { BASE, ask, forgetAssets, get } from "./node.js";

/** @typedef {import("./json.js").Json} Json */

const MAX_BLOCKS = 20;
const MAX_TRANSACTIONS = 30;
/** Behind this many, blocks are not shown one by one. */
const BEGIN_WITH = 12;
const AGAIN_AFTER = 2_000;

export const live = {
  /** @type {"connecting" | "live" | "broken"} */
  state: "connecting",
  /** @type {Json[]} the newest first */
  blocks: [],
  /** @type {Json[]} the newest first */
  transactions: [],
  /** @type {Map<string, Json>} in the order of their coming */
  pool: new Map(),
  /** Fees in the chain's coin that wait. */
  fees: 0n,
  height: 0,
  /** @type {string} what happened that a person should know */
  notice: "",
  seen: 0,
};

/** @type {Set<() => void>} */
const watchers = new Set();
let isDue = false;

/**
 * Be told of changes, until what comes back is called.
 * @param {() => void} watcher
 * @returns {() => void}
 */
export function watch(watcher) {
  watchers.add(watcher);
  return () => { watchers.delete(watcher); };
}

function changed() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    for (const watcher of watchers) watcher();
  });
}

function forget() {
  live.blocks = [];
  live.transactions = [];
  live.pool.clear();
  live.fees = 0n;
  live.height = 0;
}

/** @type {Record<string, (data: Json) => void>} */
const HANDLERS = {
  block(data) {
    takeOff(data.height - 1);
    live.blocks.unshift({ ...data, added: null });
    live.blocks.length = Math.min(live.blocks.length, MAX_BLOCKS);
    live.height = data.height;
  },
  microblock(data) {
    const last = live.blocks[0];
    if (!last || last.height !== data.height) return;
    live.blocks[0] = { ...last, id: data.id, transactionCount: data.transactionCount, added: data.added,
      parts: (last.parts ?? 0) + 1 };
  },
  transaction(data) {
    const found = data.transaction;
    // A rollback may bring one again.
    const at = live.transactions.findIndex((each) => each.id === found.id);
    if (at >= 0) live.transactions.splice(at, 1);
    live.transactions.unshift({ ...found, height: data.height });
    live.transactions.length = Math.min(live.transactions.length, MAX_TRANSACTIONS);
    drop(found.id);
  },
  unconfirmed(data) {
    const found = data.transaction;
    if (live.pool.has(found.id)) return;
    live.pool.set(found.id, found);
    if (!found.feeAssetId) live.fees += BigInt(found.fee ?? 0);
  },
  left(data) {
    drop(data.id);
  },
  rollback(data) {
    const depth = live.height - data.height;
    takeOff(data.height);
    const last = live.blocks[0];
    if (last && last.height === data.height) {
      live.blocks[0] = { ...last, id: data.id, transactionCount: data.transactionCount };
    }
    live.height = data.height;
    forgetAssets();
    live.notice = depth > 0
      ? `The chain went back by ${depth} block${depth === 1 ? "" : "s"}, to height ${data.height}.`
      : `Transactions were taken off the block at height ${data.height}.`;
  },
  synced(data) {
    live.state = "live";
    live.height = data.height;
  },
  closed(data) {
    live.notice = `The node ended the stream: ${data.reason}. Going on…`;
  },
};

/** @param {string} id */
function drop(id) {
  const found = live.pool.get(id);
  if (!found) return;
  live.pool.delete(id);
  if (!found.feeAssetId) live.fees -= BigInt(found.fee ?? 0);
}

/** @param {number} height what is above is no more */
function takeOff(height) {
  live.blocks = live.blocks.filter((each) => each.height <= height);
  live.transactions = live.transactions.filter((each) => each.height <= height);
}

/** @type {EventSource | null} */
let source = null;
/** @type {string} where to go on */
let lastId = "";
let isPaused = false;

/** Begin to follow, and never stop. */
export async function follow() {
  if (isPaused || source) return;
  try {
    if (lastId) {
      listen(`lastEventId=${encodeURIComponent(lastId)}`);
      return;
    }
    const { height } = await get("/blocks/height");
    if (isPaused || source) return;
    forget();
    listen(`from=${Math.max(1, height - BEGIN_WITH + 1)}`);
  } catch {
    live.state = "broken";
    changed();
    setTimeout(follow, AGAIN_AFTER);
  }
}

/** @param {string} begin where the stream begins */
function listen(begin) {
  const made = new EventSource(`${BASE}/events?${begin}&events=block,microblock,transaction,unconfirmed`);
  source = made;
  for (const [name, handle] of Object.entries(HANDLERS)) {
    made.addEventListener(name, (event) => {
      const { data, lastEventId } = /** @type {MessageEvent} */ (event);
      lastId = lastEventId || lastId;
      live.seen += 1;
      handle(parse(data));
      changed();
    });
  }
  made.addEventListener("open", () => {
    // The pool comes anew with every connection.
    live.pool.clear();
    live.fees = 0n;
  });
  made.addEventListener("error", () => {
    live.state = "broken";
    changed();
    if (made.readyState !== EventSource.CLOSED) return;
    // The browser has given up: the node has another chain now, or no place for one more stream.
    source = null;
    setTimeout(anew, AGAIN_AFTER);
  });
}

async function anew() {
  try {
    await ask("/node/status");
    live.notice = "The stream could not go on where it was, so the page began anew.";
    lastId = "";
    forgetAssets();
  } catch {
    // It is not back yet; `follow` goes on trying.
  }
  await follow();
}

// A browser has six connections to a server for all its tabs, and keeps those of pages that were left: who
// is not looked at gives its own back.
function pause() {
  isPaused = true;
  source?.close();
  source = null;
}

function resume() {
  if (!isPaused || document.visibilityState === "hidden") return;
  isPaused = false;
  follow();
}

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") pause();
  else resume();
});
window.addEventListener("pagehide", pause);
window.addEventListener("pageshow", resume);
