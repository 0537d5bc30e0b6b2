"use strict";

// zbs-transactions, the library of the networks with the oldest generation of the interface: node zbs.js URL SCRIPTS
//
// SCRIPTS is JSON: a dApp and the script of an asset, in base64.

const zbs = require("@0bsnetwork/zbs-transactions");
const { CHAIN_ID, refusal, run, tell } = require("./common");

const [OWNER, FRIEND, DAPP, POOR] = ["soliton devnet account 1", "soliton devnet account 2", "soliton devnet account 3",
  "nobody has this seed"];
const [owner, friend, dApp] = [OWNER, FRIEND, DAPP].map((seed) => zbs.libs.crypto.address(seed, CHAIN_ID));
const COIN = 10 ** 8;

run(async () => {
  const [url, given] = process.argv.slice(2);
  const scripts = JSON.parse(given);
  const called = new Set();
  const api = Object.fromEntries(Object.entries(zbs).map(([name, each]) =>
    [name, typeof each === "function" ? (...values) => (called.add(name), each(...values)) : each]));
  const common = { chainId: CHAIN_ID };
  const info = async (id) => (await fetch(`${url}/transactions/info/${id}`)).json();
  async function put(name, sent) {
    const answer = await api.broadcast(sent, url);
    // The library makes another id for an alias than nodes do.
    await api.waitForTx(answer.id, 20000, url);
    tell(name, { sent, answer, info: await info(answer.id), valid: api.verify(sent), bytes: api.serialize(sent).length });
    return sent;
  }

  tell("accounts", { owner, friend, dApp });
  tell("before", { balance: await api.addressBalance(owner, url), none: await api.addressDataByKey(owner, "n", url) });
  const gold = await put("issue", api.issue({ ...common, name: "Gold", description: "bars", quantity: 1000, decimals: 2, reissuable: true }, OWNER));
  const smart = await put("smart issue", api.issue({ ...common, name: "Smart", description: "", quantity: 10, decimals: 0,
    reissuable: false, script: scripts.asset }, OWNER));
  await put("transfer", api.transfer({ ...common, recipient: friend, amount: 5, attachment: "thanks" }, OWNER));
  await put("transfer of an asset", api.transfer({ ...common, recipient: friend, amount: 40, assetId: gold.id }, OWNER));
  await put("reissue", api.reissue({ ...common, assetId: gold.id, quantity: 10, reissuable: true }, OWNER));
  await put("burn", api.burn({ ...common, assetId: gold.id, quantity: 4 }, OWNER));
  const lent = await put("lease", api.lease({ ...common, recipient: friend, amount: COIN }, OWNER));
  await put("cancel lease", api.cancelLease({ ...common, leaseId: lent.id }, OWNER));
  await put("alias", api.alias({ ...common, alias: "zbs-user" }, OWNER));
  await put("mass transfer", api.massTransfer({ ...common, transfers: [{ recipient: friend, amount: 1 },
    { recipient: dApp, amount: 2 }] }, OWNER));
  await put("data", api.data({ ...common, data: [{ key: "n", value: 42 }, { key: "b", value: true }, { key: "s", value: "grüße" },
    { key: "bytes", value: [1, 2] }] }, OWNER));
  await put("sponsorship", api.sponsorship({ ...common, assetId: gold.id, minSponsoredAssetFee: 3 }, OWNER));
  await put("set asset script", api.setAssetScript({ ...common, assetId: smart.id, script: scripts.asset }, OWNER));
  await put("set script", api.setScript({ ...common, script: scripts.dapp }, DAPP));
  // The library knows a form of calls that no release of a node has had.
  tell("invoke", await refusal(api.broadcast(api.invokeScript({ ...common, dappAddress: dApp, call: { function: "keep",
    args: [{ type: "integer", value: 21 }] }, payment: [{ amount: 7, assetId: null }], fee: COIN / 10 }, OWNER), url)));
  const pair = { amountAsset: gold.id, priceAsset: null, amount: 10, price: COIN * 10 ** 6, matcherFee: 300000,
    matcherPublicKey: zbs.libs.crypto.publicKey(OWNER) };
  const order1 = api.order({ ...pair, orderType: "buy" }, FRIEND);
  const order2 = api.order({ ...pair, orderType: "sell" }, OWNER);
  tell("orders", [order1, order2].map((each) => api.verify(each)));
  await put("exchange", api.exchange({ type: 7, version: 2, order1, order2, price: COIN * 10 ** 6, amount: 10, buyMatcherFee: 300000,
    sellMatcherFee: 300000, fee: COIN / 5, timestamp: Date.now(), senderPublicKey: zbs.libs.crypto.publicKey(OWNER), proofs: [] }, OWNER));
  await put("signed", api.signTx({ type: 4, ...common, recipient: friend, amount: 6 }, OWNER));

  tell("after", { balance: await api.addressBalance(owner, url), integer: await api.addressDataByKey(owner, "n", url),
    text: await api.addressDataByKey(owner, "s", url) });
  tell("no funds", await refusal(api.broadcast(api.transfer({ ...common, recipient: friend, amount: 1 }, POOR), url)));
  tell("low fee", await refusal(api.broadcast(api.transfer({ ...common, recipient: friend, amount: 1, fee: 1 }, OWNER), url)));
  const functions = Object.keys(zbs).filter((name) => typeof zbs[name] === "function");
  tell("calls", { all: functions, called: [...called] });
});
