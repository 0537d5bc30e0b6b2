// The view of the node itself: where it stands, its peers, features and their votes, the reward.

import { h, svg } from "./dom.js";
import { clean, decimal, grouped, stranger, time } from "./format.js";
import { live, watch } from "./live.js";
import { BASE, COIN, get, getOr } from "./node.js";
import { facts, later, section, table } from "./parts.js";
import { counted } from "./sentence.js";

/** @typedef {import("./json.js").Json} Json */

const MAX_DRAWN = 40;

export async function status() {
  const [state, version, ready] = await Promise.all([
    get("/node/status"), get("/node/version"), getOr("/readyz", null)]);
  const height = h("span", null, grouped(state.blockchainHeight));
  const waiting = h("span", null, "–");
  const update = () => {
    if (live.height) height.textContent = grouped(live.height);
    waiting.textContent = live.state === "live"
      ? `${counted(live.pool.size, "transaction")}, fees ${decimal(live.fees, COIN.decimals)} ${COIN.name}` : "–";
  };
  update();
  const behind = ready?.lag ?? 0;
  const node = h("article", null,
    h("h1", { tabindex: -1 }, "Node"),
    facts([
      ["Address", h("code", null, clean(BASE, 200))],
      ["Version", clean(version.version, 80)],
      ["Height", height],
      ready && ["Beside its peers", behind > 0 ? `${counted(behind, "block")} behind the best peer` : "no peer is ahead"],
      ready && ["Condition", ready.status === "ready" ? h("strong", { class: "good" }, "ready") : h("strong", { class: "bad" }, clean(`${ready.status}: ${(ready.reasons ?? []).join(", ")}`, 200))],
      ["Last block", time(state.updatedTimestamp, true)],
      ["Waiting", waiting],
    ]),
    section("Peers", later(peers)),
    section("Reward", later(reward)),
    section("Features", later(features)));
  return { title: "Node", node, stop: watch(update) };
}

async function peers() {
  const { peers: found } = await getOr("/peers/connected", { peers: [] });
  if (!found.length) return h("p", { class: "empty" }, "The node talks to nobody: it is alone, or a devnet.");
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
      found.length <= 12 && svg("text", { x, y: y + 18, "text-anchor": "middle" }, clean(found[at].peerName, 16))]),
    svg("circle", { cx: width / 2, cy: middle, r: 10, class: "own" }));
}

async function reward() {
  const found = await getOr("/blockchain/rewards", null);
  if (!found) return h("p", { class: "empty" }, "This chain has no block reward.");
  return facts([
    ["Now", `${decimal(found.currentReward, COIN.decimals)} ${COIN.name} for a block`],
    ["There are", `${decimal(found.totalWavesAmount ?? found.totalAmount ?? 0, COIN.decimals)} ${COIN.name}`],
    ["Vote", `${counted(found.votes?.increase ?? 0, "vote")} for more, ${counted(found.votes?.decrease ?? 0, "vote")} for less; ${found.votingThreshold} decide`],
    ["Next term", `at height ${grouped(found.nextCheck)}`],
  ]);
}

async function features() {
  const found = await getOr("/activation/status", null);
  if (!found) return h("p", { class: "empty" }, "The node does not tell.");
  return [
    h("p", { class: "soft" }, `Votes are counted every ${grouped(found.votingInterval)} blocks, next at height ${grouped(found.nextCheck)}; ${grouped(found.votingThreshold)} of them decide.`),
    table("Features", ["#", "Feature", "On the chain", "#At height", "#Votes", "Of this node"].map((name) => (name === "#" ? "No." : name)),
      found.features.map((/** @type {Json} */ each) => [
        String(each.id), stranger(each.description, 80), words(each.blockchainStatus), each.activationHeight === undefined ? "–" : grouped(each.activationHeight),
        each.supportingBlocks === undefined ? "–" : grouped(each.supportingBlocks), words(each.nodeStatus)])),
  ];
}

/** @param {string} status */
function words(status) {
  return clean(status, 40).toLowerCase();
}

