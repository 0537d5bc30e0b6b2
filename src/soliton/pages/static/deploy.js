// An editor for scripts: words coloured while one writes, the compiler's word for it, and the way onto an
// account of a devnet.

import { h, show } from "./dom.js";
import { clean, grouped } from "./format.js";
import { NodeError, ask, getOr } from "./node.js";
import { accounts } from "./devnet.js";
import { refusal } from "./fault.js";
import { accountLink, idLink, place } from "./parts.js";
import { send, wallet } from "./send.js";
import { coloured } from "./source.js";

/** @typedef {import("./json.js").Json} Json */

const PAUSE_MS = 250;
/** The status of a node that has no room for a request now. */
const BUSY = 503;
const BUSY_MS = 1_000;
const EXAMPLE = `{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

@Callable(i)
func greet(name: String) = [StringEntry("greeting", "Hello, " + name)]
`;
/** What was written last, while the page is. */
let kept = "";

/** @param {string} address whose script is the beginning, if anybody's */
export async function deploy(address) {
  const known = await wallet();
  let text = kept || EXAMPLE;
  if (address) {
    const { script } = await getOr(`/addresses/scriptInfo/${encodeURIComponent(address)}`, { script: null });
    if (script) text = (await ask("/utils/script/decompile", { text: script })).value.script;
  }
  const behind = h("pre", { class: "behind", "aria-hidden": true });
  const area = h("textarea", { class: "editor", spellcheck: false, autocomplete: "off", autocapitalize: "off", wrap: "off", "aria-label": "Source of the script", "aria-describedby": "verdict" });
  const verdict = h("div", { id: "verdict", role: "status" });
  const outcome = h("div", { role: "status" });
  const who = h("input", { list: "accounts", required: true, value: address || known[1] || known[0] || "", "aria-label": "Account", autocomplete: "off", spellcheck: false, maxlength: 60, size: 36 });
  const put = h("button", { type: "submit", disabled: true }, "Deploy");
  /** @type {string | null} */
  let compiled = null;
  /** @type {number | undefined} */
  let timer;
  let number = 0;

  const paint = (/** @type {number} */ bad = 0) => {
    // The last line of a text area has room below it only if something stands there.
    show(behind, bad ? marked(area.value, bad) : coloured(area.value), "\n");
    behind.scrollTop = area.scrollTop;
    behind.scrollLeft = area.scrollLeft;
  };
  const check = async () => {
    const mine = (number += 1);
    let words;
    let bad = 0;
    let script = null;
    try {
      const { value } = await ask("/utils/script/compileCode", { text: area.value });
      script = value.script;
      words = h("p", { class: "good" }, `Compiled. Complexity ${grouped(value.complexity)}`, costs(value), ".");
    } catch (error) {
      if (error instanceof NodeError && error.status === BUSY) {
        // Whoever has left the view asks for nothing any more.
        if (mine !== number || !area.isConnected) return;
        show(verdict, h("p", { class: "soft" }, "The node is busy. Trying again…"));
        timer = window.setTimeout(check, BUSY_MS);
        return;
      }
      const message = error instanceof Error ? error.message : String(error);
      bad = Number(/^line (\d+)/.exec(message)?.[1] ?? 0);
      words = error instanceof NodeError && error.status === 0 ? refusal(error) : h("p", { class: "bad" }, clean(message, 600), bad > 0 && [" ", h("button", { type: "button", class: "copy", onclick: () => jump(bad) }, "Go to the error")]);
    }
    if (mine !== number) return;
    compiled = script;
    put.disabled = script === null;
    show(verdict, words);
    paint(bad);
  };
  const jump = (/** @type {number} */ line) => {
    const start = area.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.focus();
    area.setSelectionRange(start, start);
  };
  area.addEventListener("input", () => {
    kept = area.value;
    compiled = null;
    // What is being checked is not this text.
    number += 1;
    put.disabled = true;
    paint();
    clearTimeout(timer);
    timer = window.setTimeout(check, PAUSE_MS);
  });
  area.addEventListener("scroll", () => { behind.scrollTop = area.scrollTop; behind.scrollLeft = area.scrollLeft; });
  const form = h("form", { class: "row controls" }, h("label", null, h("span", null, "Account"), who), put);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (compiled === null) return;
    put.disabled = true;
    show(outcome, h("p", { class: "soft" }, "Sending…"));
    try {
      const address = who.value.trim();
      const id = await send({ type: 13, version: 2, script: compiled }, address);
      show(outcome, h("p", { class: "good" }, "Deployed on ", accountLink(address, true), " by ", idLink("tx", id), ". ",
        h("a", { href: place("call", address) }, "Call its functions")));
    } catch (error) {
      show(outcome, refusal(error));
    }
    put.disabled = compiled === null;
  });
  area.value = text;
  const node = h("article", null,
    h("h1", { tabindex: -1 }, "Write and deploy a script"),
    accounts(known),
    h("div", { class: "editing" }, behind, area),
    verdict, form, outcome);
  paint();
  check();
  return { title: "Deploy", node, stop: () => { clearTimeout(timer); number += 1; } };
}

/** @param {Json} value */
function costs(value) {
  const found = Object.entries(value.callableComplexities ?? {});
  return found.length ? ` (${found.map(([name, cost]) => `${clean(name, 40)} ${grouped(/** @type {number} */ (cost))}`).join(", ")})` : "";
}

/**
 * The text with one line marked.
 * @param {string} text
 * @param {number} bad
 */
function marked(text, bad) {
  const lines = text.split("\n");
  const at = Math.min(bad, lines.length) - 1;
  const before = lines.slice(0, at).join("\n") + (at > 0 ? "\n" : "");
  const after = (at < lines.length - 1 ? "\n" : "") + lines.slice(at + 1).join("\n");
  return [...coloured(before), h("mark", null, coloured(lines[at] || " ")), ...coloured(after)];
}
