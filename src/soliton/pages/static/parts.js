// Pieces that several views are made of: links, amounts, tables, copying, what to say when something
// is missing or goes wrong.

import { h } from "./dom.js";
import { aligned, clean, decimal, short, stranger } from "./format.js";
import { asset, knownAsset, NodeError } from "./node.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./dom.js").Children} Children */
/** @typedef {import("./node.js").Asset} Asset */

const PATIENCE = 1_500;
const NAMED_IN = 250;
/** So long a question stands before it can be answered. */
const READ_IN = 400;
/** A table of more columns has one below the other in a narrow window, each with its head. */
const FEW = 3;
/** @type {Set<Promise<void>>} names of assets that were asked for */
const naming = new Set();

/** Until names are there, unless that takes long: a line that grows moves what is below. */
export async function named() {
  await Promise.race([Promise.all(naming), new Promise((done) => { setTimeout(done, NAMED_IN); })]);
}

/**
 * A place in this page.
 * @param {string} kind
 * @param {string | number} name
 */
export function place(kind, name) {
  return `#${kind}/${encodeURIComponent(String(name))}`;
}

/**
 * @param {string} kind
 * @param {string | number} name
 * @param {boolean} [full]
 */
export function idLink(kind, name, full = false) {
  const text = String(name);
  return h("a", { href: place(kind, text), class: "id", "data-key": `${kind} ${text}`, title: text }, full ? text : short(text));
}

/**
 * An address or an alias.
 * @param {string} name
 * @param {boolean} [full]
 */
export function accountLink(name, full = false) {
  const found = /^alias:.:(.*)$/.exec(name);
  if (found) return h("a", { href: place("alias", found[1]), class: "id" }, stranger(found[1]));
  return idLink("account", name, full);
}

/** @param {number} height */
export function blockLink(height) {
  return h("a", { href: place("block", height) }, String(height));
}

/** @param {Asset} found */
function assetName(found) {
  return found.id === null
    ? h("span", { class: "asset" }, found.name)
    : h("a", { href: place("asset", found.id), class: "asset", title: found.id }, stranger(found.name, 40));
}

/**
 * An asset's name, as soon as it is known.
 * @param {string | null} id
 */
export function assetLink(id) {
  return whenKnown(id, assetName, () => idLink("asset", String(id)));
}

/**
 * @param {string | null | undefined} id
 * @param {(found: Asset) => Node} known
 * @param {() => Node} unknown
 */
function whenKnown(id, known, unknown) {
  const now = knownAsset(id);
  if (now) return known(now);
  const element = h("span", { class: "pending" }, "…");
  const answer = asset(id).then((found) => element.replaceWith(known(found)), () => element.replaceWith(unknown()))
    .finally(() => naming.delete(answer));
  naming.add(answer);
  return element;
}

/**
 * So much of an asset.
 * @param {number | bigint | string} units
 * @param {string | null | undefined} id
 */
export function amount(units, id) {
  return whenKnown(
    id,
    (found) => h("span", { class: "amount" }, decimal(units, found.decimals), "\u00a0", assetName(found)),
    () => h("span", { class: "amount" }, `${units} units of `, idLink("asset", String(id))),
  );
}

/**
 * A number in a column of others, each with its own decimals.
 * @param {number | bigint | string} units
 * @param {string | null | undefined} id
 */
export function column(units, id) {
  return whenKnown(id, (found) => aligned(units, found.decimals), () => aligned(units, 0));
}

/**
 * A button that copies.
 * @param {string} text
 * @param {string} what
 */
export function copy(text, what) {
  const button = h("button", { type: "button", class: "copy", "data-key": `copy ${text}`, "aria-label": `Copy ${what}`, title: `Copy ${what}` }, "Copy");
  button.addEventListener("click", async () => {
    const done = await toClipboard(text);
    button.textContent = done ? "Copied" : "Not allowed";
    setTimeout(() => { button.textContent = "Copy"; }, 1_500);
  });
  return button;
}

/** @param {string} text */
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages that came over plain HTTP from another machine have no clipboard: the older way.
    const area = h("textarea", { class: "offscreen", "aria-hidden": true, value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/**
 * Let a button that answers a question be pressed a moment later: what follows the press that has led to it, a double
 * click or a key that is held, is no answer.
 * @param {HTMLButtonElement} button
 * @param {() => void} [left] called where somebody has gone elsewhere meanwhile
 */
export function pause(button, left = () => undefined) {
  const before = document.activeElement;
  button.disabled = true;
  setTimeout(() => {
    button.disabled = false;
    const on = document.activeElement;
    // A press of a button that is disabled is one of what it stands in.
    if (!on || on === before || on.contains(button)) button.focus();
    else left();
  }, READ_IN);
}

/**
 * An id in full, with what copies it.
 * @param {string} text
 * @param {string} what
 */
export function whole(text, what) {
  return h("span", { class: "whole" }, h("code", null, text), " ", copy(text, what));
}

/**
 * Names and values.
 * @param {(readonly [string, Children] | null | false)[]} rows what is empty is left out
 */
export function facts(rows) {
  const list = h("dl", { class: "facts" });
  for (const row of rows) {
    if (!row || row[1] === null || row[1] === undefined) continue;
    list.append(h("div", null, h("dt", null, row[0]), h("dd", null, row[1])));
  }
  return list;
}

/**
 * @param {string} name what the table holds
 * @param {string[]} heads a column of numbers begins with `#`
 * @param {Children[][]} rows
 * @param {string} [none] what is said without rows
 */
export function table(name, heads, rows, none = "None.") {
  if (!rows.length) return h("p", { class: "empty" }, none);
  const numeric = heads.map((head) => head.startsWith("#"));
  const titles = heads.map((head) => head.replace(/^#/, ""));
  const isWide = titles.length > FEW;
  return h("div", { class: isWide ? "scroll wide" : "scroll", tabindex: 0, role: "region", "aria-label": name },
    h("table", null,
      h("caption", { class: "offscreen" }, name),
      h("thead", null, h("tr", null, titles.map((title, at) =>
        h("th", { scope: "col", class: numeric[at] && "numeric" }, title)))),
      h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell, at) =>
        h("td", { class: numeric[at] && "numeric", "data-head": isWide && titles[at] }, cell)))))));
}

/**
 * A part of a view with a heading.
 * @param {string} title
 * @param {Children[]} content
 */
export function section(title, ...content) {
  return h("section", null, h("h2", null, title), ...content);
}

/**
 * What is folded until somebody opens it.
 * @param {string} title
 * @param {() => Children} make called when it is opened first
 * @param {boolean} [open]
 */
export function folded(title, make, open = false) {
  const body = h("div");
  const element = h("details", { open }, h("summary", null, title), body);
  let made = false;
  const fill = () => {
    if (made || !element.open) return;
    made = true;
    try {
      body.append(h("div", null, make()));
    } catch (error) {
      body.append(trouble(error));
    }
  };
  element.addEventListener("toggle", fill);
  fill();
  return element;
}

/** @param {unknown} error */
export function trouble(error) {
  const words = error instanceof Error ? error.message : String(error);
  const known = error instanceof NodeError;
  return h("div", { class: "trouble", role: "alert" },
    h("p", null, clean(words, 600)),
    known && error.hint && error.status !== 0 && h("p", null, clean(error.hint, 600)),
    known && error.code !== null && h("p", { class: "soft" }, `Error ${error.code}, status ${error.status}`));
}

/**
 * Content that has to be asked for: its place now, itself or its trouble later.
 * @param {() => Promise<Children>} make
 * @param {string} [name]
 */
export function later(make, name = "Loading…") {
  const element = h("div", { class: "later coming", "aria-busy": true }, h("p", { class: "empty" }, name));
  // What is slow does not keep what stands below it from being seen.
  setTimeout(() => element.classList.remove("coming"), PATIENCE);
  make().then(
    (content) => { element.replaceChildren(h("div", null, content)); },
    (error) => { element.replaceChildren(trouble(error)); },
  ).finally(() => {
    element.removeAttribute("aria-busy");
    element.classList.remove("coming");
  });
  return element;
}
