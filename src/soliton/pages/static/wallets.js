// Who signs the orders of the exchange page: a seed phrase in the page, the wallet that an extension of the browser
// brings (Keeper), or a signing service that keeps the keys.

import { h, show } from "./dom.js";
import { clean, stranger } from "./format.js";
import { compact, parse } from "./json.js";
import { signerOf } from "./orders.js";
import { ProviderSoliton } from "./provider.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./orders.js").Signer} Signer */

const SERVICE = "http://127.0.0.1:6888";
/** The service that the address of the page names: the page may ask no other one. */
const NAMED = new URLSearchParams(location.search).get("signer") ?? "";
const [REQUEST, ORDER, CANCEL] = [1001, 1002, 1003];

/** The extension, which may come a moment after the page. @returns {Json} */
const keeperOf = () => /** @type {any} */ (window).KeeperWallet ?? /** @type {any} */ (window).WavesKeeper;

/**
 * Forms to choose from.
 * @param {number} chainId
 * @param {(signer: Signer) => void} chosen
 */
export function signIn(chainId, chosen) {
  return h("div", null, seedForm(chainId, chosen),
    h("details", { open: NAMED !== "" }, h("summary", null, "With a signing service"), NAMED ? keyForm(chainId, chosen) : serviceForm()),
    h("details", null, h("summary", null, "With Keeper"), keeperForm(chainId, chosen)));
}

/** @param {number} chainId @param {(signer: Signer) => void} chosen */
function seedForm(chainId, chosen) {
  const seed = h("input", { type: "password", id: "seed", autocomplete: "off", spellcheck: false, maxlength: 4_000, required: true });
  const form = h("form", { class: "order" },
    h("p", { class: "soft" }, "A seed phrase signs orders in this page. It is kept in memory until you leave, and is sent nowhere."),
    h("label", null, "Seed phrase", seed), h("button", { type: "submit" }, "Open the account"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const signer = signerOf(seed.value, chainId);
    seed.value = "";
    chosen(signer);
  });
  return form;
}

/** Which service: the page is loaded again with leave to ask it. */
function serviceForm() {
  const address = h("input", { id: "service", type: "url", value: SERVICE, maxlength: 300, required: true });
  const form = h("form", { class: "order" },
    h("p", { class: "soft" }, "The keys stay with a signer of Soliton, whose setting signer.origins names this page's origin."),
    h("label", null, "Its address", address), h("button", { type: "submit" }, "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.search = `?signer=${encodeURIComponent(address.value.replace(/\/+$/, ""))}`;
  });
  return form;
}

/** @param {number} chainId @param {(signer: Signer) => void} chosen */
function keyForm(chainId, chosen) {
  const key = h("input", { id: "service-key", type: "password", autocomplete: "off", spellcheck: false, maxlength: 1_024, required: true });
  const name = h("input", { id: "service-name", autocomplete: "off", spellcheck: false, maxlength: 64, placeholder: "the first one" });
  const form = h("form", { class: "order", id: "with-service" },
    h("p", { class: "soft" }, "Asks ", stranger(NAMED, 300), ". The API key is kept in memory until you leave, and sent there alone."),
    h("label", null, "API key", key), h("label", null, "Key", name));
  return offered(form, "Log in", async (waits) => {
    const wanted = name.value.trim();
    const provider = new ProviderSoliton(NAMED, { apiKey: key.value.trim(), ...(wanted ? { key: wanted } : {}), onWaiting: waits });
    key.value = "";
    await provider.connect({ NODE_URL: "", NETWORK_BYTE: chainId });
    const user = await provider.login();
    chosen({
      ...user,
      order: async (made) => ({ ...made, proofs: (await provider.signOrder(texts(made))).proofs }),
      cancel: async (id) => (await provider.signCancelOrder(id)).signature,
      admit: async (timestamp) => (await provider.signWavesAuth(timestamp)).signature,
    });
  });
}

/** @param {number} chainId @param {(signer: Signer) => void} chosen */
function keeperForm(chainId, chosen) {
  return offered(h("form", { class: "order", id: "with-keeper" },
    h("p", { class: "soft" }, "The extension of your browser asks you about each order.")), "Ask Keeper", async () => {
    const keeper = keeperOf();
    if (!keeper) throw new Error("There is no Keeper in this browser, or it does not work on this page.");
    const { account, network } = await keeper.publicState();
    if (!account) throw new Error("Keeper has no account.");
    if (network?.code && network.code !== String.fromCharCode(chainId)) throw new Error(`Keeper is on the network ${clean(network.code, 10)}.`);
    const { address, publicKey } = account;
    chosen({
      address, publicKey,
      order: async (made) => ({ ...made, proofs: [proofOf(parse(await keeper.signOrder({ type: ORDER, data: moneyOf(made) })), made)] }),
      cancel: async (id) => parse(await keeper.signCancelOrder({ type: CANCEL, data: { senderPublicKey: publicKey, id } })).signature,
      admit: (timestamp) => keeper.signRequest({ type: REQUEST, data: { senderPublicKey: publicKey, timestamp } }),
    });
  });
}

/**
 * A form with its button, and what came of it.
 * @param {HTMLFormElement} form
 * @param {string} name
 * @param {(waits: (pending: Json) => void) => Promise<void>} work
 */
function offered(form, name, work) {
  const said = h("p", { role: "status" });
  const button = h("button", { type: "submit" }, name);
  form.append(button, said);
  const waits = (/** @type {Json} */ pending) => {
    const place = document.getElementById("outcome");
    if (place) show(place, h("p", null, `It waits for approval: ${clean(pending.told?.[0], 200)}`));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.className = "";
    said.textContent = "…";
    try {
      await work(waits);
    } catch (error) {
      said.className = "bad";
      said.textContent = clean(error instanceof Error ? error.message : String(/** @type {any} */ (error)?.message ?? error), 300);
    }
    button.disabled = false;
  });
  return form;
}

/** Numbers as texts, which hold 63 bits everywhere. @param {Json} value @returns {Json} */
function texts(value) {
  return JSON.parse(compact(value).replace(/("(?:amount|price|matcherFee)":)(\d+)/g, '$1"$2"'));
}

/** An order as Keeper takes it. @param {Json} made */
function moneyOf(made) {
  const { amountAsset, priceAsset } = made.assetPair;
  const money = (/** @type {Json} */ coins, /** @type {string | null} */ asset) => ({ coins: String(coins), assetId: asset ?? "WAVES" });
  const { version, senderPublicKey, matcherPublicKey, orderType, timestamp, expiration } = made;
  return { version, senderPublicKey, matcherPublicKey, orderType, timestamp, expiration,
    amount: money(made.amount, amountAsset), price: money(made.price, priceAsset), matcherFee: money(made.matcherFee, made.matcherFeeAssetId) };
}

/** The proof, if it is of this order and no other. @param {Json} signed @param {Json} made */
function proofOf(signed, made) {
  for (const name of ["amount", "price", "matcherFee", "timestamp", "expiration"]) {
    if (String(signed[name]) !== String(made[name])) throw new Error(`Keeper has signed another ${name}.`);
  }
  return signed.proofs[0];
}
