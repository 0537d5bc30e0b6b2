"use strict";

// Calls of node-api-js that read: node node_api.js URL

const { broadcast, data, transfer, waitForTx } = require("@waves/waves-transactions");
const { create } = require("@waves/node-api-js");
const { CHAIN_ID, SEED, run, tell } = require("./common");
const { TO } = require("./examples");

run(async () => {
  const url = process.argv[2];
  const api = create(url);
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
});
