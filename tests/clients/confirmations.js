"use strict";

// Sends a transfer and waits until blocks are on top of its own: node confirmations.js URL COUNT

const { broadcast, transfer } = require("@waves/waves-transactions");
const { waitNBlocks } = require("@waves/waves-transactions/dist/nodeInteraction");
const { create } = require("@waves/node-api-js");
const { run, tell } = require("./common");

const SEED = "soliton devnet account 1";
const TO = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF";

run(async () => {
  const [url, count] = process.argv.slice(2);
  const signed = transfer({ recipient: TO, amount: 1, chainId: "R" }, SEED);
  await broadcast(signed, url);
  const options = { maxWaitTime: 30000, confirmations: Number(count) };
  tell("waited", await create(url).tools.transactions.wait(signed, options));
  const status = await create(url).transactions.fetchStatus([signed.id]);
  tell("confirmations", status.statuses ? status.statuses[0].confirmations : status[0].confirmations);
  tell("height", await waitNBlocks(Number(count), { apiBase: url, timeout: 30000 }));
});
