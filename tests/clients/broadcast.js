"use strict";

// Signs, broadcasts, waits for and reads back one example: node broadcast.js URL EXAMPLE

const { broadcast, waitForTx } = require("@waves/waves-transactions");
const { create } = require("@waves/node-api-js");
const { run, tell } = require("./common");
const { TO, make } = require("./examples");

run(async () => {
  const [url, name] = process.argv.slice(2);
  const api = create(url);
  const { transaction } = make(name);
  const sender = (await api.addresses.fetchPublicKey(transaction.senderPublicKey)).address;
  const before = await balances(api, sender);
  tell("sent", transaction);
  tell("broadcast", await broadcast(transaction, url));
  tell("mined", await waitForTx(transaction.id, { apiBase: url, timeout: 10000 }));
  tell("waited", await api.tools.transactions.wait(transaction, { maxWaitTime: 10000 }));
  tell("info", await api.transactions.fetchInfo(transaction.id));
  tell("status", await api.transactions.fetchStatus([transaction.id]));
  tell("before", before);
  tell("after", await balances(api, sender));
  if (transaction.type === 12) tell("entries", await api.addresses.data(sender));
});

async function balances(api, sender) {
  const balance = async (address) => (await api.addresses.fetchBalance(address)).balance;
  return { sender: await balance(sender), recipient: await balance(TO) };
}
