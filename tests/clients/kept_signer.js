"use strict";

// Everything that a signer which keeps keys can sign, made by the library without any key, and the
// library's verdict: node kept_signer.js SIGNER NODE API-KEY
//
// Transactions are sent to the node as well, which takes or refuses them.

const {
  alias, auth, broadcast, burn, cancelLease, cancelOrder, customData, data, exchange, invokeScript,
  issue, lease, libs, makeTxBytes, massTransfer, order, reissue, serializeCustomData, setAssetScript,
  setScript, sponsorship, transfer, updateAssetInfo, verifyAuthData, verifyCustomData,
  verifyWavesAuthData, wavesAuth,
} = require("@waves/waves-transactions");
const { create } = require("@waves/node-api-js");
const { default: parse } = require("@waves/node-api-js/cjs/tools/parse");
const { CHAIN_ID, run, tell } = require("./common");

const { publicKey, address, verifySignature, base58Decode, concat } = libs.crypto;
const OWNER = "soliton devnet account 7";
const FRIEND = "soliton devnet account 8";
const senderPublicKey = publicKey(OWNER);
const friend = address(FRIEND, CHAIN_ID);
const COIN = 10 ** 8;

run(async () => {
  const [signerUrl, nodeUrl, apiKey, scripts] = process.argv.slice(2);
  const api = create(nodeUrl);
  const { dapp, asset } = JSON.parse(scripts);

  async function sign(kind, value, key = "owner", more = {}) {
    const answer = await fetch(`${signerUrl}/sign`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-API-Key": apiKey },
      body: JSON.stringify({ key, [kind]: value, ...more }),
    });
    // Numbers that JavaScript would round stay texts.
    const told = parse(await answer.text());
    if (!told.signed) throw new Error(`${kind} ${JSON.stringify(value)}: ${JSON.stringify(told)}`);
    return told.signed;
  }

  // Old types are made in version 2, since the library makes no version 1 of them any more.
  async function put(name, make, version, params, key = "owner") {
    const made = make({ chainId: CHAIN_ID, senderPublicKey: publicKey(key === "owner" ? OWNER : FRIEND), ...params,
      version: version === 1 && OLD.has(make) ? 2 : version });
    const { id, proofs, ...asked } = { ...made, version };
    const signed = await sign("transaction", asked, key);
    // The library knows no signed bytes of version 1 of the oldest types; the node does.
    const knows = !(version === 1 && OLD.has(make));
    const verdict = knows
      ? verifySignature(signed.senderPublicKey, makeTxBytes(signed), signed.proofs[0])
      : "unknown";
    await broadcast(signed, nodeUrl);
    await api.tools.transactions.wait(signed, { maxWaitTime: 20000, requestInterval: 20 });
    const { statuses: [status] } = { statuses: await api.transactions.fetchStatus([signed.id]).then((x) => x.statuses) };
    tell(`${name} ${version}`, { type: signed.type, version: signed.version, verdict,
      same: version === 1 && OLD.has(make) ? null : signed.id === id, status: status.applicationStatus });
    return signed.id;
  }
  const OLD = new Set([issue, transfer, reissue, burn, lease, cancelLease, alias]);

  const assets = {};
  for (const version of [1, 2, 3]) {
    assets[version] = await put("issue", issue, version, {
      name: `Gold ${version}`, description: "bars, grüße", quantity: 10 ** 12, decimals: 8, reissuable: true, script: null });
    const assetId = assets[version];
    await put("alias", alias, version, { alias: `kept-${version}` });
    await put("transfer", transfer, version, { recipient: friend, amount: 1000 + version });
    await put("transfer to an alias", transfer, version, { recipient: "alias:R:kept-1", amount: 5, attachment: "72k1xXWG59fYdzSNoA" });
    await put("reissue", reissue, version, { assetId, quantity: 5, reissuable: true });
    await put("burn", burn, version, { assetId, amount: 3 });
    const leaseId = await put("lease", lease, version, { recipient: friend, amount: 7 * COIN });
    await put("cancel lease", cancelLease, version, { leaseId });
  }
  await put("large transfer", transfer, 3, { recipient: friend, amount: "9007199254740993" , assetId: await put("large", issue, 3, {
    name: "Large", description: "", quantity: "9223372036854775807", decimals: 0, reissuable: false }) });
  for (const version of [1, 2]) {
    await put("mass transfer", massTransfer, version, { transfers: [{ recipient: friend, amount: 10 }, { recipient: "alias:R:kept-1", amount: 20 }] });
    await put("data", data, version, { data: [{ key: "n", value: 42 }, { key: "b", value: true }, { key: "t", value: "世界" },
      { key: "x", value: Uint8Array.from([0, 255]) }, { key: "l", type: "integer", value: "9223372036854775807" }] });
    await put("sponsorship", sponsorship, version, { assetId: assets[version], minSponsoredAssetFee: 5 });
  }
  await put("transfer for a fee in an asset", transfer, 3, { recipient: friend, amount: 1, feeAssetId: assets[2], fee: 10 });
  const scripted = await put("issue with a script", issue, 3, { name: "Smart", description: "", quantity: 5, decimals: 0, reissuable: true, script: asset });
  for (const version of [1, 2]) {
    await put("set asset script", setAssetScript, version, { assetId: scripted, script: asset });
    await put("set script", setScript, version, { script: dapp, fee: 4000000 });
    await put("invoke", invokeScript, version, { dApp: address(OWNER, CHAIN_ID), fee: 900000,
      call: { function: "keep", args: [{ type: "integer", value: 21 }] }, payment: [] }, "friend");
  }
  await put("end of the script", setScript, 2, { script: null, fee: 4000000 });
  await put("update", updateAssetInfo, 1, { assetId: assets[1], name: "Silver", description: "coins" });

  // Orders of all versions, and their exchange by a third account.
  for (const version of [1, 2, 3, 4]) {
    const orders = {};
    for (const [side, key, seed] of [["buy", "friend", FRIEND], ["sell", "owner", OWNER]]) {
      const made = order({ chainId: CHAIN_ID, version, orderType: side, senderPublicKey: publicKey(seed), matcherPublicKey: senderPublicKey,
        amountAsset: assets[1], priceAsset: null, amount: 2000, price: COIN / 10, matcherFee: 300000 });
      const { id, proofs, ...asked } = made;
      orders[side] = await sign("order", asked, key);
      tell(`${side} order ${version}`, { same: orders[side].id === id,
        verdict: verifySignature(publicKey(seed), libs.marshall.binary ? orderBytes(made) : made, orders[side].proofs[0]) });
    }
    const versions = version === 4 ? [3] : version === 1 ? [1, 2, 3] : [2, 3];
    for (const each of versions) {
      await put(`exchange of orders ${version},`, exchange, each, { order1: orders.buy, order2: orders.sell,
        amount: 500, price: COIN / 10, buyMatcherFee: 100, sellMatcherFee: 100, fee: 900000 });
    }
  }

  const orderId = assets[1];
  const cancelled = await sign("cancelOrder", { orderId });
  tell("cancel order", { verdict: verifySignature(senderPublicKey, concat(base58Decode(senderPublicKey), base58Decode(orderId)), cancelled.signature),
    same: cancelOrder({ orderId, senderPublicKey }).hash === cancelled.hash });
  const said = { host: "wallet.example", data: "grüße" };
  const signedIn = await sign("auth", said);
  tell("auth", { verdict: verifyAuthData(signedIn, said, CHAIN_ID), same: auth({ ...said, publicKey: senderPublicKey }, undefined, CHAIN_ID).hash === signedIn.hash });
  const timestamp = Date.now();
  const waves = await sign("wavesAuth", { timestamp });
  tell("wavesAuth", { verdict: verifyWavesAuthData(waves, { publicKey: senderPublicKey, timestamp }, CHAIN_ID), same: waves.address === address(OWNER, CHAIN_ID) });
  const bytes = { version: 1, binary: "base64:AQIDBA==" };
  const entries = { version: 2, data: [{ key: "k", type: "integer", value: 7 }, { key: "b", type: "binary", value: "base64:AQ==" }, { key: "s", type: "string", value: "ü" }, { key: "f", type: "boolean", value: true }] };
  for (const each of [bytes, entries]) {
    const signed = await sign("customData", each);
    tell(`custom data ${each.version}`, { verdict: verifyCustomData(signed), same: customData({ ...each, publicKey: senderPublicKey }).hash === signed.hash });
  }
  const text = await sign("customData", { text: "hello, 世界" });
  tell("text", { verdict: verifyCustomData(text), same: Buffer.from(text.binary.slice(7), "base64").toString() === "hello, 世界" });
});

function orderBytes(made) {
  const { binary } = libs.marshall;
  return made.version === 4 ? require("@waves/waves-transactions/dist/proto-serialize").orderToProtoBytes(made) : binary.serializeOrder(made);
}
