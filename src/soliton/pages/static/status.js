// The view of the node itself: where it stands, who mines, its peers, features and votes, the reward.

import { h, redraw, show, svg } from "./dom.js";
import { aligned, clean, decimal, duration, grouped, stranger, time } from "./format.js";
import { isCurrent, live, watch } from "./live.js";
import { BASE, COIN, IS_FOREIGN, OBEYS, ask, get, getOr } from "./node.js";
import { accountLink, facts, later, section, table, trouble } from "./parts.js";
import { access } from "./send.js";
import { counted } from "./sentence.js";
import { turns } from "./turns.js";

/** @typedef {import("./json.js").Json} Json */

const MAX_DRAWN = 40;
const LOOKED_AT = 100;
/** Shorter times are told with a tenth of a second. */
const PRECISELY = 10_000;
const REFRESH_MS = 10_000;

export async function status() {
  const version = await get("/node/version");
  const height = h("span");
  const waiting = h("span", null, "–");
  const [beside, condition, last] = [h("span"), h("span"), h("span")];
  const turn = turns();
  const look = async () => {
    const isNews = turn();
    const [state, ready] = await Promise.all([get("/node/status"), getOr("/readyz", null)]);
    if (!isNews()) return;
    height.textContent = grouped(live.height || state.blockchainHeight);
    show(last, time(state.updatedTimestamp, true));
    if (!ready) return;
    const behind = ready.lag ?? 0;
    show(beside, behind > 0 ? `${counted(behind, "block")} behind the best peer` : "in sync: no peer is ahead");
    show(condition, ready.status === "ready" ? h("strong", { class: "good" }, "ready") : h("strong", { class: "bad" }, clean(`${ready.status}: ${(ready.reasons ?? []).join(", ")}`, 200)));
  };
  await look();
  const update = () => {
    if (live.height) height.textContent = grouped(live.height);
    waiting.textContent = isCurrent()
      ? `${counted(live.pool.size, "transaction")}, fees ${decimal(live.fees, COIN.decimals)} ${COIN.name}` : "–";
  };
  update();
  const own = ownTurns();
  const parts = [renewed(generators), renewed(peers)];
  const node = h("article", null,
    h("h1", { tabindex: -1 }, "Node"),
    facts([
      ["Address", h("code", null, clean(BASE, 200))],
      ["Version", clean(version.version, 80)],
      ["Height", height],
      condition.firstChild && ["Compared with peers", beside],
      condition.firstChild && ["Health", condition],
      ["Last block", last],
      ["Unconfirmed", waiting],
    ]),
    section("Mining",
      h("p", { class: "soft" }, "With VRF, only the holder of a private key can tell when that account may mine. With its API key, this node shows when its own accounts may mine the next block; ",
        "for others, the table shows their share of the last blocks."),
      own.node, parts[0].node),
    section("Peers", parts[1].node),
    section("Reward", later(reward)),
    section("Features", later(features)));
  const timer = setInterval(() => {
    for (const each of [{ look }, own, ...parts]) each.look().catch(() => undefined);
  }, REFRESH_MS);
  const unwatch = watch(update);
  return { title: "Node", node, stop: () => { clearInterval(timer); unwatch(); } };
}

/**
 * Content that is asked for again from time to time.
 * @param {() => Promise<import("./dom.js").Children>} make
 */
function renewed(make) {
  const turn = turns();
  const node = h("div", { class: "later" }, later(make));
  return { node, look: async () => {
    const isNews = turn();
    const content = await make();
    if (isNews()) redraw(node, content);
  } };
}

/** When this node's own accounts may make the next block, for who has the key. */
function ownTurns() {
  const node = h("div", { class: "later" });
  let key = OBEYS ? access.key : "";
  const turn = turns();
  const look = async () => {
    if (!key) return;
    const isNews = turn();
    const content = await turnsOf(key);
    if (isNews()) redraw(node, content);
  };
  if (OBEYS) node.append(later(() => turnsOf(key)));
  else if (!IS_FOREIGN) {
    node.append(keyForm(async (given) => {
      const content = await turnsOf(given);
      key = given;
      redraw(node, content);
    }));
  }
  return { node, look };
}

/** Generators of the last blocks. */
async function generators() {
  const { height } = await get("/blocks/height");
  /** @type {Json[]} */
  const headers = await get(`/blocks/headers/seq/${Math.max(2, height - LOOKED_AT + 1)}/${Math.max(2, height)}`);
  const words = headers.length > 1 ? spaced((headers[headers.length - 1].timestamp - headers[0].timestamp) / (headers.length - 1)) : null;
  /** @type {Map<string, number>} */
  const made = new Map();
  for (const each of headers) made.set(each.generator, (made.get(each.generator) ?? 0) + 1);
  const often = [...made].sort(([, a], [, b]) => b - a);
  return [
    table("Generators of the last blocks", ["Generator", "#Blocks", "#Share"], often.slice(0, 20).map(([address, count]) => [
      accountLink(address), String(count), `${Math.round((100 * count) / headers.length)} %`]), "No blocks yet."),
    words && h("p", { class: "soft" }, `Of the last ${counted(headers.length, "block")}; average block time ${words}.`),
  ];
}

/** @param {number} milliseconds between blocks */
function spaced(milliseconds) {
  return milliseconds < PRECISELY ? `${(milliseconds / 1_000).toFixed(1)} s` : duration(milliseconds);
}

/** @param {Json} each an account of this node, with or without its commitments */
const has = (each) => "committedToNext" in each;

/** @param {Json} each an account of this node */
function committed(each) {
  const now = each.committedUntil ? `until block ${grouped(each.committedUntil)}` : "not to this period";
  return `${now}, ${each.committedToNext ? "and to the next period" : "not to the next period"}`;
}

/** @param {string} key */
async function turnsOf(key) {
  const { value } = await ask("/debug/minerInfo", { key });
  const mode = OBEYS ? (await getOr("/devnet", null))?.mining : null;
  const sorted = [...value].sort((a, b) => a.timestamp - b.timestamp);
  return [
    ...(mode ? [h("p", null, mode.mode === "manual" ? "This devnet mines on request."
      : mode.mode === "instant" ? `This devnet mines a block per transaction${mode.seconds ? `, and one after ${mode.seconds} s without any` : ""}.`
        : `This devnet mines a block every ${mode.seconds} s.`)] : []),
    table("Next blocks of this node's accounts", ["Account", "May mine", `#${COIN.name}`, ...(sorted.some(has) ? ["Committed"] : [])], sorted.slice(0, 20).map((/** @type {Json} */ each) => [
      accountLink(each.address), time(each.timestamp), aligned(each.miningBalance, COIN.decimals), ...(has(each) ? [committed(each)] : [])]), "None of this node's accounts may mine the next block."),
  ];
}

/** @param {(key: string) => Promise<void>} use */
function keyForm(use) {
  const field = h("input", { type: "password", autocomplete: "off", maxlength: 200, required: true });
  const outcome = h("div");
  const form = h("form", { class: "row controls" }, h("label", null, h("span", null, "API key, to see when this node's accounts may mine"), field), h("button", { type: "submit" }, "Show"), outcome);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    use(field.value).catch((error) => show(outcome, trouble(error)));
  });
  return form;
}

async function peers() {
  const { peers: found } = await getOr("/peers/connected", { peers: [] });
  if (!found.length) return h("p", { class: "empty" }, "No connected peers.");
  return [
    graph(found.slice(0, MAX_DRAWN)),
    table("Connected peers", ["Address", "Name", "Program", "Version"], found.slice(0, 200).map((/** @type {Json} */ each) => [
      h("code", null, clean(each.address, 60)), stranger(each.peerName, 40), stranger(each.applicationName, 40), clean(each.applicationVersion, 20)])),
  ];
}

/** @param {Json[]} found */
function graph(found) {
  const [width, middle, radius] = [640, 110, 84];
  const points = found.map((_, at) => {
    const angle = (2 * Math.PI * at) / found.length - Math.PI / 2;
    return [width / 2 + 2.6 * radius * Math.cos(angle), middle + radius * Math.sin(angle)];
  });
  return svg("svg", { viewBox: `0 0 ${width} ${2 * middle}`, class: "graph", role: "img", "aria-label": `The node and ${counted(found.length, "peer")}` },
    points.map(([x, y]) => svg("line", { x1: width / 2, y1: middle, x2: x, y2: y })),
    points.map(([x, y], at) => [svg("circle", { cx: x, cy: y, r: 6 }),
      found.length <= 12 && svg("text", { x, y: y < middle ? y - 12 : y + 20, "text-anchor": "middle" }, clean(found[at].peerName, 16))]),
    svg("circle", { cx: width / 2, cy: middle, r: 10, class: "own" }));
}

async function reward() {
  const found = await getOr("/blockchain/rewards", null);
  if (!found) return h("p", { class: "empty" }, "This chain has no block reward.");
  return facts([
    ["Block reward", `${decimal(found.currentReward, COIN.decimals)} ${COIN.name}`],
    ["Total supply", `${decimal(found.totalWavesAmount ?? found.totalAmount ?? 0, COIN.decimals)} ${COIN.name}`],
    ["Vote", `${counted(found.votes?.increase ?? 0, "vote")} to increase, ${counted(found.votes?.decrease ?? 0, "vote")} to decrease; threshold ${found.votingThreshold}`],
    ["Next vote count", `at height ${grouped(found.nextCheck)}`],
  ]);
}

async function features() {
  const found = await getOr("/activation/status", null);
  if (!found) return h("p", { class: "empty" }, "Not available on this node.");
  return [
    h("p", { class: "soft" }, `Votes are counted every ${grouped(found.votingInterval)} blocks, next at height ${grouped(found.nextCheck)}; threshold ${grouped(found.votingThreshold)} blocks.`),
    table("Features", ["No.", "Feature", "State"], found.features.map((/** @type {Json} */ each) => [
      String(each.id), stranger(each.description, 80), [stateOf(each), " ", voteOf(each)]])),
  ];
}

/** @param {Json} feature how far it is on the chain */
function stateOf({ blockchainStatus, activationHeight, supportingBlocks }) {
  if (blockchainStatus === "ACTIVATED") return activationHeight > 1 ? `active since height ${grouped(activationHeight)}` : "active from the start";
  if (blockchainStatus === "APPROVED") return `approved, active from height ${grouped(activationHeight)}`;
  if (activationHeight !== undefined) return `active from height ${grouped(activationHeight)}`;
  return counted(supportingBlocks ?? 0, "vote");
}

/** @param {Json} feature what this node has to do with it; nothing where that goes without saying */
function voteOf({ nodeStatus }) {
  if (nodeStatus === "NOT_IMPLEMENTED") return h("strong", { class: "bad" }, "not implemented by this node");
  return nodeStatus === "VOTED" && h("span", { class: "soft" }, "this node votes for it");
}
