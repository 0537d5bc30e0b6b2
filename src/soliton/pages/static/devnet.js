// The controls of a devnet: blocks, time, snapshots, money, whose proofs are asked for.

import { h, redraw, show } from "./dom.js";
import { clean, decimal, duration, now, time, units, utc } from "./format.js";
import { live, watch } from "./live.js";
import { COIN, ask, get, post } from "./node.js";
import { accountLink, blockLink, pause, section, table } from "./parts.js";
import { access, wallet } from "./send.js";
import { counted } from "./sentence.js";
import { turns } from "./turns.js";

/** @typedef {import("./json.js").Json} Json */

const LOGGED = 50;
const MS = 1_000;
/** @type {{at: number, words: string, isBad: boolean}[]} the newest first; kept while the page is */
const log = [];

export async function devnet() {
  const state = h("dl", { class: "figures" });
  const snapshots = h("div");
  const impersonated = h("div");
  const logged = h("ol", { class: "feed", "aria-live": "polite" });

  const none = h("p", { class: "empty" }, "Nothing yet.");
  const showLog = () => {
    none.hidden = log.length > 0;
    show(logged, log.map((each) => h("li", null,
      h("span", { class: "kind" }, time(each.at)), h("span", { class: each.isBad ? "words bad" : "words" }, each.words))));
  };
  const note = (/** @type {string} */ words, isBad = false) => {
    log.unshift({ at: now(), words, isBad });
    log.length = Math.min(log.length, LOGGED);
    showLog();
  };
  const turn = turns();
  const refresh = async () => {
    const isNews = turn();
    const found = await get("/devnet");
    if (!isNews()) return;
    show(state, Object.entries({
      Height: String(found.height),
      "Chain time": [utc(found.time), found.clock.frozen !== undefined && found.clock.frozen !== null && " (frozen)"],
      Mining: miningWords(found.mining),
      "State edits": found.changedByHand === null ? "never" : `from height ${found.changedByHand} on`,
    }).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
    redraw(snapshots, table("Snapshots", ["Snapshot", "Height", "Chain time", "Actions"], found.snapshots.map((/** @type {Json} */ each) => [
      each.id, blockLink(each.height), utc(each.time),
      [button("Revert to it", () => act(`reverted to snapshot ${each.id}`, `/devnet/snapshots/${each.id}/revert`), `revert ${each.id}`), " ",
        button("Delete", () => act(`deleted snapshot ${each.id}`, `/devnet/snapshots/${each.id}`, "DELETE"), `drop ${each.id}`)],
    ]), "No snapshots yet."));
    redraw(impersonated, found.impersonated.length
      ? h("ul", { class: "plain" }, found.impersonated.map((/** @type {string} */ each) => h("li", null, accountLink(each, true), " ",
        button("Stop impersonating", () => act(`stopped impersonating ${each}`, `/devnet/impersonated/${each}`, "DELETE"), each))))
      : h("p", { class: "empty" }, "No account is impersonated."));
  };
  const tried = async (/** @type {string} */ words, /** @type {() => Promise<unknown>} */ work) => {
    try {
      const more = await work();
      note(words + (typeof more === "string" ? more : ""));
    } catch (error) {
      note(clean(error instanceof Error ? error.message : error, 300), true);
    }
    await refresh().catch((error) => note(String(error.message), true));
  };
  const act = (/** @type {string} */ words, /** @type {string} */ path, method = "POST") => tried(words, async () => {
    const { value } = await ask(path, { method });
    return value?.done === false ? ": there was nothing to do" : "";
  });

  await refresh();
  const known = await wallet();
  let height = live.height;
  const stop = watch(() => {
    if (live.height === height) return;
    height = live.height;
    refresh().catch(() => undefined);
  });
  showLog();
  const node = h("article", null,
    h("h1", { tabindex: -1 }, "Devnet"),
    accounts(known),
    state,
    h("div", { class: "columns" },
      section("Blocks",
        form("Mine", [number("blocks", "Blocks", 1), number("interval", "Interval, ms", 0)], (values) => {
          const query = values.interval === "0" ? "" : `&interval=${values.interval}`;
          return act(`mined ${counted(Number(values.blocks), "block")}`, `/devnet/mine?blocks=${values.blocks}${query}`);
        }),
        form("Change", [choice("mode", "Mining mode", [["instant", "per transaction"], ["interval", "at an interval"], ["manual", "on request"]]), number("every", "Interval, seconds", 10)],
          (values) => act(`mining mode: ${values.mode}`, `/devnet/mining?mode=${values.mode}&every=${Math.round(Number(values.every) * MS)}`))),
      section("Time",
        form("Travel", [number("much", "Forward by", 1), choice("unit", "Unit", [[3_600_000, "hours"], [86_400_000, "days"], [60_000, "minutes"], [1_000, "seconds"]])], (values) => {
          const travel = Number(values.much) * Number(values.unit);
          return act(`travelled ${duration(travel)}`, `/devnet/clock?travel=${travel}`);
        }),
        h("p", { class: "row" },
          button("Freeze the clock", () => act("froze the clock", "/devnet/clock?frozen=true")),
          button("Resume the clock", () => act("resumed the clock", "/devnet/clock?frozen=false")))),
      section("Snapshots",
        h("p", null, button("Take a snapshot", () => tried("took snapshot ", async () => (await ask("/devnet/snapshots", { method: "POST" })).value.id))), snapshots),
      section("Funds",
        form("Fund", [account("address", "Account"), { name: "amount", label: `${COIN.name} to add`, input: h("input", { name: "amount", value: "1000", inputmode: "decimal", required: true, size: 12, maxlength: 30 }) }], (values) => {
          const more = units(values.amount, COIN.decimals);
          if (more === null) return tried("", async () => { throw new Error(`${clean(values.amount, 40)} is no amount.`); });
          return tried(`gave ${decimal(more, COIN.decimals)} ${COIN.name} to ${values.address}`, async () => {
            const { regular } = await get(`/addresses/balance/details/${encodeURIComponent(values.address)}`);
            await post("/devnet/edits", { edits: [{ kind: "balance", address: values.address, amount: BigInt(regular) + more }] });
          });
        })),
      section("Impersonation",
        form("Impersonate", [account("address", "Account")], (values) =>
          act(`impersonates ${values.address}`, `/devnet/impersonated/${encodeURIComponent(values.address)}`)), impersonated),
      section("More",
        h("p", null, h("a", { href: "#deploy" }, "Write and deploy a script")),
        h("p", { class: "row" }, h("a", { href: "/devnet/state", download: "chain.state" }, "Download the chain"),
          twice("Reset the chain", "Really reset the chain?", () => act("reset the chain", "/devnet/reset"))),
        form("Use", [{ name: "key", label: "API key, for the node's wallet", input: h("input", { name: "key", value: access.key, autocomplete: "off", spellcheck: false, maxlength: 200 }) }],
          async (values) => { access.key = values.key; note("changed the API key"); }))),
    section("Activity", none, logged));
  return { title: "Devnet", node, stop };
}

/** @param {Json} mining */
function miningWords(mining) {
  if (mining.mode === "manual") return "on request";
  if (mining.mode === "interval") return `every ${mining.seconds} s`;
  return `per transaction${mining.seconds ? `, and after ${mining.seconds} s` : ""}`;
}

/**
 * @typedef {{name: string, label: string, input: HTMLInputElement | HTMLSelectElement}} Field
 */

/**
 * @param {string} action
 * @param {Field[]} fields
 * @param {(values: Record<string, string>) => Promise<unknown>} work
 */
function form(action, fields, work) {
  const submit = h("button", { type: "submit" }, action);
  const made = h("form", { class: "row controls" }, fields.map((field) => h("label", null, h("span", null, field.label), field.input)), submit);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    await work(Object.fromEntries(fields.map((field) => [field.name, field.input.value.trim()])));
    submit.disabled = false;
  });
  return made;
}

/**
 * @param {string} name
 * @param {string} label
 * @param {number} value
 * @returns {Field}
 */
function number(name, label, value) {
  return { name, label, input: h("input", { name, type: "number", min: value === 0 ? 0 : 1, value, required: true, inputmode: "numeric" }) };
}

/**
 * @param {string} name
 * @param {string} label
 * @param {[string | number, string][]} options the first one is chosen
 * @returns {Field}
 */
function choice(name, label, options) {
  return { name, label, input: h("select", { name }, options.map(([value, words]) => h("option", { value }, words))) };
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} [value]
 * @returns {Field}
 */
export function account(name, label, value = "") {
  return { name, label, input: h("input", { name, list: "accounts", required: true, value, autocomplete: "off", spellcheck: false, maxlength: 60, size: 36 }) };
}

/**
 * What fields for accounts suggest.
 * @param {string[]} addresses
 */
export function accounts(addresses) {
  return h("datalist", { id: "accounts" }, addresses.map((each) => h("option", { value: each })));
}

/**
 * @param {string} words
 * @param {() => unknown} work
 * @param {string} [key] of a button that is drawn again
 */
function button(words, work, key) {
  const made = h("button", { type: "button", "data-key": key }, words);
  made.addEventListener("click", async () => {
    made.disabled = true;
    await work();
    made.disabled = false;
  });
  return made;
}

/**
 * A button that asks once more.
 * @param {string} words
 * @param {string} question
 * @param {() => unknown} work
 */
function twice(words, question, work) {
  const made = h("button", { type: "button" }, words);
  made.addEventListener("click", async () => {
    if (made.textContent !== question) {
      made.textContent = question;
      pause(made, () => { made.textContent = words; });
      return;
    }
    made.textContent = words;
    await work();
  });
  made.addEventListener("blur", () => { if (!made.disabled) made.textContent = words; });
  return made;
}

