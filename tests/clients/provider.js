"use strict";

// @waves/signer with the provider that a signing service serves: node provider.js SIGNER NODE API-KEY APPROVER-KEY
//
// The keys stay with the service; what was signed is in the chain, and is read back from there.

const { Signer } = require("@waves/signer");
const { libs, order, verifyCustomData } = require("@waves/waves-transactions");
const { refusal, run, tell } = require("./common");

const { verifySignature, publicKey } = libs.crypto;
const OWNER = "soliton devnet account 7";
const FRIEND = "soliton devnet account 8";
const COIN = 10 ** 8;

run(async () => {
  const [place, node, apiKey, approverKey, given] = process.argv.slice(2);
  const scripts = JSON.parse(given);
  const source = await (await fetch(`${place}/pages/provider.js`)).text();
  const { ProviderSoliton } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const info = async (id) => (await fetch(`${node}/transactions/info/${id}`)).json();
  const friend = libs.crypto.address(FRIEND, "R");
  const asked = [];
  const approve = async (pending) => {
    asked.push(pending);
    const verb = pending.told[0].includes(" 3 WAVES") ? "refuse" : "approve";
    await fetch(`${place}/pending/${pending.pending}/${verb}`, { method: "POST", headers: { "X-API-Key": approverKey } });
  };
  const provider = new ProviderSoliton(`${place}/`, { apiKey: async () => apiKey, key: "owner", onWaiting: approve });
  const heard = [];
  provider.on("login", (user) => heard.push(["login", user.address])).once("logout", () => heard.push(["logout"]));
  const signer = new Signer({ NODE_URL: node, LOG_LEVEL: "error" });
  await signer.setProvider(provider);
  await signer.getNetworkByte();
  tell("user", await signer.login());
  tell("balance", await signer.getBalance());

  async function put(name, pipeline) {
    const sent = [].concat(await pipeline.broadcast({ confirmations: 0 }))[0];
    await signer.waitTxConfirm(sent, 0);
    tell(name, { sent, info: await info(sent.id) });
    return sent;
  }
  const gold = await put("issue", signer.issue({ name: "Gold", description: "bars", quantity: "9223372036854775807", decimals: 2, reissuable: true }));
  await put("transfer", signer.transfer({ recipient: friend, amount: "9007199254740993", assetId: gold.id }));
  await put("data", signer.data({ data: [{ key: "n", value: 7, type: "integer" }, { key: "t", value: "grüße", type: "string" }] }));
  await put("set script", signer.setScript({ script: scripts.dapp }));
  await put("invoke", signer.invoke({ dApp: provider.user.address, call: { function: "keep", args: [{ type: "integer", value: 21 }] }, payment: [] }));
  const batch = await signer.batch([{ type: 4, recipient: friend, amount: 11 }, { type: 8, recipient: friend, amount: COIN }]).broadcast({ confirmations: 0 });
  await signer.waitTxConfirm(batch, 0);
  tell("batch", await Promise.all(batch.map((each) => info(each.id))));
  const [signed] = [].concat(await signer.transfer({ recipient: friend, amount: 12 }).sign());
  const sent = await signer.broadcast(signed, { confirmations: 0 });
  await signer.waitTxConfirm(sent, 0);
  tell("signed, then sent", { signed: signed.id, info: await info(signed.id) });

  // More than a coin takes an approval; three are refused.
  await put("approved", signer.transfer({ recipient: friend, amount: 2 * COIN }));
  tell("refused by a person", await refusal(signer.transfer({ recipient: friend, amount: 3 * COIN }).sign()));
  tell("refused by a rule", await refusal(provider.sign([{ type: 13, script: null, version: 1 }])));
  tell("asked", asked.map((each) => each.told[0]));

  const own = publicKey(OWNER);
  const text = "hello, 世界";
  tell("message", verifyCustomData({ version: 1, publicKey: own, signature: await signer.signMessage(text), hash: "",
    binary: `base64:${Buffer.from(text).toString("base64")}` }));
  const entries = [{ key: "k", type: "integer", value: 7 }, { key: "b", type: "binary", value: "base64:AQ==" }];
  tell("typed data", verifyCustomData({ version: 2, publicKey: own, signature: await signer.signTypedData(entries), hash: "", data: entries }));
  const wanted = { orderType: "sell", amountAsset: gold.id, priceAsset: null, amount: 1000, price: COIN, matcherFee: 300000,
    matcherPublicKey: own, expiration: Date.now() + 86400000 };
  const offered = await signer.signOrder(wanted);
  const made = order({ ...wanted, version: 4, timestamp: offered.timestamp, senderPublicKey: own, chainId: 82 });
  const bytes = require("@waves/waves-transactions/dist/proto-serialize").orderToProtoBytes(made);
  tell("order", { version: offered.version, same: offered.id === made.id, verdict: verifySignature(own, bytes, offered.proofs[0]) });

  await signer.logout();
  tell("heard", heard);
  tell("nobody", await refusal(provider.signMessage("x")));
  const wrong = new ProviderSoliton(place, { apiKey: "wrong" });
  tell("wrong key", await refusal(wrong.login()));
  const other = new ProviderSoliton(place, { apiKey });
  await other.connect({ NODE_URL: node, NETWORK_BYTE: 87 });
  tell("another network", await refusal(other.login()));
  process.exit(0);
});
