// The signer's page: logging in, its parts by fragment, and the form of `POST /data`.

import { at, h, show } from "./dom.js";
import { clean, stranger, tick } from "./format.js";
import { logIn, logOut, SignerError, who } from "./signer_ask.js";
import { queue } from "./signer_queue.js";
import { audit, keys, rules } from "./signer_views.js";

/** @typedef {{title: string, node: Node, stop?: () => void}} View */

/** @type {Record<string, (rest: string) => View | Promise<View>>} */
const VIEWS = { queue, keys, rules, audit };
const KEEPS = document.documentElement.dataset.keeps === "yes";
const TICK_MS = 1_000;

/** @type {(() => void) | undefined} */
let stop;
let number = 0;

/** @param {boolean} isFirst */
async function route(isFirst) {
  const [named, ...rest] = location.hash.slice(1).split("/");
  if (named === "main") return;
  const name = KEEPS ? named || "queue" : "write";
  const mine = (number += 1);
  stop?.();
  stop = undefined;
  markPlace(name);
  at("write").hidden = name !== "write";
  if (name === "write") {
    at("view").removeAttribute("aria-busy");
    show(at("view"));
    at("title").textContent = KEEPS ? "Write data" : "Signer";
    document.title = document.title.replace(/^.* · /, KEEPS ? "Write data · " : "Signer · ");
  } else {
    at("view").setAttribute("aria-busy", "true");
    const made = await viewOf(name, rest.join("/"));
    if (mine !== number) return made.stop?.();
    at("view").removeAttribute("aria-busy");
    stop = made.stop;
    show(at("view"), made.node);
    at("title").textContent = made.title;
    document.title = document.title.replace(/^.* · /, `${made.title} · `);
  }
  if (!isFirst) at("title").focus({ preventScroll: true });
  at("view").querySelector(".chosen")?.scrollIntoView({ block: "center" });
}

/** @param {string} name @param {string} rest @returns {Promise<View>} */
async function viewOf(name, rest) {
  if (!who()) return { title: "Signer", node: logInForm() };
  const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : null;
  if (!view) return { title: "Nothing here", node: h("p", null, "This page has no such view.") };
  try {
    return await view(rest);
  } catch (error) {
    const title = error instanceof SignerError && error.isStranger ? "Not allowed with this API key" : "Something went wrong";
    return { title, node: h("div", { class: "trouble", role: "alert" },
      h("p", null, clean(error instanceof Error ? error.message : String(error), 400)),
      h("p", null, h("button", { type: "button", onclick: () => route(false) }, "Try again"))) };
  }
}

/** @param {string} name */
function markPlace(name) {
  for (const link of document.querySelectorAll("#parts a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function logInForm() {
  const key = h("input", { id: "api-key", type: "password", autocomplete: "off", spellcheck: false, maxlength: 1_024, required: true });
  const outcome = h("p", { class: "bad", role: "alert" });
  const button = h("button", { type: "submit" }, "Log in");
  const form = h("form", { class: "asking", id: "log-in" },
    h("label", { for: "api-key" }, "API key of a caller"), key,
    h("div", { class: "row" }, button), outcome);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    outcome.textContent = "";
    try {
      await logIn(key.value.trim());
      showWho();
      await route(false);
    } catch (error) {
      button.disabled = false;
      outcome.textContent = clean(error instanceof Error ? error.message : String(error), 400);
      key.focus();
    }
    key.value = "";
  });
  return h("section", null, h("h2", null, "Log in"),
    h("p", { class: "soft" }, "This signer keeps keys. What you may see and decide follows from your API key, which is kept in memory until you leave the page, and nowhere else."), form);
}

function showWho() {
  at("parts").hidden = !KEEPS;
  show(at("who"), who() && [h("span", { class: "soft" }, "as ", stranger(who(), 64)),
    h("button", { type: "button", id: "log-out", class: "copy", onclick: () => { logOut(); showWho(); route(false); } }, "Log out")]);
}

/** Sends the form to POST /data and shows the answer as it came. The seed stays in the page. @param {SubmitEvent} event */
async function writeData(event) {
  event.preventDefault();
  const [state, answer] = [at("status"), at("answer")];
  const button = /** @type {HTMLButtonElement} */ (event.submitter ?? at("form").querySelector("button"));
  answer.hidden = true;
  button.disabled = true;
  state.textContent = "…";
  try {
    // The text of the data goes as it was written: JavaScript would round integers above 2^53.
    const seed = JSON.stringify(/** @type {HTMLInputElement} */ (at("seed")).value);
    const response = await fetch("data", {
      method: "POST",
      headers: { Accept: "application/json", "Content-Type": "application/json" },
      body: `{"seed":${seed},"data":${/** @type {HTMLTextAreaElement} */ (at("data")).value}}`,
    });
    state.textContent = `${response.status} ${response.statusText}`;
    answer.textContent = pretty(await response.text());
    answer.hidden = false;
  } catch (error) {
    state.textContent = String(error);
  } finally {
    button.disabled = false;
  }
}

/** Line breaks only; parsing would round large integers here as well. @param {string} text */
function pretty(text) {
  return /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2);
}

at("form").addEventListener("submit", (event) => { writeData(/** @type {SubmitEvent} */ (event)); });
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  at("main").focus();
});
addEventListener("hashchange", () => { route(false); });
setInterval(tick, TICK_MS);
showWho();
route(true);
