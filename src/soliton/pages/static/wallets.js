// Who signs the orders of the exchange page: a seed phrase in the page, the wallet that an extension of the browser
// brings (Keeper), or a signing service that keeps the keys.

import { addressOf } from "./crypto.js";
import { h, show } from "./dom.js";
import { base58, clean, short, stranger, toBase58 } from "./format.js";
import { compact, parse } from "./json.js";
import { signerOf } from "./orders.js";
import { ProviderSoliton } from "./provider.js";
import { ROOT } from "./venue.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./orders.js").Market} Market */
/** @typedef {import("./orders.js").Signer} Signer */

const SERVICE = "http://127.0.0.1:6888";
/** The service that the address of the page names: the page may ask no other one. */
const NAMED = new URLSearchParams(location.search).get("signer") ?? "";
/** Older releases of the extension want them. */
const [REQUEST, ORDER, CANCEL] = [1001, 1002, 1003];
/** Of a price in an order. */
const PRICE_DECIMALS = 8n;
const ASKS = "Confirm in the Keeper window.";
/** What the extension refuses with, by its numbers; it has texts of its own for the others. @type {Record<string, string>} */
const KEEPER_SAYS = {
  10: "Rejected in Keeper.",
  12: "Keeper blocks this site. You can allow it again in Keeper's settings.",
  13: "Keeper has no account yet.",
  14: "Keeper has no account on its selected network.",
};

/** The extension, which may come a moment after the page. @returns {Json} */
const keeperOf = () => /** @type {any} */ (window).KeeperWallet ?? /** @type {any} */ (window).WavesKeeper;

/** An answer of the extension; its errors are no errors of the language. @param {Promise<Json>} answer @returns {Promise<Json>} */
async function answered(answer) {
  try {
    return await answer;
  } catch (error) {
    const { code, data, message } = /** @type {any} */ (error) ?? {};
    const more = typeof data === "string" && !KEEPER_SAYS[code] ? `: ${data}` : "";
    throw new Error(clean(KEEPER_SAYS[code] ?? `Keeper says: ${message ?? error}${more}`, 300), { cause: error });
  }
}

/**
 * Forms to choose from.
 * @param {number} chainId
 * @param {(signer: Signer) => void} chosen
 */
export function signIn(chainId, chosen) {
  return h("div", { id: "sign-in" }, seedForm(chainId, chosen),
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
    h("p", { class: "soft" }, "Keys stay with a Soliton signer whose setting signer.origins allows this page's origin."),
    h("label", null, "Address of the signer", address), h("button", { type: "submit" }, "Use it"));
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
  const form = h("form", { class: "order", id: "with-keeper" },
    h("p", { class: "soft" }, "The browser extension keeps the keys and asks you to confirm each order."));
  return offered(form, "Connect Keeper", async () => {
    const keeper = keeperOf();
    if (!keeper) throw new Error("Keeper is not installed in this browser, or is disabled on this page.");
    const { address, publicKey } = await keeperAccount(keeper, chainId);
    /** @param {string} method @param {Json} request */
    const signed = async (method, request) => {
      const now = await keeperAccount(keeper, chainId);
      if (now.publicKey !== publicKey) throw new Error(`Keeper has another account open now, ${short(now.address)}: open ${short(address)} there, or forget it here.`);
      return answered(keeper[method](request));
    };
    chosen({
      address, publicKey, asks: ASKS,
      order: async (made, _, market) => ({ ...made, proofs: [proofOf(parse(await signed("signOrder", { type: ORDER, data: moneyOf(made, market) })), made)] }),
      cancel: async (id) => parse(await signed("signCancelOrder", { type: CANCEL, data: { senderPublicKey: publicKey, id } })).signature,
      admit: (timestamp) => signed("signRequest", { type: REQUEST, data: { senderPublicKey: publicKey, timestamp } }),
    });
  }, ASKS);
}

/**
 * The account that is open in the extension, which has to be one of this network.
 * @param {Json} keeper
 * @param {number} chainId
 * @returns {Promise<{address: string, publicKey: string}>}
 */
async function keeperAccount(keeper, chainId) {
  const { account, network } = await answered(keeper.publicState());
  if (!account) throw new Error(KEEPER_SAYS[14]);
  const key = base58(account.publicKey);
  if (!key || toBase58(addressOf(key, chainId)) !== account.address) {
    const ours = String.fromCharCode(chainId);
    const set = network?.code && network.code !== ours ? `Keeper is on the network ${clean(network.code, 10)}` : "The account in Keeper is of another network";
    throw new Error(`${set}; this matcher is on ${ours}${ROOT.node ? `, with the node ${ROOT.node}` : ""}: its network “Custom” takes such a node.`);
  }
  return account;
}

/**
 * A form with its button, and what came of it.
 * @param {HTMLFormElement} form
 * @param {string} name
 * @param {(waits: (pending: Json) => void) => Promise<void>} work
 * @param {string} [meanwhile]
 */
function offered(form, name, work, meanwhile = "…") {
  const said = h("p", { role: "status" });
  const button = h("button", { type: "submit" }, name);
  form.append(button, said);
  const waits = (/** @type {Json} */ pending) => {
    const place = document.getElementById("outcome");
    if (place) show(place, h("p", null, `Waiting for approval: ${clean(pending.told?.[0], 200)}`));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.className = "";
    said.textContent = meanwhile;
    try {
      await work(waits);
    } catch (error) {
      said.className = "bad";
      said.textContent = clean(error instanceof Error ? error.message : String(error), 300);
    }
    button.disabled = false;
  });
  return form;
}

/** Numbers as texts, which hold 63 bits everywhere. @param {Json} value @returns {Json} */
function texts(value) {
  return JSON.parse(compact(value).replace(/("(?:amount|price|matcherFee)":)(\d+)/g, '$1"$2"'));
}

/**
 * An order as Keeper takes it. It counts a price in units of the price asset for a whole one of the amount asset, and
 * rounds what is finer.
 * @param {Json} made
 * @param {Market} market
 */
function moneyOf(made, market) {
  const money = (/** @type {Json} */ coins, /** @type {string | null} */ asset) => ({ coins: String(coins), assetId: asset ?? "WAVES" });
  const { amountAsset, priceAsset } = made.assetPair;
  const finer = made.price * 10n ** BigInt(market.amount.decimals);
  const unit = 10n ** PRICE_DECIMALS;
  if (finer % unit !== 0n) throw new Error(`Keeper takes prices with ${market.price.decimals} decimals at most.`);
  const { version, senderPublicKey, matcherPublicKey, orderType, timestamp, expiration } = made;
  return { version, senderPublicKey, matcherPublicKey, orderType, timestamp, expiration,
    amount: money(made.amount, amountAsset), price: money(finer / unit, priceAsset), matcherFee: money(made.matcherFee, made.matcherFeeAssetId) };
}

/** The proof, if it is of this order and no other. @param {Json} signed @param {Json} made */
function proofOf(signed, made) {
  const [one, other] = [signed, made].map((each) => ({ ...each, ...each.assetPair }));
  for (const name of ["version", "senderPublicKey", "matcherPublicKey", "amountAsset", "priceAsset", "orderType", "amount", "price", "matcherFee", "matcherFeeAssetId", "timestamp", "expiration"]) {
    if (String(one[name]) !== String(other[name])) throw new Error(`Keeper has signed another ${name}.`);
  }
  return signed.proofs[0];
}
