// The matcher's stream: the book that is looked at, and the account that trades here. It begins anew by itself where
// the connection breaks.

import { at } from "./dom.js";
import { goBy } from "./format.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {{book: (message: Json) => void, account: () => void}} Heard */

const DEEPEST = 10_000;
const AGAIN_MS = 2_000;

/** @type {WebSocket | null} */
let socket = null;
/** @type {string | null} the symbol of the book */
let watched = null;
/** @type {number | null} the last message about it */
let number = null;
/** @type {Json} what asks for the account's changes */
let asking = null;

/** @param {Json} message */
function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function askForBook() {
  if (watched !== null) send({ T: "obs", S: watched, d: DEEPEST, ...(number === null ? {} : { N: number }) });
}

/** @param {string} symbol */
export function watchBook(symbol) {
  if (watched !== null) send({ T: "u", S: watched });
  watched = symbol;
  number = null;
  askForBook();
}

/**
 * Hear of an account's orders and balances when they change.
 * @param {{address: string, publicKey: string}} account
 * @param {Record<string, string>} headers what lets in who looks at them
 */
export function watchAccount({ address, publicKey }, headers) {
  if (asking?.j === headers.Signature) return;
  forgetAccount();
  asking = { T: "aus", S: address, t: "sig", j: headers.Signature, k: publicKey, _: Number(headers.Timestamp) };
  send(asking);
}

export function forgetAccount() {
  if (asking) send({ T: "u", S: asking.S });
  asking = null;
}

/** @param {string} words what is said once, not with each message */
function showClock(words) {
  if (at("clock").textContent !== words) at("clock").textContent = words;
}

/** @param {Heard} heard */
export function connect(heard) {
  const made = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/v0?a_client=page`);
  const place = at("live");
  socket = made;
  made.onopen = () => {
    place.textContent = place.className = "live";
    askForBook();
    if (asking) send(asking);
  };
  made.onclose = () => {
    place.textContent = "retrying…";
    place.className = "broken";
    setTimeout(connect, AGAIN_MS, heard);
  };
  made.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.T === "pp") made.send(event.data);
    if (message.T === "pp" || message.T === "i") showClock(goBy(message._, "matcher"));
    if (message.T === "au" && message.S === asking?.S) heard.account();
    if (message.T !== "ob" || message.S !== watched) return;
    // What came for a watch before this one: the whole book comes first.
    if (number === null && message.U !== 0) return;
    number = message.N;
    heard.book(message);
  };
}
