// The queue of a signer: what waits for approval, what it comes to, and the decision.

import { h, redraw, show, svg } from "./dom.js";
import { clean, now, stranger, time } from "./format.js";
import { copy, later, pause, table } from "./parts.js";
import { SignerError, get, may, post, who } from "./signer_ask.js";
import { turns } from "./turns.js";

/** @typedef {import("./json.js").Json} Json */

const REFRESH_MS = 4_000;
const TOLD = 20;
const CARDS = 50;
const DECIDED = 100;
const LONGEST = 400;
const NODE = document.documentElement.dataset.node ?? "";

/** @param {string} text a sentence of the signer, which may hold words of strangers */
const sentence = (text) => h("bdi", { class: "stranger" }, clean(text, LONGEST));

export async function queue() {
  const waiting = h("div", { id: "waiting" });
  const more = h("p", { class: "soft" });
  const decided = h("div", { id: "decided" });
  const trouble = h("p", { class: "bad", role: "status" });
  /** @type {Map<string, {mark: string, node: Node}>} */
  let cards = new Map();
  const turn = turns();
  const refresh = async () => {
    const isNews = turn();
    const { pending } = await get("pending");
    if (!isNews()) return;
    const [open, closed] = [true, false].map((is) => pending.filter((/** @type {Json} */ each) => (each.state === "waiting") === is));
    /** @type {typeof cards} */
    const next = new Map();
    for (const each of open.slice(0, CARDS)) {
      const mark = each.approved.join(" ");
      const before = cards.get(each.pending);
      next.set(each.pending, before && before.mark === mark ? before : { mark, node: card(each, refresh) });
    }
    // What stays as it is keeps the focus, and what somebody has opened.
    if (!cards.size || [...next].some(([id, { node }]) => cards.get(id)?.node !== node) || next.size !== cards.size) {
      show(waiting, next.size ? [...next.values()].map(({ node }) => node) : h("section", null, h("p", { class: "empty" }, "No requests wait for approval.")));
    }
    cards = next;
    more.textContent = open.length > CARDS ? `${open.length - CARDS} more wait behind these.` : "";
    redraw(decided, closed.length > 0 && h("section", null, h("h2", null, "Recent decisions"), decidedTable(closed.reverse().slice(0, DECIDED))));
    trouble.textContent = "";
  };
  await refresh();
  const timer = setInterval(() => refresh().catch((error) => { trouble.textContent = clean(error.message, LONGEST); }), REFRESH_MS);
  return { title: "Queue", node: h("article", null, trouble, waiting, more, decided), stop: () => clearInterval(timer) };
}

/** @param {Json[]} rows */
function decidedTable(rows) {
  return table("Recent decisions", ["State", "What", "Requested by", "Approved by", "Asked"], rows.map((each) => [
    h("span", { class: each.state === "signed" ? "good" : "bad" }, each.state + (each.refusedBy ? ` by ${clean(each.refusedBy, 64)}` : "")),
    h("div", { class: "words" }, sentences(each), outcome(each)),
    stranger(each.caller, 64), each.approved.map((/** @type {string} */ name) => [stranger(name, 64), " "]), time(each.askedAt)]));
}

/** @param {Json} each */
function sentences(each) {
  const [first, ...others] = each.told.slice(0, TOLD);
  if (!others.length) return h("p", { class: "single" }, sentence(first));
  const more = each.told.length - TOLD;
  return [h("ol", null, [first, ...others].map((told) => h("li", null, sentence(told)))),
    more > 0 && h("p", { class: "soft" }, `and ${more} more`)];
}

/** What became of it behind the decision. @param {Json} each */
function outcome(each) {
  if (each.state !== "signed") return null;
  const sent = each.broadcast;
  return h("p", { class: "soft" },
    sent?.error !== undefined ? h("span", { class: "bad" }, `not broadcast: ${clean(sent.message, LONGEST)} `) : sent ? "broadcast " : "",
    each.ids.slice(0, TOLD).map((/** @type {string} */ id) => (NODE && sent
      ? h("a", { class: "id", "data-key": id, href: `${NODE}/#tx/${encodeURIComponent(id)}` }, `${id} `)
      : h("code", null, `${id} `))));
}

/** @param {Json} summary @param {() => Promise<void>} refresh */
function card(summary, refresh) {
  const id = summary.pending;
  const said = h("p", { role: "status" });
  const ends = now() + summary.expiresIn;
  const node = h("section", { class: "waiting", "data-pending": id },
    h("h2", null, h("span", null, `${summary.approved.length} of ${summary.needed} approvals`),
      h("span", { class: "soft" }, "requested ", time(summary.askedAt), ", expires ", time(ends))),
    h("p", null, stranger(summary.caller, 64), " asks to sign with the key ", stranger(summary.key, 64),
      summary.approved.length > 0 && [", approved by ", summary.approved.map((/** @type {string} */ name) => [stranger(name, 64), " "])]),
    sentences(summary),
    later(async () => details(await get(`pending/${encodeURIComponent(id)}`)), "Loading totals…"),
    h("h3", null, "Simulation by the node"),
    later(async () => simulated((await get(`pending/${encodeURIComponent(id)}/simulation`)).simulated, summary.told.length), "Simulating…"),
    h("p", { class: "soft" }, "Request ", h("code", null, id), " ", copy(id, "the id")),
    decision(summary, said, refresh), said);
  return node;
}

/** @param {Json} found */
function details(found) {
  return [
    h("h3", null, "Total"),
    found.totals?.length ? table(`Sums of ${found.pending}`, ["Asset", "#Units", "#Units of fees", "Summary"], found.totals.map((/** @type {Json} */ each) => [
      h("code", null, clean(each.asset ?? "", 60)), String(each.amount ?? ""), String(each.fee ?? ""), sentence(each.told)]))
      : h("p", { class: "empty" }, "No outgoing amounts."),
    found.refusal
      ? h("p", { class: "trouble" }, "The rules would reject it now: ", sentence(found.refusal.message), " ", ruleLink(found.refusal.rule, found.refusal.line))
      : [h("h3", null, "Limits, before and after"),
        found.windows?.length ? found.windows.map(windowBar) : h("p", { class: "empty" }, "No limit applies."),
        h("h3", null, "Rule"), h("p", null, distinct(found.decided ?? []).map(([rule, line]) => [ruleLink(rule, line), " "]))],
    h("p", { class: "soft" }, "Approvers: ", (found.approvers ?? []).map((/** @type {string} */ name) => [stranger(name, 64), " "])),
  ];
}

/** @param {Json[]} decided @returns {[string, number][]} */
function distinct(decided) {
  return [...new Map(decided.map((each) => [each.rule, each.line]))];
}

/** A rule and where it stands. @param {string} rule @param {number} line */
export function ruleLink(rule, line) {
  if (!rule) return null;
  const words = ["rule ", stranger(rule, 64), line ? `, line ${line}` : ""];
  return line ? h("a", { href: `#rules/${line}`, class: "rule" }, words) : h("span", null, words);
}

/** @param {Json} each */
function windowBar(each) {
  const share = (/** @type {Json} */ amount) => Math.min(100, (100 * Number(amount)) / Math.max(1, Number(each.most)));
  return h("div", { class: "window" },
    svg("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", role: "img", "aria-label": `${Math.round(share(each.after))} per cent of the window after it` },
      svg("rect", { class: "more", width: share(each.after), height: 1 }), svg("rect", { class: "before", width: share(each.before), height: 1 })),
    h("div", null, sentence(each.told), " ", ruleLink(each.rule, each.line)));
}

/** @param {Json[]} found @param {number} all */
function simulated(found, all) {
  return [found.map((each) => [
    each.valid === false && h("p", { class: "bad" }, "The transaction would fail."),
    each.told.length ? h("ul", null, each.told.map((/** @type {string} */ told) => h("li", null, sentence(told)))) : h("p", { class: "empty" }, "No state changes.")]),
  all > found.length && h("p", { class: "soft" }, `The first ${found.length} of ${all}.`),
  all > 1 && h("p", { class: "soft" }, "Each transaction is simulated on its own, on the current state.")];
}

/** @param {Json} summary @param {HTMLElement} said @param {() => Promise<void>} refresh */
function decision(summary, said, refresh) {
  if (!may("approve") || summary.caller === who()) return h("p", { class: "soft" }, "You are not an approver of this request.");
  if (summary.approved.includes(who())) said.textContent = "You approved it.";
  const place = h("div", { class: "row decision" });
  const act = async (/** @type {string} */ verb) => {
    for (const each of place.querySelectorAll("button")) each.disabled = true;
    said.className = "";
    said.textContent = "…";
    try {
      const told = await post(`pending/${encodeURIComponent(summary.pending)}/${verb}`);
      said.textContent = told.state === "waiting" ? "Approved; more approvals are needed." : `The request is ${told.state}.`;
    } catch (error) {
      said.className = "bad";
      said.textContent = clean(error instanceof SignerError ? error.message : String(error), LONGEST);
      offer();
      return;
    }
    await refresh().catch(() => undefined);
  };
  const approve = h("button", { type: "button", class: "approve", onclick: () => act("approve") }, "Approve");
  const refuse = h("button", { type: "button", class: "refuse", onclick: () => sure() }, "Refuse…");
  const offer = () => {
    for (const each of [approve, refuse]) each.disabled = false;
    show(place, approve, refuse);
  };
  const sure = () => {
    const yes = h("button", { type: "button", class: "refuse", onclick: () => act("refuse") }, "Refuse");
    show(place, h("span", null, "A refusal is final."), yes, h("button", { type: "button", onclick: () => { offer(); refuse.focus(); } }, "Cancel"));
    pause(yes);
  };
  offer();
  return place;
}
