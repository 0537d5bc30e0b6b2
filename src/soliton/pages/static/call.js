// A form for a dApp's function, made of what the dApp says about it; what a call would do, and the call.

import { h, show } from "./dom.js";
import { base58, clean, grouped, units } from "./format.js";
import { accounts } from "./devnet.js";
import { fault, refusal } from "./fault.js";
import { OBEYS, asset, get, getOr, post } from "./node.js";
import { accountLink, facts, folded, idLink, section } from "./parts.js";
import { publicKeyOf, send, simulated, wallet } from "./send.js";
import { snippets } from "./snippets.js";
import { changesOf } from "./transaction.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {{type: string, value: Json}} Argument */

const MAX_PAYMENTS = 10;
const INTEGER = /^[+-]?\d{1,20}$/;

/** What a person has typed cannot be what is asked for. */
class Unfit extends Error {}

/** @param {string} name the address, or address/function */
export async function callForm(name) {
  const [address, wanted] = name.split("/");
  const { meta } = await get(`/addresses/scriptInfo/${encodeURIComponent(address)}/meta`);
  const functions = Object.entries(meta?.callableFuncTypes ?? {});
  const known = OBEYS ? await wallet() : [];
  const holder = h("div");
  const choose = h("select", { "aria-label": "Function" }, functions.map(([word]) => h("option", { value: word, selected: word === wanted }, clean(word, 60))));
  const draw = () => {
    const found = functions.find(([word]) => word === choose.value);
    if (found) show(holder, one(address, found[0], /** @type {Json[]} */ (found[1]), known));
  };
  choose.addEventListener("change", draw);
  draw();
  const node = h("article", null,
    h("h1", { tabindex: -1 }, "Call a dApp"),
    h("p", null, "Functions of ", accountLink(address, true)),
    accounts(known),
    functions.length
      ? [h("p", { class: "row" }, h("label", null, "Function ", choose)), holder]
      : h("p", { class: "empty" }, "This account has no callable functions."));
  return { title: "Call", node };
}

/**
 * @param {string} address
 * @param {string} name
 * @param {Json[]} takes
 * @param {string[]} known
 */
function one(address, name, takes, known) {
  const fields = takes.map((each) => field(String(each.name), String(each.type)));
  const who = h("input", { list: "accounts", value: known[0] ?? "", autocomplete: "off", spellcheck: false, maxlength: 60, size: 36, required: true });
  const payments = h("div");
  /** @type {{amount: HTMLInputElement, asset: HTMLInputElement}[]} */
  const paid = [];
  const add = h("button", { type: "button" }, "Add a payment");
  add.addEventListener("click", () => {
    const row = {
      amount: h("input", { inputmode: "decimal", size: 14, maxlength: 30, "aria-label": "Amount of the payment" }),
      asset: h("input", { size: 36, maxlength: 60, placeholder: "the chain's coin", "aria-label": "Asset of the payment", spellcheck: false }),
    };
    paid.push(row);
    payments.append(h("p", { class: "row" }, row.amount, row.asset));
    add.disabled = paid.length >= MAX_PAYMENTS;
  });
  const outcome = h("div", { role: "status" });
  // All fields are read at once: somebody may write on while assets are asked for.
  const members = async () => ({
    type: 16, version: 2, dApp: address,
    call: { function: name, args: fields.map((each) => each.read()) },
    payment: await Promise.all(paid.filter((each) => each.amount.value.trim()).map(async (each) => {
      const [text, id] = [each.amount.value, each.asset.value.trim() || null];
      const amount = units(text, (await asset(id)).decimals);
      if (amount === null) throw new Unfit(`${clean(text, 40)} is no amount.`);
      return { amount, assetId: id };
    })),
  });
  const busy = async (/** @type {() => Promise<Node>} */ work) => {
    for (const each of buttons) each.disabled = true;
    show(outcome, h("p", { class: "soft" }, "Asking…"));
    try {
      show(outcome, await work());
    } catch (error) {
      show(outcome, error instanceof Unfit ? h("p", { class: "bad", role: "alert" }, error.message) : refusal(error));
    }
    for (const each of buttons) each.disabled = false;
  };
  const attempt = h("button", { type: "submit" }, "Simulate");
  const call = h("button", { type: "button" }, "Send");
  const buttons = OBEYS ? [attempt, call] : [attempt];
  const key = h("input", { value: "", autocomplete: "off", spellcheck: false, maxlength: 60, size: 46 });
  call.addEventListener("click", () => busy(async () => {
    const caller = who.value.trim();
    const id = await send(await members(), caller);
    const { stateChanges } = await getOr(`/transactions/info/${id}`, {});
    return h("div", null, h("p", { class: "good" }, "Sent: ", idLink("tx", id), "."), stateChanges && changesOf(stateChanges));
  }));
  const form = h("form", null,
    fields.map((each) => h("label", { class: "field" }, h("span", null, h("code", null, clean(each.name, 60)), h("span", { class: "soft" }, ` ${clean(each.type, 80)}`)), each.element)),
    fields.length === 0 && h("p", { class: "soft" }, "This function takes no arguments."),
    payments, h("p", null, add),
    OBEYS ? h("label", { class: "field" }, h("span", null, "Caller"), who) : h("label", { class: "field" }, h("span", null, "Public key of the caller"), key),
    h("p", { class: "row" }, buttons));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(async () => {
      const [caller, publicKey] = [who.value.trim(), key.value.trim()];
      const made = await members();
      const found = OBEYS ? await simulated(made, caller) : await post("/transactions/simulate", { ...made, senderPublicKey: publicKey });
      const asked = { ...made, senderPublicKey: OBEYS ? await publicKeyOf(caller) : publicKey };
      return h("div", null, outcomeOf(found), folded("API request", () => snippets("/transactions/simulate", asked)));
    });
  });
  return section(`${clean(name, 60)}`, form, outcome);
}

/** @param {Json} found */
function outcomeOf(found) {
  if (!found.valid) {
    return h("div", { class: "trouble" }, h("p", null, "The transaction would be rejected."), h("p", null, clean(found.error?.message, 600)), fault(found.error?.fault ?? found.fault));
  }
  return h("div", null,
    h("p", { class: "good" }, "The transaction would succeed."),
    facts([["Fee", `${grouped(found.fee.amount)} of the smallest unit`], ["Complexity", grouped(found.spentComplexity ?? 0)]]),
    changesOf(found.stateChanges) ?? h("p", { class: "soft" }, "It would not change any state."));
}

/**
 * @param {string} name
 * @param {string} type
 * @returns {{name: string, type: string, element: Node, read: () => Argument}}
 */
function field(name, type) {
  const choices = type.split("|").map((each) => each.trim());
  const list = /^List\[(.*)\]$/.exec(type);
  if (list) {
    const area = h("textarea", { rows: 3, placeholder: "one on each line", spellcheck: false });
    return { name, type, element: area, read: () => ({
      type: "list",
      value: area.value.split("\n").map((each) => each.trim()).filter(Boolean).map((each) => guessed(name, list[1].split("|").map((one) => one.trim()), each)),
    }) };
  }
  if (type === "Boolean") {
    const select = h("select", null, h("option", { value: "true" }, "true"), h("option", { value: "false" }, "false"));
    return { name, type, element: select, read: () => ({ type: "boolean", value: select.value === "true" }) };
  }
  const input = h("input", { spellcheck: false, autocomplete: "off", maxlength: 100_000, size: 46, placeholder: HINTS[choices[0]] ?? "" });
  return { name, type, element: input, read: () => guessed(name, choices, input.value) };
}

/** @type {Record<string, string>} */
const HINTS = { Int: "a whole number", ByteVector: "base58, or base64:…", String: "text" };

/**
 * The first of the types that a text fits.
 * @param {string} name
 * @param {string[]} types
 * @param {string} text
 * @returns {Argument}
 */
function guessed(name, types, text) {
  const words = text.trim();
  for (const type of types) {
    if (type === "Int" && INTEGER.test(words)) {
      const value = BigInt(words);
      if (value >= -(2n ** 63n) && value < 2n ** 63n) return { type: "integer", value };
    }
    if (type === "Boolean" && /^(true|false)$/.test(words)) return { type: "boolean", value: words === "true" };
    if (type === "ByteVector") {
      const value = bytes(words);
      if (value !== null) return { type: "binary", value };
    }
    if (type === "String") return { type: "string", value: text };
  }
  throw new Unfit(`${clean(name, 40)}: “${clean(words, 60)}” is no ${types.join(" or ")}.`);
}

/**
 * @param {string} words
 * @returns {string | null} in base64
 */
function bytes(words) {
  if (words.startsWith("base64:")) return /^base64:[A-Za-z0-9+/]*={0,2}$/.test(words) ? words : null;
  const found = base58(words);
  return found && `base64:${btoa(String.fromCharCode(...found))}`;
}
