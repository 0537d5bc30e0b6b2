"use strict";

// What waves-transactions has of its own to speak with a node, and the types of transactions that have
// to do with scripts: node with_scripts.js URL SCRIPTS
//
// SCRIPTS is JSON: a dApp, a verifier and the script of an asset, in base64.

const {
  data, invokeScript, issue, libs, makeTx, makeTxBytes, nodeInteraction, setAssetScript, setScript,
  signTx, transfer, verify,
} = require("@waves/waves-transactions");
const { CHAIN_ID, refusal, run, tell } = require("./common");

const [OWNER, DAPP, SMART, OTHER] = [1, 2, 3, 4].map((number) => `soliton devnet account ${number}`);
const [owner, dApp, smart, other] = [OWNER, DAPP, SMART, OTHER].map((seed) => libs.crypto.address(seed, CHAIN_ID));

run(async () => {
  const [url, given] = process.argv.slice(2);
  const scripts = JSON.parse(given);
  const called = new Set();
  const node = Object.fromEntries(Object.entries(nodeInteraction).map(([name, each]) =>
    [name, (...values) => (called.add(name), each(...values))]));
  const common = { chainId: CHAIN_ID };
  async function put(name, sent) {
    await node.broadcast(sent, url);
    await node.waitForTx(sent.id, { apiBase: url, timeout: 10000 });
    tell(name, { sent, info: await node.transactionById(sent.id, url) });
    return sent;
  }

  tell("accounts", { owner, dApp, smart, other });
  for (const version of [1, 2]) {
    await put(`dapp ${version}`, setScript({ ...common, version, script: scripts.dapp, fee: 1000000 }, DAPP));
  }
  const assets = {};
  for (const version of [2, 3]) {
    assets[version] = (await put(`smart asset ${version}`, issue({ ...common, version, name: "Smart", description: "", quantity: 100,
      decimals: 0, reissuable: true, script: scripts.asset }, OWNER))).id;
  }
  for (const version of [1, 2]) {
    await put(`asset script ${version}`, setAssetScript({ ...common, version, assetId: assets[version + 1], script: scripts.asset }, OWNER));
    await put(`call ${version}`, invokeScript({ ...common, version, dApp, call: { function: "keep", args: [
      { type: "integer", value: version }, { type: "string", value: "text" }, { type: "boolean", value: true },
      { type: "binary", value: "base64:AQI=" }, { type: "list", value: [{ type: "integer", value: 5 }] }] },
      payment: [{ amount: 3, assetId: null }, { amount: 2, assetId: assets[3] }], fee: 900000 }, OWNER));
    await put(`default call ${version}`, invokeScript({ ...common, version, dApp, payment: [], fee: 900000 }, OWNER));
  }
  await put("smart transfer", transfer({ ...common, recipient: other, assetId: assets[3], amount: 1, fee: 500000 }, OWNER));
  await put("verifier", setScript({ ...common, script: scripts.verifier, fee: 1000000 }, SMART));
  // The account wants the signatures of two.
  const both = transfer({ ...common, recipient: other, amount: 4, fee: 500000 }, [SMART, OWNER]);
  await put("two signatures", both);
  const one = transfer({ ...common, recipient: other, amount: 5, fee: 500000 }, SMART);
  tell("one signature", await refusal(node.broadcast(one, url)));
  const unsigned = { type: 4, version: 2, ...common, recipient: other, amount: 6, fee: 100000,
    senderPublicKey: libs.crypto.publicKey(OWNER), timestamp: Date.now() };
  const made = signTx(unsigned, OWNER);
  tell("made", { verified: verify(made), bytes: makeTxBytes(made).length, same: makeTx(unsigned).id === made.id });
  await put("made and signed", made);
  await put("data", data({ ...common, data: [{ key: "first", value: 1 }, { key: "second", value: "two" }] }, OWNER));
  tell("failing call", await refusal(node.broadcast(invokeScript({ ...common, dApp, call: { function: "fail", args: [] },
    fee: 900000 }, OWNER), url)));

  const last = await node.waitForTx(made.id, { apiBase: url });
  const height = await node.currentHeight(url);
  tell("read", {
    height, last: last.id,
    balance: await node.balance(owner, url),
    details: await node.balanceDetails(owner, url),
    asset: await node.assetBalance(assets[3], owner, url),
    data: await node.accountData(owner, url),
    matching: await node.accountData({ address: owner, match: "fir.*" }, url),
    entry: await node.accountDataByKey("second", owner, url),
    none: await node.accountDataByKey("third", owner, url),
    script: await node.scriptInfo(dApp, url),
    meta: await node.scriptMeta(dApp, url),
    rewards: await node.rewards(url),
    at: await node.rewards(height, url),
    changes: await refusal(node.stateChanges(made.id, url)),
  });

  // With more than this, the library looks again after ten seconds, or (for confirmations) never.
  tell("waited", [
    (await node.waitForTxWithNConfirmations(made.id, 0, { apiBase: url, timeout: 10000 })).id,
    await node.waitNBlocks(0, { apiBase: url, timeout: 10000 }),
    await node.waitForHeight(height, { apiBase: url, timeout: 10000 }),
  ]);
  tell("calls", { all: Object.keys(nodeInteraction), called: [...called] });
});
