"use strict";

// What the library reports for transactions that the node refuses: node refusals.js URL

const { broadcast, data, libs, transfer } = require("@waves/waves-transactions");
const { create } = require("@waves/node-api-js");
const { CHAIN_ID, SEED, refusal, run, tell } = require("./common");
const { TO } = require("./examples");

run(async () => {
  const url = process.argv[2];
  const api = create(url);
  const pay = (more, seed = SEED) =>
    transfer({ chainId: CHAIN_ID, recipient: TO, amount: 1, ...more }, seed);
  const tryOut = async (name, transaction) => tell(name, await refusal(broadcast(transaction, url)));

  const other = pay({ amount: 2 });
  await tryOut("wrong signature", { ...pay({}), proofs: other.proofs });
  await tryOut("no proofs", { ...pay({}), proofs: [] });
  await tryOut("no funds", pay({}, "an account that nobody ever paid"));
  await tryOut("fee too small", pay({ fee: 99999 }));
  await tryOut("negative amount", { ...pay({}), amount: -1 });
  await tryOut("other network", pay({ chainId: "W", recipient: libs.crypto.address(SEED, "W") }));
  await tryOut("too old", pay({ timestamp: Date.now() - 3 * 3600 * 1000 }));
  await tryOut("two equal keys", data(
    { chainId: CHAIN_ID, data: [{ key: "a", value: 1 }, { key: "a", value: 2 }] }, SEED));
  const unknown = "1".repeat(32);
  tell("unknown transaction", await refusal(api.transactions.fetchInfo(unknown)));
  tell("unknown status", await api.transactions.fetchStatus([unknown]));
  tell("unknown key", await refusal(api.addresses.fetchDataKey(TO, "no such key")));
  tell("unknown block", await refusal(api.blocks.fetchBlockAt(999999)));
  tell("wrong address", await refusal(api.addresses.fetchBalance("3NnotAnAddress")));
});
