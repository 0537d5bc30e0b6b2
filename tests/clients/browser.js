"use strict";

// What a web application has of the ecosystem's libraries; tests/e2e bundles it for a page. Each
// function is one visit: it speaks to the servers whose addresses it gets, from the page's own origin.

const { create } = require("@waves/node-api-js");
const { ProviderSeed } = require("@waves/provider-seed/dist/ProviderSeed");
const { Signer } = require("@waves/signer");
const { broadcast, cancelOrder, cancelSubmittedOrder, issue, libs, order, submitOrder, transfer, waitForTx } =
  require("@waves/waves-transactions");

const CHAIN_ID = "R";
const COIN = 10 ** 8;

// What the library throws for a call that is meant to fail.
async function refusal(promise) {
  try {
    return { accepted: await promise };
  } catch (error) {
    return { name: error.name, ...error, message: error.message };
  }
}

// node-api-js sends each request with credentials.
async function nodeApi(node, seed, recipient) {
  const api = create(node);
  const sender = libs.crypto.address(seed, CHAIN_ID);
  const { height } = await api.blocks.fetchHeight();
  const before = await api.addresses.fetchBalance(recipient);
  const paid = transfer({ chainId: CHAIN_ID, recipient, amount: 7 }, seed);
  const sent = await api.transactions.broadcast(paid);
  await waitForTx(paid.id, { apiBase: node, timeout: 20000 });
  const wrong = transfer({ chainId: CHAIN_ID, recipient, amount: COIN ** 2 }, seed);
  return {
    height,
    sent,
    paid: (await api.addresses.fetchBalance(recipient)).balance - before.balance,
    details: await api.addresses.fetchBalanceDetails(sender),
    info: await api.transactions.fetchInfo(paid.id),
    refused: await refusal(api.transactions.broadcast(wrong)),
    unknown: await refusal(api.transactions.fetchInfo(recipient)),
  };
}

// Sign in, pay, wait until it is confirmed.
async function signer(node, seed, recipient) {
  const wallet = new Signer({ NODE_URL: node, LOG_LEVEL: "error" });
  await wallet.setProvider(new ProviderSeed(seed));
  await wallet.getNetworkByte();
  const user = await wallet.login();
  const [sent] = [].concat(await wallet.transfer({ recipient, amount: 11 }).broadcast({ confirmations: 0 }));
  const [confirmed] = [].concat(await wallet.waitTxConfirm(sent, 0));
  const balances = await wallet.getBalance();
  const poor = new Signer({ NODE_URL: node, LOG_LEVEL: "error" });
  await poor.setProvider(new ProviderSeed("nobody has this seed"));
  await poor.getNetworkByte();
  await poor.login();
  const refused = await refusal(poor.transfer({ recipient, amount: 1 }).broadcast({ confirmations: 0 }));
  return { user, sent, confirmed, balances, refused };
}

// Issue, offer, look, take back; and what the matcher refuses.
async function matcher(node, place, seed) {
  const issued = issue(
    { name: "Browser", description: "", quantity: 10 * COIN, decimals: 8, reissuable: false, chainId: CHAIN_ID }, seed);
  await broadcast(issued, node);
  await waitForTx(issued.id, { apiBase: node, timeout: 20000 });
  const asked = async (path) => (await fetch(`${place}${path}`, { credentials: "include" })).json();
  const offer = order({ amountAsset: issued.id, priceAsset: "WAVES", orderType: "sell", amount: COIN, price: 2 * COIN, version: 3,
    matcherPublicKey: await asked("/matcher"), matcherFee: 300000, chainId: CHAIN_ID }, seed);
  const placed = await submitOrder(offer, place);
  const book = await asked(`/matcher/orderbook/${issued.id}/WAVES`);
  const kept = await asked(`/matcher/orderbook/${issued.id}/WAVES`);
  const cancelled = await cancelSubmittedOrder(cancelOrder({ orderId: offer.id }, seed), issued.id, "WAVES", place);
  const history = await fetch(`${place}/matcher/orderbook/${offer.senderPublicKey}`, {
    credentials: "include", headers: { Timestamp: "1", Signature: "2" } });
  return { placed, book, kept, cancelled, history: { status: history.status, body: await history.json() } };
}

// The signing service, as its demo pages call it.
async function service(place, seed) {
  const post = (body) => fetch(`${place}/data`, {
    method: "POST", body, headers: { Accept: "application/json", "Content-Type": "application/json" }, credentials: "include" });
  const signed = await post(JSON.stringify({ seed, data: [{ key: "from another origin", value: 1 }] }));
  const refused = await post("{");
  return { signed: await signed.json(), refused: { status: refused.status, body: await refused.json() } };
}

window.visits = { nodeApi, signer, matcher, service };
