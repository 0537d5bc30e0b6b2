"use strict";

// Trading with @waves/waves-transactions: node matcher.js NODE MATCHER. Orders of all versions are
// placed, matched, partly filled, cancelled; what the matcher said is told, by version.

const { broadcast, cancelOrder, cancelSubmittedOrder, issue, libs, order, submitOrder, waitForTx } =
  require("@waves/waves-transactions");
const { CHAIN_ID, refusal, run, tell } = require("./common");

const SELLER = "soliton devnet account 1";
const BUYER = "soliton devnet account 2";
const COIN = 10 ** 8;

async function get(url) {
  return (await fetch(url)).json();
}

run(async () => {
  const [node, matcher] = process.argv.slice(2);
  const issued = issue(
    { name: "Gold", description: "", quantity: 1000 * COIN, decimals: 8, reissuable: false, chainId: CHAIN_ID }, SELLER);
  await broadcast(issued, node);
  await waitForTx(issued.id, { apiBase: node, timeout: 20000 });
  tell("asset", issued.id);
  const matcherPublicKey = await get(`${matcher}/matcher`);
  const pair = { amountAsset: issued.id, priceAsset: "WAVES" };
  const make = (seed, orderType, amount, price, version) => order(
    { ...pair, orderType, amount, price, version, matcherPublicKey, matcherFee: 300000, chainId: CHAIN_ID,
      ...(version === 4 ? { priceMode: "assetDecimals" } : {}) }, seed);

  for (const version of [1, 2, 3, 4]) {
    // Three are offered, one is bought, and the rest is taken back.
    const offer = make(SELLER, "sell", 3 * COIN, 2 * COIN + version, version);
    const offered = await submitOrder(offer, matcher);
    const wish = make(BUYER, "buy", COIN, 2.5 * COIN, version);
    await submitOrder(wish, { matcherUrl: matcher });
    const status = (id) => get(`${matcher}/matcher/orderbook/${pair.amountAsset}/WAVES/${id}`);
    const told = { offered, filled: await status(wish.id), partly: await status(offer.id), ids: [offer.id, wish.id] };
    const cancel = cancelOrder({ orderId: offer.id }, SELLER);
    told.cancelled = await cancelSubmittedOrder(cancel, issued.id, "WAVES", matcher);
    told.again = await refusal(cancelSubmittedOrder(cancel, issued.id, "WAVES", matcher));
    told.after = await status(offer.id);
    tell(`version ${version}`, told);
  }

  // Three sellers' prices, one market order through two of them.
  const offers = [1, 2, 3].map((n) => make(SELLER, "sell", COIN, n * COIN, 3));
  for (const offer of offers) await submitOrder(offer, matcher);
  const market = make(BUYER, "buy", 1.5 * COIN, 4 * COIN, 3);
  await submitOrder(market, { matcherUrl: matcher, market: true });
  tell("market", [...offers, market].map((each) => each.id));
  tell("book", await get(`${matcher}/matcher/orderbook/${issued.id}/WAVES`));

  // Every price mode of version 4 as this library signs it; without one it takes fixedDecimals.
  const modes = {};
  for (const priceMode of [undefined, "fixedDecimals", "default", "assetDecimals"]) {
    const wish = order({ ...pair, orderType: "buy", amount: COIN, price: COIN, version: 4, matcherPublicKey,
      matcherFee: 300000, chainId: CHAIN_ID, ...(priceMode ? { priceMode } : {}) }, BUYER);
    const { accepted, error, message } = await refusal(submitOrder(wish, matcher));
    modes[String(priceMode)] = { accepted: Boolean(accepted), error, message };
    if (accepted) await cancelSubmittedOrder(cancelOrder({ orderId: wish.id }, BUYER), issued.id, "WAVES", matcher);
  }
  tell("modes", modes);
  tell("refused", {
    duplicate: await refusal(submitOrder(market, matcher)),
    fee: await refusal(submitOrder(order({ ...pair, orderType: "buy", amount: COIN, price: COIN, version: 3,
      matcherPublicKey, matcherFee: 299999 }, BUYER), matcher)),
    poor: await refusal(submitOrder(make(BUYER, "buy", 1000000 * COIN, 3 * COIN, 3), matcher)),
    stranger: await refusal(cancelSubmittedOrder(
      cancelOrder({ orderId: offers[2].id }, BUYER), issued.id, "WAVES", matcher)),
  });
  tell("addresses", [SELLER, BUYER].map((seed) => libs.crypto.address(seed, CHAIN_ID)));
});
