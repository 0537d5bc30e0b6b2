// What the node's event stream tells: the newest blocks and transactions, the pool, and whether the
// stream goes. It keeps what a view can show and no more; views are told at most once a frame. Nodes
// without such a stream are asked again and again (`poll.js`).

import { parse } from "./json.js";
import { BASE, ask, forgetAssets, get } from "./node.js";
import { look, older } from "./poll.js";

/** @typedef {import("./json.js").Json} Json */

const MAX_BLOCKS = 20;
const MAX_TRANSACTIONS = 30;
/** Behind this many, blocks are not shown one by one. */
const BEGIN_WITH = 12;
/** So many transactions are looked for, however old they are. */
const WANTED = 12;
const AGAIN_AFTER = 2_000;
const POLL_EVERY = 5_000;
const MISSING = 404;
const TOO_MANY = 429;

export const live = {
  /** @type {"connecting" | "live" | "polled" | "broken"} */
  state: "connecting",
  /** Whether older transactions are being looked for. */
  isLooking: false,
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

/** Whether what it says is the present state. */
export function isCurrent() {
  return live.state === "live" || live.state === "polled";
}

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

/** @type {Set<(height: number) => void>} */
const cut = new Set();

/**
 * Be told of each rollback, until what comes back is called. A frame may see none of it: the chain can be as high
 * again by then.
 * @param {(height: number) => void} watcher is given the height that is left, whose block may have lost transactions
 * @returns {() => void}
 */
export function watchRollbacks(watcher) {
  cut.add(watcher);
  return () => { cut.delete(watcher); };
}

function changed() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    for (const watcher of watchers) watcher();
  });
}

/** Counts beginnings: what was asked before one is not about the chain behind it. */
let beginning = 0;

function forget() {
  beginning += 1;
  live.isLooking = false;
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
    live.transactions.unshift({ ...found, height: data.height, index: data.index });
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
    takeOff(data.height, data.transactionCount);
    const last = live.blocks[0];
    if (last && last.height === data.height) {
      live.blocks[0] = { ...last, id: data.id, transactionCount: data.transactionCount };
    }
    live.height = data.height;
    forgetAssets();
    live.notice = depth > 0
      ? `The chain rolled back ${depth} block${depth === 1 ? "" : "s"}, to height ${data.height}.`
      : `Transactions were removed from the block at height ${data.height}.`;
    for (const watcher of cut) watcher(data.height);
  },
  synced(data) {
    live.state = "live";
    live.height = data.height;
    fill();
  },
  closed(data) {
    live.notice = `The node closed the stream: ${data.reason}. Reconnecting…`;
  },
};

let filled = -1;

/** Find the last transactions where empty blocks have followed them; once for each beginning. */
async function fill() {
  const mine = beginning;
  const lowest = live.blocks[live.blocks.length - 1]?.height ?? live.height + 1;
  if (filled === mine || live.transactions.length >= WANTED || lowest <= 1) return;
  filled = mine;
  live.isLooking = true;
  const found = await older(lowest, WANTED - live.transactions.length).catch(() => []);
  if (mine !== beginning) return;
  live.isLooking = false;
  live.transactions.push(...found.filter((each) => each.height <= live.height));
  changed();
}

/** @param {string} id */
function drop(id) {
  const found = live.pool.get(id);
  if (!found) return;
  live.pool.delete(id);
  if (!found.feeAssetId) live.fees -= BigInt(found.fee ?? 0);
}

/**
 * @param {number} height what is above is no more
 * @param {number} [count] so many transactions are left of the block at the height
 */
function takeOff(height, count = Infinity) {
  live.blocks = live.blocks.filter((each) => each.height <= height);
  live.transactions = live.transactions.filter((each) => each.height < height || (each.height === height && each.index < count));
}

/** @type {EventSource | null} */
let source = null;
/** @type {string} where to go on */
let lastId = "";
let isPaused = false;
let again = 0;

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
  // Who has been away for a moment follows again already.
  if (isPaused || source) return;
  try {
    await ask("/node/status");
    const status = await streamStatus();
    if (isPaused || source) return;
    if (status === MISSING) {
      await poll();
      return;
    }
    if (lastId && status >= 400 && status < 500 && status !== TOO_MANY) {
      live.notice = "The node is on another chain now: the page shows its present state.";
      lastId = "";
      forget();
      forgetAssets();
      // The view that is open may be about what is no more.
      window.dispatchEvent(new HashChangeEvent("hashchange"));
    }
  } catch {
    // It is not back yet; `follow` goes on trying.
  }
  await follow();
}

/** What a node says to who wants to go on with its stream: those of the reference have none. */
async function streamStatus() {
  const end = new AbortController();
  const query = lastId ? `&lastEventId=${encodeURIComponent(lastId)}` : "";
  try {
    const { status } = await fetch(`${BASE}/events?events=block${query}`, { signal: end.signal, credentials: "omit" });
    return status;
  } catch {
    // Its answer to what it does not know may not be for other origins.
    return MISSING;
  } finally {
    end.abort();
  }
}

/** Look at the newest blocks from time to time, for want of a stream. */
async function poll() {
  if (isPaused) return;
  try {
    await look(live, HANDLERS);
    live.state = "polled";
    fill();
  } catch {
    live.state = "broken";
  }
  changed();
  clearTimeout(again);
  again = setTimeout(poll, POLL_EVERY);
}

// A browser has six connections to a server for all its tabs, and keeps those of pages that were left: who
// is not looked at gives its own back.
function pause() {
  isPaused = true;
  live.state = "connecting";
  clearTimeout(again);
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
