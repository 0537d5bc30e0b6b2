// A script as text, with its words coloured.

import { h } from "./dom.js";
import { ask } from "./node.js";
import { copy, folded } from "./parts.js";

const WORDS = new Set(["let", "strict", "func", "if", "then", "else", "match", "case", "true", "false", "unit", "FOLD"]);
const TOKEN = /(\{-#.*?#-\}|#[^\n]*)|("(?:[^"\\]|\\.)*"|base(?:16|58|64)'[^']*')|(@[A-Za-z]+)|([A-Za-z_][A-Za-z0-9_]*)|(\d[\d_]*)/g;
/** Longer texts stay without colours: each word is an element. */
const MAX_COLOURED = 200_000;

/**
 * @param {string} text
 * @returns {(Node | string)[]}
 */
export function coloured(text) {
  if (text.length > MAX_COLOURED) return [text];
  /** @type {(Node | string)[]} */
  const found = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    const kind = match[1] ? "note" : match[2] ? "text" : match[3] ? "word" : match[5] ? "text"
      : WORDS.has(match[4]) ? "word" : /^[A-Z]/.test(match[4]) ? "type" : "";
    if (!kind) continue;
    found.push(text.slice(at, match.index), h("span", { class: `code-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  found.push(text.slice(at));
  return found;
}

/** @param {string} text */
export function listing(text) {
  return h("pre", { class: "listing", tabindex: 0 }, coloured(text));
}

/**
 * The source of a compiled script, as the node reads it out of the bytes.
 * @param {string} script in base64
 */
export async function source(script) {
  const { value } = await ask("/utils/script/decompile", { text: script });
  const text = String(value.script ?? "");
  return h("div", null, h("p", { class: "soft" }, "Decompiled by the node: comments and layout are not the author's. ", copy(text, "the source")),
    listing(text),
    folded("Compiled, in base64", () => h("pre", { tabindex: 0 }, script)));
}
