// Views of a signer beside its queue: keys, rules with their lines, and the audit log.

import { h, redraw, show } from "./dom.js";
import { clean, duration, grouped, stranger, time, utc } from "./format.js";
import { copy, facts, section, table, whole } from "./parts.js";
import { get, may, post } from "./signer_ask.js";
import { ruleLink } from "./signer_queue.js";
import { turns } from "./turns.js";

/** @typedef {import("./json.js").Json} Json */

const LONGEST = 400;
const PAGE = 50;
const REFRESH_MS = 10_000;
const MAX_SHOWN = 500;

/** @param {unknown} error */
const words = (error) => clean(error instanceof Error ? error.message : String(error), LONGEST);

// --- keys ---------------------------------------------------------------------------------------

export async function keys() {
  const list = h("div", { id: "keys" });
  const said = h("p", { class: "bad", role: "alert" });
  /** @param {Json[]} found */
  const draw = (found) => redraw(list, table("Keys", ["Name", "State", "Address", "Public key", "Action"], found.slice(0, MAX_SHOWN).map((each) => [
    stranger(each.name, 64), stateOf(each), whole(each.address, "the address"), whole(each.publicKey, "the public key"),
    may("unlock") && !each.locked && !each.stored && h("button", { type: "button", "data-key": `lock ${each.name}`, onclick: () => act("keys/lock", { keys: [each.name] }) }, "Lock")]), "No keys."),
  found.length > MAX_SHOWN && h("p", { class: "soft" }, `The first ${MAX_SHOWN} of ${grouped(found.length)}.`));
  const turn = turns();
  const refresh = async () => {
    const isNews = turn();
    const found = await get("keys");
    if (isNews()) draw(found.keys);
  };
  /** @param {string} path @param {Json} body */
  const act = async (path, body) => {
    said.textContent = "";
    try {
      await post(path, body);
      if (may("list")) await refresh();
      return true;
    } catch (error) {
      said.textContent = words(error);
      return false;
    }
  };
  if (may("list")) await refresh();
  else show(list, h("p", { class: "empty" }, "This API key may not list the keys."));
  const timer = setInterval(() => may("list") && refresh().catch((error) => { said.textContent = words(error); }), REFRESH_MS);
  return { title: "Keys", node: h("article", null, section("Keys", list, said), may("unlock") && unlocking(act)), stop: () => clearInterval(timer) };
}

/** @param {Json} each */
function stateOf(each) {
  if (each.stored) return h("span", { class: "good" }, "in a store that signs");
  return each.locked ? h("span", { class: "soft" }, "locked") : h("span", { class: "good" }, `unlocked for ${duration(each.unlockedFor * 1_000)}`);
}

/** @param {(path: string, body: Json) => Promise<boolean>} act */
function unlocking(act) {
  const password = h("input", { id: "password", type: "password", autocomplete: "off", maxlength: 4_096, required: true });
  const name = h("input", { id: "key-name", autocomplete: "off", spellcheck: false, maxlength: 64, placeholder: "all that it opens" });
  const minutes = h("input", { id: "minutes", type: "number", min: 1, max: 527_040, value: 60, required: true });
  const form = h("form", { class: "asking", id: "unlock" },
    h("label", { for: "password" }, "Password of the key files"), password,
    h("label", { for: "key-name" }, "Key"), name,
    h("label", { for: "minutes" }, "Minutes"), minutes,
    h("div", { class: "row" }, h("button", { type: "submit" }, "Unlock"), h("button", { type: "button", onclick: () => act("keys/lock", {}) }, "Lock all")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = { password: password.value, seconds: Math.round(Number(minutes.value) * 60), ...(name.value.trim() ? { keys: [name.value.trim()] } : {}) };
    password.value = "";
    await act("keys/unlock", body);
  });
  return section("Unlock", h("p", { class: "soft" }, "Keys are locked at the start. The password lets them sign for a time, and goes to this signer alone."), form);
}

// --- rules --------------------------------------------------------------------------------------

/** @param {string} line which one to show */
export async function rules(line) {
  const found = await get("policy");
  const chosen = Number(line) || 0;
  const lines = found.source.split("\n");
  return { title: "Rules", node: h("article", null,
    facts([["File", h("code", null, clean(found.file, 200))], ["SHA-256", whole(found.hash, "the hash")],
      ["Active rules", `${grouped(found.rules.length)} rules; what none of them allows is refused`]]),
    section("Rules", table("Rules", ["Line", "Rule"], found.rules.map((/** @type {Json} */ each) => [
      h("a", { href: `#rules/${each.line}` }, String(each.line)), stranger(each.name, 64)]), "No rules: every request is refused.")),
    section("Policy file", h("pre", { class: "listing-lines", tabindex: 0, role: "region", "aria-label": "The file of rules" },
      lines.map((/** @type {string} */ text, /** @type {number} */ at) => h("span", { class: at + 1 === chosen && "chosen", "data-line": at + 1 },
        h("span", { class: "place", "aria-hidden": true }, String(at + 1)), clean(text, 1_000), "\n"))))) };
}

// --- audit --------------------------------------------------------------------------------------

export async function audit() {
  const first = await get(`audit?limit=${PAGE}`);
  /** @type {Json[]} */
  let lines = first.lines;
  const list = h("div", { id: "lines" });
  const state = h("div", { id: "verified", role: "status" });
  const said = h("p", { class: "bad", role: "alert" });
  const older = h("button", { type: "button" }, "Older entries");
  const draw = () => show(list, table("Audit log", ["#Line", "When", "Event", "Caller", "Key", "What", "Rule"], lines.map((each) => row(each, first.rulesSince))));
  let isAsking = false;
  const more = (/** @type {Json[]} */ found) => { older.hidden = found.length < PAGE || lines.length >= MAX_SHOWN; };
  older.addEventListener("click", async () => {
    if (isAsking) return;
    isAsking = true;
    said.textContent = "";
    try {
      const next = (await get(`audit?limit=${PAGE}&before=${lines[lines.length - 1].number}`)).lines;
      lines = [...lines, ...next];
      draw();
      more(next);
    } catch (error) {
      said.textContent = words(error);
    }
    isAsking = false;
  });
  const check = h("button", { type: "button", id: "verify" }, "Verify the whole log");
  check.addEventListener("click", async () => {
    check.disabled = true;
    said.textContent = "";
    show(state, h("p", null, "Verifying every entry…"));
    try {
      show(state, verified(await post("audit/verify")));
    } catch (error) {
      show(state);
      said.textContent = words(error);
    }
    check.disabled = false;
  });
  draw();
  more(lines);
  show(state, verified(first.verified));
  return { title: "Audit", node: h("article", null,
    facts([["Lines", grouped(first.head.number)], ["Hash of the last entry", whole(first.head.hash, "the hash")]]),
    section("Verification", h("p", { class: "soft" }, "Each line has the hash of the one before it: none can be changed, left out or put in unseen by who knows a later hash. Note that of the last line somewhere else now and then."), state, check, said),
    section("Last entries", list, h("p", null, older))) };
}

/** @param {Json} found */
function verified(found) {
  if (!found) return h("p", { class: "empty" }, "Not verified since the start.");
  if (!found.sound) return h("p", { class: "trouble" }, "The log was altered: ", h("strong", { class: "bad" }, clean(found.message, LONGEST)), " (checked ", time(found.at), ")");
  return h("p", null, h("strong", { class: "good" }, found.lines === 1 ? "1 line is as it was written" : `${grouped(found.lines)} lines are as they were written`),
    found.first > 1 && `, from line ${grouped(found.first)} on: older files are not there`, `; ${found.signatures === 1 ? "1 signature" : `${grouped(found.signatures)} signatures`}; checked `, time(found.at),
    "; the last of them has the hash ", h("code", { class: "stranger" }, found.head), " ", copy(found.head, "the hash"));
}

/** @param {Json} each @param {number} since the line from which on the present rules are in force */
function row(each, since) {
  const told = each.told.slice(0, 5);
  // Lines of a file that is not in force any more lead nowhere.
  const place = each.number >= since ? each.lines[0] ?? 0 : 0;
  return [String(each.number), h("time", { title: utc(each.at) }, utc(each.at)), h("strong", { class: KINDS[each.event] }, clean(each.event, 30)),
    each.caller && stranger(each.caller, 64), each.key && stranger(each.key, 64),
    h("div", { class: "words" }, each.reason && h("div", null, stranger(each.reason, LONGEST)), told.map((/** @type {string} */ text) => h("div", null, stranger(text, LONGEST))),
      !each.told.length && each.pending && h("div", { class: "soft" }, "request ", h("code", null, clean(each.pending, 40))),
      each.told.length > 5 && h("div", { class: "soft" }, `and ${each.told.length - 5} more`)),
    each.rule && ruleLink(each.rule, place)];
}

/** @type {Record<string, string>} */
const KINDS = { sign: "good", refuse: "bad", reject: "bad", "wrong-password": "bad" };
