"use strict";

// @waves/signer with @waves/provider-seed, as web applications use them: node waves_signer.js URL SCRIPTS
//
// SCRIPTS is JSON: a dApp and the script of an asset. Every method is called; what was signed is in the
// chain, and is read back from there.

const { Signer } = require("@waves/signer");
// Its main file is made for browsers.
const { ProviderSeed } = require("@waves/provider-seed/dist/ProviderSeed");
const { libs, order } = require("@waves/waves-transactions");
const { CHAIN_ID, refusal, run, tell } = require("./common");

const [SEED, FRIEND, POOR] = ["soliton devnet account 3", "soliton devnet account 4", "nobody has this seed"];
const friend = libs.crypto.address(FRIEND, CHAIN_ID);
const COIN = 10 ** 8;

run(async () => {
  const [url, given] = process.argv.slice(2);
  const scripts = JSON.parse(given);
  const signer = new Signer({ NODE_URL: url, LOG_LEVEL: "error" });
  const info = async (id) => (await fetch(`${url}/transactions/info/${id}`)).json();
  const called = new Set();
  const api = new Proxy(signer, {
    get: (target, name) => (called.add(name), typeof target[name] === "function" ? target[name].bind(target) : target[name]),
  });
  await api.setProvider(new ProviderSeed(SEED));
  // A login before the network is known is one to mainnet.
  tell("network byte", await api.getNetworkByte());
  const user = await api.login();
  tell("user", user);

  // Sign, send and wait; gives what was sent.
  async function put(name, pipeline) {
    const sent = [].concat(await pipeline.broadcast({ confirmations: 0 }))[0];
    await api.waitTxConfirm(sent, 0);
    tell(name, { sent, info: await info(sent.id) });
    return sent;
  }

  const gold = await put("issue", api.issue({ name: "Gold", description: "bars", quantity: 1000, decimals: 2, reissuable: true }));
  const smart = await put("issue of a smart asset", api.issue({ name: "Smart", description: "", quantity: 10, decimals: 0,
    reissuable: false, script: scripts.asset }));
  await put("transfer", api.transfer({ recipient: friend, amount: 5, attachment: "72k1xXWG59fYdzSNoA" }));
  await put("transfer of an asset", api.transfer({ recipient: friend, amount: 40, assetId: gold.id }));
  await put("reissue", api.reissue({ assetId: gold.id, quantity: 7, reissuable: true }));
  await put("burn", api.burn({ assetId: gold.id, amount: 3 }));
  const lent = await put("lease", api.lease({ recipient: friend, amount: 1000 }));
  await put("cancel lease", api.cancelLease({ leaseId: lent.id }));
  await put("alias", api.alias({ alias: "signer-user" }));
  await put("mass transfer", api.massTransfer({ transfers: [{ recipient: friend, amount: 1 }, { recipient: "alias:R:signer-user", amount: 2 }] }));
  await put("data", api.data({ data: [{ key: "flag", value: true, type: "boolean" }, { key: "n", value: 7, type: "integer" },
    { key: "text", value: "grüße", type: "string" }, { key: "bytes", value: "base64:AQI=", type: "binary" }] }));
  await put("sponsorship", api.sponsorship({ assetId: gold.id, minSponsoredAssetFee: 2 }));
  await put("set asset script", api.setAssetScript({ assetId: smart.id, script: scripts.asset }));
  const pair = { amountAsset: gold.id, priceAsset: null };
  // Before version 4, orders count prices with the decimals of both assets.
  const common = { ...pair, amount: 10, price: COIN * 10 ** 6, matcherFee: 300000, matcherPublicKey: user.publicKey,
    timestamp: Date.now(), expiration: Date.now() + 86400000 };
  const order1 = order({ ...common, chainId: CHAIN_ID, version: 3, orderType: "buy" }, FRIEND);
  const order2 = order({ ...common, chainId: CHAIN_ID, version: 3, orderType: "sell" }, SEED);
  await put("exchange", api.exchange({ order1, order2, price: COIN, amount: 10, buyMatcherFee: 300000,
    sellMatcherFee: 300000, fee: 300000 }));
  await put("set script", api.setScript({ script: scripts.dapp }));
  await put("invoke", api.invoke({ dApp: user.address, call: { function: "keep", args: [{ type: "integer", value: 21 }] },
    payment: [], fee: 900000 }));

  const batch = await api.batch([{ type: 4, recipient: friend, amount: 11, fee: 500000 },
    { type: 12, data: [{ key: "batch", value: 1, type: "integer" }], fee: 500000 }]).broadcast({ confirmations: 0 });
  await api.waitTxConfirm(batch, 0);
  tell("batch", await Promise.all(batch.map((each) => info(each.id))));
  const [signed] = [].concat(await api.transfer({ recipient: friend, amount: 12, fee: 500000 }).sign());
  const sent = await api.broadcast(signed, { confirmations: 0 });
  await api.waitTxConfirm(sent, 0);
  tell("signed, then sent", { signed: signed.id, info: await info(signed.id) });

  tell("balance", await api.getBalance());
  tell("sponsored", await api.getSponsoredBalances());
  tell("left", (await (await fetch(`${url}/addresses/data/${user.address}`)).json()).map((each) => each.key));

  await api.logout();
  const poor = new Signer({ NODE_URL: url, LOG_LEVEL: "error" });
  await poor.setProvider(new ProviderSeed(POOR));
  await poor.login();
  tell("refused", await refusal(poor.transfer({ recipient: friend, amount: COIN }).broadcast({ confirmations: 0 })));
  const methods = Object.getOwnPropertyNames(Signer.prototype).filter((name) => !name.startsWith("_"));
  tell("methods", { all: methods, called: [...called] });
  process.exit(0);
});
