"use strict";

// Every call that node-api-js has: node node_api.js URL API_KEY

const {
  alias, broadcast, data, invokeScript, issue, lease, libs, setScript, sponsorship, transfer, waitForTx,
} = require("@waves/waves-transactions");
const { create } = require("@waves/node-api-js");
const { CHAIN_ID, refusal, run, tell } = require("./common");
const { TO } = require("./examples");

const ASSETS = "soliton devnet account 6";
const DAPP = "soliton devnet account 2";
const SOURCE = `{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
func twice(n: Int) = n + n
@Callable(i)
func keep(n: Int) = [IntegerEntry("n", twice(n))]
`;
const IMPORTING = `{-# STDLIB_VERSION 6 #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# IMPORT lib #-}
twice(1) == 2
`;
const LIBRARY = `{-# STDLIB_VERSION 6 #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# CONTENT_TYPE LIBRARY #-}
func twice(n: Int) = n + n
`;

run(async () => {
  const [url, key] = process.argv.slice(2);
  const called = new Set();
  const all = [];
  const api = recorded(create(url), "", called, all);
  const account = "soliton devnet account 5";
  const entries = [{ key: "api_a", value: 1 }, { key: "api_b", value: "x" }, { key: "c", value: true }];
  const written = data({ chainId: CHAIN_ID, version: 2, data: entries }, account);
  const paid = transfer({ chainId: CHAIN_ID, recipient: TO, amount: 7 }, account);
  for (const transaction of [written, paid]) {
    await broadcast(transaction, url);
    await waitForTx(transaction.id, { apiBase: url, timeout: 10000 });
  }
  const sender = "3MMw6bn4driqBo9CZHTJN5hHSSMEz2PMV27";
  tell("ids", { written: written.id, paid: paid.id });

  tell("node status", await api.node.fetchNodeStatus());
  tell("node version", await api.node.fetchNodeVersion());

  const { height } = await api.blocks.fetchHeight();
  const last = await api.blocks.fetchLast();
  tell("height", height);
  tell("last", last);
  tell("block at", await api.blocks.fetchBlockAt(height));
  tell("headers last", await api.blocks.fetchHeadersLast());
  tell("headers at", await api.blocks.fetchHeadersAt(height));
  tell("seq", await api.blocks.fetchSeq(height - 1, height));
  tell("headers seq", await api.blocks.fetchHeadersSeq(height - 1, height));
  tell("genesis", await api.blocks.fetchBlockAt(1));
  tell("block by id", await api.blocks.fetchBlockById(last.id));
  tell("height by id", await api.blocks.fetchHeightById(last.id));

  tell("balance", await api.addresses.fetchBalance(sender));
  tell("details", await api.addresses.fetchBalanceDetails(sender));
  tell("confirmations", await api.addresses.fetchBalanceConfirmations(sender, 1));
  tell("effective", await api.addresses.fetchEffectiveBalance(sender));
  tell("validate", await api.addresses.fetchValidate(sender));
  tell("addresses", await api.addresses.fetchAddresses());
  tell("public key", await api.addresses.fetchPublicKey(written.senderPublicKey));
  tell("data", await api.addresses.data(sender));
  tell("data matches", await api.addresses.data(sender, { matches: "api_.*" }));
  // The library's own name for it, `keys`, is one that nodes do not look at.
  tell("data keys", await api.addresses.data(sender, { key: ["c", "api_a"] }));
  tell("data key", await api.addresses.fetchDataKey(sender, "api_b"));

  tell("info", await api.transactions.fetchInfo(paid.id));
  tell("infos", await api.transactions.fetchMultipleInfo([paid.id, written.id]));
  tell("status", await api.transactions.fetchStatus([paid.id, written.id]));
  tell("unconfirmed", await api.transactions.fetchUnconfirmed());
  tell("unconfirmed size", await api.transactions.fetchUnconfirmedSize());
  tell("by address", await api.transactions.fetchTransactions(sender, 10));
  tell("fee", await api.transactions.fetchCalculateFee({
    type: 4, version: 3, senderPublicKey: paid.senderPublicKey, recipient: TO, amount: 1 }));
  tell("fee of data", await api.transactions.fetchCalculateFee({
    type: 12, version: 1, senderPublicKey: paid.senderPublicKey,
    data: [{ key: "k", type: "string", value: "v".repeat(2000) }] }));

  tell("hash", await api.utils.fetchHashSecure("waves-private-node"));
  tell("time", await api.utils.fetchNodeTime());
  tell("seed", await api.utils.fetchSeed());

  await furtherReads(api, { url, sender, height, last, paid, written });
  await assetsAndLeases(api, url);
  await scripts(api, url);
  await tools(api, url, sender);
  await operator(api, { url, key, sender, height });
  tell("all calls", all);
  tell("calls made", [...called]);
});

// The same functions, which note that they were called.
function recorded(part, prefix, called, all) {
  return Object.fromEntries(Object.entries(part).map(([name, each]) => {
    const path = prefix + name;
    if (typeof each !== "function") return [name, recorded(each, `${path}.`, called, all)];
    all.push(path);
    return [name, (...values) => (called.add(path), each(...values))];
  }));
}

async function put(url, transaction) {
  await broadcast(transaction, url);
  return waitForTx(transaction.id, { apiBase: url, timeout: 10000 });
}

async function furtherReads(api, { url, sender, height, last, paid, written }) {
  tell("multiple balances", await api.addresses.fetchMultipleBalance([sender, TO]));
  tell("effective confirmations", await api.addresses.fetchEffectiveBalanceConfirmations(sender, 1));
  tell("addresses seq", await api.addresses.fetchSeq(0, 1));
  tell("headers by id", await api.blocks.fetchHeadersById(last.id));
  tell("by generator", await api.blocks.fetchBlocksByAddress(last.generator, height, height));
  tell("delay", await api.blocks.fetchDelay(last.id, 1));
  tell("height by timestamp", await api.blocks.fetchHeightByTimestamp(last.timestamp));
  tell("first", await refusal(api.blocks.fetchFirst()));
  tell("serialised", await api.utils.fetchTransactionSerialize(paid));
  tell("hash fast", await api.utils.fetchHashFast("waves-private-node"));
  tell("long seed", await api.utils.fetchSeed(100));
  tell("sign with key", await refusal(api.utils.fetchSignPrivateKey("a", "b")));
  tell("rewards", await api.rewards.fetchRewards());
  tell("rewards at", await api.rewards.fetchRewards(height));
  tell("activation", await api.activation.fetchActivationStatus());
  tell("peers", [await api.peers.fetchAll(), await api.peers.fetchConnected(),
    await api.peers.fetchBlackListed(), await api.peers.fetchSuspended()]);
  tell("waiting none", await refusal(api.transactions.fetchUnconfirmedInfo(written.id)));
}

async function assetsAndLeases(api, url) {
  const common = { chainId: CHAIN_ID };
  const owner = libs.crypto.address(ASSETS, CHAIN_ID);
  const gold = issue({ ...common, name: "Gold", description: "bars", quantity: 1000, decimals: 2, reissuable: true }, ASSETS);
  const nft = issue({ ...common, name: "Painting", description: "", quantity: 1, decimals: 0, reissuable: false }, ASSETS);
  const drawing = issue({ ...common, name: "Drawing", description: "", quantity: 1, decimals: 0, reissuable: false }, ASSETS);
  const lent = lease({ ...common, recipient: TO, amount: 1000 }, ASSETS);
  for (const each of [gold, nft, drawing, lent, alias({ ...common, alias: "node-api" }, ASSETS)]) await put(url, each);
  await put(url, sponsorship({ ...common, assetId: gold.id, minSponsoredAssetFee: 3 }, ASSETS));
  await put(url, transfer({ ...common, recipient: TO, amount: 40, assetId: gold.id }, ASSETS));
  const { height } = await api.blocks.fetchHeight();
  await put(url, data({ ...common, data: [{ key: "later", value: 1 }] }, ASSETS));
  const ethId = `0x${Buffer.from(libs.crypto.base58Decode(gold.id).slice(0, 20)).toString("hex")}`;
  tell("asset ids", { owner, gold: gold.id, nft: nft.id, drawing: drawing.id, lease: lent.id });
  tell("asset", await api.assets.fetchDetails(gold.id));
  tell("assets", await api.assets.fetchAssetsDetails([gold.id, nft.id]));
  // The library writes two question marks, and no node knows a parameter `?id`.
  tell("asset of wallets", await refusal(api.eth.fetchEthAssetDetails([ethId])));
  tell("id of wallets", await api.assets.convertEthAssetId(ethId));
  tell("asset balances", await api.assets.fetchAssetsBalance(owner));
  tell("asset balance", await api.assets.fetchBalanceAddressAssetId(owner, gold.id));
  tell("nfts", await api.assets.fetchAssetsAddressLimit(owner, 10));
  const firstPage = await api.assets.fetchAssetsNft({ address: owner, limit: 1 });
  tell("nft pages", [firstPage, await api.assets.fetchAssetsNft({ address: owner, limit: 9, after: firstPage[0].assetId })]);
  tell("distribution", await api.assets.fetchAssetDistribution(gold.id, height, 10));
  tell("aliases", [await api.alias.fetchByAlias("node-api"), await api.alias.fetchByAddress(owner)]);
  tell("leases", [await api.leasing.fetchActive(TO), await api.leasing.fetchLeasingInfo([lent.id])]);
  tell("sponsored", await api.tools.addresses.availableSponsoredBalances(owner, 100000));
  const moved = await api.transactions.fetchTransactions(owner, 2);
  tell("assets of a transaction", await api.tools.addresses.getAssetsByTransaction(moved));
  tell("asset ids of a transaction", api.tools.addresses.getAssetIdListByTx(moved));
  const listed = await api.tools.addresses.getTransactionsWithAssets(owner, 2);
  tell("transactions with assets", { types: listed.transactions.map((each) => each.type), assets: Object.keys(listed.assets) });
}

async function scripts(api, url) {
  const common = { chainId: CHAIN_ID };
  const address = libs.crypto.address(DAPP, CHAIN_ID);
  const compiled = await api.utils.fetchCompileCode(SOURCE);
  tell("compiled", compiled);
  tell("estimated", await api.utils.fetchEstimate(compiled.script));
  tell("decompiled", await api.utils.fetchScriptDecompile(compiled.script));
  tell("imported", await api.utils.fetchCompileWithImports({ script: IMPORTING, imports: { lib: LIBRARY } }));
  tell("script meta", await refusal(api.utils.fetchScriptMeta(compiled.script)));
  await put(url, setScript({ ...common, script: compiled.script }, DAPP));
  tell("script info", await api.addresses.fetchScriptInfo(address));
  tell("script info meta", await api.addresses.fetchScriptInfoMeta(address));
  tell("evaluated", await api.utils.fetchEvaluate(address, "twice(21)"));
  const call = invokeScript({ ...common, dApp: address, call: { function: "keep", args: [{ type: "integer", value: 4 }] },
    payment: [] }, ASSETS);
  tell("validated", await api.debug.debugValidate(JSON.stringify(call)));
  tell("sent", await api.transactions.broadcast(call));
  const paid = transfer({ ...common, recipient: TO, amount: 8 }, ASSETS);
  tell("sent and waited for", { sent: paid.id, found: await api.tools.transactions.broadcast(paid, { confirmations: 0 }) });
  tell("waited", await api.tools.transactions.wait(call, { requestInterval: 20, maxWaitTime: 10000 }));
  // Sent again while it waits, it would be taken once more.
  tell("sent again", await refusal(api.transactions.broadcast(call)));
  tell("state changes", await api.debug.fetchStateChangesByTxId(call.id));
  tell("state changes of address", await refusal(api.debug.fetchStateChangesByAddress(address, 1)));
}

async function tools(api, url, sender) {
  tell("network", [await api.tools.blocks.getNetworkByte(), await api.tools.blocks.getNetworkCode()]);
  const watch = await api.tools.addresses.createWatch(TO, 20);
  const seen = new Promise((resolve) => watch.once("change-state", resolve));
  const paid = transfer({ chainId: CHAIN_ID, recipient: TO, amount: 9 }, ASSETS);
  await put(url, paid);
  const changes = await seen;
  // It would watch for ever.
  watch._addTimeout = () => {};
  tell("watched", { wanted: paid.id, seen: changes.map((each) => each.id) });
}

async function operator(api, { url, key, sender, height }) {
  tell("balance history", await api.debug.fetchBalanceHistory(sender));
  tell("info of node", await api.debug.fetchDebugInfo(key));
  tell("miners", await api.debug.fetchMinerInfo(key));
  tell("state", await api.debug.debugState(key));
  tell("state at", await api.debug.debugStateWaves(height, key));
  tell("state hash", await api.debug.debugStateHash(height));
  tell("printed", await refusal(api.debug.debugPrint("hello from node-api-js", key)));
  tell("config", await refusal(api.debug.fetchConfigInfo(key)));
  tell("portfolio", await refusal(api.debug.fetchPortfolios(sender, key)));
  tell("ban", await refusal(api.debug.postPeerToTheBanList("1.2.3.4:6868")));
  tell("wallet seed", await refusal(api.addresses.fetchSeed(sender)));
  const headers = { "X-API-Key": key };
  const added = await (await fetch(`${url}/addresses`, { method: "POST", headers })).json();
  tell("not deleted", await refusal(api.addresses.deleteAddressFromWallet(added.address)));
  tell("deleted", await api.addresses.deleteAddressFromWallet(added.address, { headers }));
  const top = (await api.blocks.fetchHeight()).height;
  const target = (await api.blocks.fetchBlockAt(top - 1)).id;
  tell("rolled back", { wanted: target, answer: await api.debug.debugRollback(top - 1, false, key) });
  tell("rolled back to", await refusal(api.debug.debugRollbackTo(target, key)));
}
