// The explorer: which view a fragment names, the search field, and the state of the stream.

import { account } from "./account.js";
import { asset } from "./asset.js";
import { block } from "./block.js";
import { callForm } from "./call.js";
import { deploy } from "./deploy.js";
import { devnet } from "./devnet.js";
import { at, h, show } from "./dom.js";
import { SKEW, goBy, now, tick, wasSet } from "./format.js";
import { home } from "./home.js";
import { follow, live, watch } from "./live.js";
import { BASE, IS_FOREIGN, NodeError, OBEYS, get, getOr } from "./node.js";
import { named, place, trouble } from "./parts.js";
import { results } from "./search.js";
import { status } from "./status.js";
import { transaction } from "./transaction.js";

/** @typedef {{title: string, node: Node, stop?: () => void, instead?: string}} View `instead` is where it really is */

/** @type {Record<string, (name: string) => View | Promise<View>>} */
const VIEWS = {
  "": home, block, tx: transaction, account, alias, asset, node: status, search: results, call: callForm,
  ...(OBEYS ? { devnet, deploy } : {}),
};
const CONSOLE = "/api-docs/index.html";

/** @type {(() => void) | undefined} */
let stop;
let number = 0;

/** @param {string} name */
async function alias(name) {
  const { address } = await get(`/alias/by-alias/${encodeURIComponent(name)}`);
  return { title: "Alias", node: h("article"), instead: place("account", address) };
}

/** @param {boolean} isFirst */
async function route(isFirst) {
  const fragment = location.hash.slice(1);
  if (fragment.startsWith("/")) {
    // The API console's own places, from the time when it stood here.
    location.replace(`${CONSOLE}#${fragment}`);
    return;
  }
  const [kind, ...rest] = fragment.split("/");
  const view = Object.hasOwn(VIEWS, kind) ? VIEWS[kind] : null;
  const mine = (number += 1);
  stop?.();
  stop = undefined;
  markPlace(kind);
  const main = at("main");
  main.setAttribute("aria-busy", "true");
  /** @type {View} */
  let made;
  try {
    made = view ? await view(decode(rest.join("/"))) : nowhere(fragment);
    await named();
  } catch (error) {
    made = failed(error);
  }
  if (mine !== number) {
    made.stop?.();
    return;
  }
  if (made.instead) {
    // Only here: who has gone on meanwhile is not brought back.
    location.replace(made.instead);
    return;
  }
  stop = made.stop;
  main.removeAttribute("aria-busy");
  show(main, made.node);
  document.title = made.title === "Explorer" ? at("site").textContent ?? "" : `${made.title} · ${at("site").textContent}`;
  if (isFirst) return;
  scrollTo(0, 0);
  main.querySelector("h1")?.focus({ preventScroll: true });
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string} fragment */
function nowhere(fragment) {
  return { title: "Nothing here", node: h("article", null, h("h1", { tabindex: -1 }, "Nothing here"),
    h("p", null, "This page has no view named ", h("bdi", { class: "stranger" }, fragment.slice(0, 80)), ". ", h("a", { href: "#" }, "Back to the blocks"))) };
}

/** @param {unknown} error */
function failed(error) {
  const missing = error instanceof NodeError && error.isMissing;
  const title = missing ? "Not found" : "Something went wrong";
  return { title, node: h("article", null, h("h1", { tabindex: -1 }, title),
    missing && h("p", null, "Not on this chain. It may be on another network, not be confirmed yet, or have been rolled back."),
    trouble(error),
    h("p", null, h("button", { type: "button", onclick: () => route(false) }, "Try again"))) };
}

/** @param {string} kind */
function markPlace(kind) {
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.getAttribute("href") === `#${kind}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

const STATES = { connecting: "connecting…", live: "live", polled: "every 5 s", broken: "retrying…" };

function showState() {
  const place = at("live");
  place.className = live.state === "polled" ? "live" : live.state;
  place.title = live.state === "polled" ? "This node has no event stream: polling every five seconds" : "";
  const words = STATES[live.state];
  if (place.textContent !== words) place.textContent = words;
  const newest = Number(live.blocks[0]?.timestamp ?? 0);
  if (newest > now() + SKEW && newest > compared) {
    // Its clock was moved meanwhile.
    compared = newest;
    compareClocks();
  }
  const notice = at("notice");
  if (notice.dataset.words === live.notice) return;
  notice.dataset.words = live.notice;
  notice.hidden = live.notice === "";
  show(notice, live.notice, " ", h("button", { type: "button", class: "copy", onclick: () => { live.notice = ""; showState(); } }, "Close"));
}

/** The time of the last block for which clocks were compared. */
let compared = 0;

/** What was said of clocks that differ. */
let skewed = "";

async function compareClocks() {
  const asked = Date.now();
  const found = await getOr("/utils/time", null).catch(() => null);
  if (!found) return;
  const words = goBy(Number(found.NTP) + (Date.now() - asked) / 2, "node");
  if (!words && live.notice !== skewed) return;
  live.notice = skewed = words;
  showState();
}

function begin() {
  const form = /** @type {HTMLFormElement} */ (at("search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (at("query"));
    const text = field.value.trim();
    if (text) location.hash = place("search", text);
  });
  at("skip").addEventListener("click", (event) => {
    event.preventDefault();
    at("main").focus();
  });
  document.addEventListener("keydown", (event) => {
    const on = /** @type {HTMLElement} */ (event.target);
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(on.tagName)) return;
    event.preventDefault();
    at("query").focus();
  });
  at("devnet").hidden = !OBEYS;
  if (IS_FOREIGN) {
    at("whose").hidden = false;
    show(at("whose"), "Looking at ", h("code", null, BASE), ", only reading. ", h("a", { href: "/" }, "Back to this node"));
  }
  window.addEventListener("hashchange", () => route(false));
  watch(showState);
  setInterval(() => {
    tick();
    if (wasSet()) compareClocks();
  }, 1_000);
  route(true);
  follow();
  compareClocks();
}

begin();
