"use strict";

// One transaction of every type and version that needs no script: node every_type.js URL
//
// Each is signed, broadcast, waited for and read back; at the end the state is read.

const {
  alias, broadcast, burn, cancelLease, data, exchange, issue, lease, libs, massTransfer, order,
  reissue, setScript, sponsorship, transfer, updateAssetInfo,
} = require("@waves/waves-transactions");
const { create } = require("@waves/node-api-js");
const { CHAIN_ID, run, tell } = require("./common");
const { firstVersion } = require("./first_version");

const [OWNER, FRIEND, MATCHER] = [7, 8, 9].map((number) => `soliton devnet account ${number}`);
const [owner, friend, matcher] = [OWNER, FRIEND, MATCHER].map((seed) => libs.crypto.address(seed, CHAIN_ID));
const matcherPublicKey = libs.crypto.publicKey(MATCHER);
const COIN = 10 ** 8;
const OLDEST = new Set([issue, transfer, reissue, burn, lease, cancelLease, alias]);

run(async () => {
  const url = process.argv[2];
  const api = create(url);

  // Gives the id.
  async function put(name, make, version, params, seed = OWNER) {
    const given = { chainId: CHAIN_ID, ...params };
    const sent = version === 1 && OLDEST.has(make)
      ? firstVersion(make, given, seed).transaction
      : make({ ...given, version }, seed);
    const answer = await broadcast(sent, url);
    const waited = await api.tools.transactions.wait(sent, { maxWaitTime: 10000, requestInterval: 20 });
    const info = await api.transactions.fetchInfo(sent.id);
    const status = (await api.transactions.fetchStatus([sent.id])).statuses[0];
    tell(`${name} ${version}`, { sent, answer, waited, info, status });
    return sent.id;
  }

  const assets = {};
  for (const version of [1, 2, 3]) {
    assets[version] = await put("issue", issue, version, {
      name: `Gold ${version}`, description: "bars, grüße", quantity: 10 ** 12, decimals: 8, reissuable: true });
  }
  const nft = await put("nft", issue, 3, {
    name: "Painting", description: "", quantity: 1, decimals: 0, reissuable: false });

  for (const version of [1, 2, 3]) {
    await put("alias", alias, version, { alias: `owner-${version}` });
  }
  await put("alias of friend", alias, 3, { alias: "friend" }, FRIEND);
  for (const version of [1, 2, 3]) {
    const assetId = assets[version];
    await put("transfer of coins", transfer, version, { recipient: "alias:R:friend", amount: 1000 + version });
    await put("transfer of an asset", transfer, version, { recipient: friend, assetId, amount: 10 ** 9 });
    await put("reissue", reissue, version, { assetId, quantity: 5, reissuable: version !== 3 });
    await put("burn", burn, version, { assetId, amount: 3 });
  }
  await put("transfer of the nft", transfer, 3, { recipient: friend, assetId: nft, amount: 1 });
  for (const version of [1, 2]) {
    const transfers = [{ recipient: friend, amount: 10 }, { recipient: "alias:R:friend", amount: 20 },
      { recipient: matcher, amount: 30 }];
    await put("mass transfer of coins", massTransfer, version, { transfers, attachment: "72k1xXWG59fYdzSNoA" });
    await put("mass transfer of an asset", massTransfer, version, { transfers, assetId: assets[1] });
  }

  const leases = {};
  for (const version of [1, 2, 3]) {
    const recipient = version === 2 ? "alias:R:friend" : friend;
    leases[version] = await put("lease", lease, version, { recipient, amount: version * COIN });
    const ended = await put("lease that ends", lease, version, { recipient, amount: 7 * COIN });
    await put("cancel lease", cancelLease, version, { leaseId: ended });
    leases[`ended ${version}`] = ended;
  }

  const entries = [{ key: "whole", value: 42 }, { key: "flag", value: true }, { key: "text", value: "世界" },
    { key: "bytes", value: Uint8Array.from([0, 255]) }];
  await put("data", data, 1, { data: entries });
  await put("data", data, 2, { data: [...entries, { key: "more", value: -1 }] });
  await put("deletion", data, 2, { data: [{ key: "flag" }, { key: "more" }] });
  await put("set script", setScript, 1, { script: null });
  await put("set script", setScript, 2, { script: null });

  for (const version of [1, 2]) {
    const assetId = assets[version];
    await put("sponsorship", sponsorship, version, { assetId, minSponsoredAssetFee: 5 });
    for (const each of [1, 2, 3]) {
      await put(`transfer for a fee in asset ${version}`, transfer, each,
        { recipient: owner, amount: 100, assetId: assets[3], feeAssetId: assetId, fee: 10 }, FRIEND);
    }
    // In version 1 the library can write no end of it.
    await put(`end of sponsorship ${version},`, sponsorship, 2, { assetId, minSponsoredAssetFee: null });
  }
  await put("sponsorship again", sponsorship, 2, { assetId: assets[2], minSponsoredAssetFee: 7 });

  // The friend buys from the owner, for coins: half of what both orders are for.
  function trade(version, buyVersion, sellVersion, sellFirst = false) {
    const common = { chainId: CHAIN_ID, matcherPublicKey, amountAsset: assets[1], priceAsset: null,
      amount: 2000, price: COIN / 10, matcherFee: 1000 };
    const made = (side, each, seed) => order(
      { ...common, orderType: side, version: each, ...(each > 2 ? { matcherFeeAssetId: assets[1] } : {}) }, seed);
    const both = [made("buy", buyVersion, FRIEND), made("sell", sellVersion, OWNER)];
    const [order1, order2] = sellFirst ? both.reverse() : both;
    return put(`exchange of orders ${buyVersion} and ${sellVersion},`, exchange, version, {
      order1, order2, amount: 1000, price: COIN / 10, buyMatcherFee: 400, sellMatcherFee: 300, fee: 300000 }, MATCHER);
  }
  await trade(1, 1, 1);
  await trade(2, 1, 2);
  await trade(2, 2, 3);
  await trade(2, 3, 1);
  await trade(3, 4, 4);
  await trade(3, 1, 4, true);
  await trade(3, 4, 2);
  await trade(3, 3, 3, true);

  await put("update", updateAssetInfo, 1, { assetId: assets[1], name: "Silver", description: "coins" });
  await readState(api, assets, nft, leases);
});

async function readState(api, assets, nft, leases) {
  const ids = Object.values(assets);
  const accounts = { owner, friend, matcher };
  tell("names", { ...accounts, assets, nft, leases });
  for (const [name, address] of Object.entries(accounts)) {
    const held = {};
    for (const id of ids) held[id] = (await api.assets.fetchBalanceAddressAssetId(address, id)).balance;
    tell(`balances of ${name}`, {
      coins: (await api.addresses.fetchBalance(address)).balance,
      details: await api.addresses.fetchBalanceDetails(address),
      assets: held,
      all: await api.assets.fetchAssetsBalance(address),
      nfts: await api.assets.fetchAssetsAddressLimit(address, 10),
      aliases: await api.alias.fetchByAddress(address),
      leases: await api.leasing.fetchActive(address),
    });
  }
  tell("assets", await api.assets.fetchDetails([...ids, nft]));
  tell("alias", await api.alias.fetchByAlias("friend"));
  tell("leases", await api.leasing.fetchLeasingInfo(Object.values(leases)));
  tell("data", await api.addresses.data(owner));
  const { height } = await api.blocks.fetchHeight();
  tell("height", height);
  tell("distribution", await api.assets.fetchAssetDistribution(assets[1], height - 1, 10));
}
