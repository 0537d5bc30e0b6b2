"use strict";

// Transactions of types 4 and 12 in all their versions, signed with one seed: `make(name)`, `names`.

const { data, makeTxBytes, transfer } = require("@waves/waves-transactions");
const { CHAIN_ID, SEED } = require("./common");
const { firstVersion } = require("./first_version");

const TO = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY";

const entries = [
  { key: "whole", value: 42 },
  { key: "largest", type: "integer", value: "9223372036854775807" },
  { key: "smallest", type: "integer", value: "-9223372036854775808" },
  { key: "yes", value: true },
  { key: "no", value: false },
  { key: "text", value: "grüße, 世界" },
  { key: "bytes", value: Uint8Array.from([0, 1, 254, 255]) },
  { key: "nothing", type: "binary", value: "base64:" },
];

const common = { chainId: CHAIN_ID };

const examples = {
  "transfer 1": () =>
    firstVersion(transfer, { ...common, recipient: TO, amount: 1001, attachment: "72k1xXWG59fYdzSNoA" }, SEED),
  "transfer 2": () =>
    transfer({ ...common, version: 2, recipient: TO, amount: 1002, attachment: "72k1xXWG59fYdzSNoA" }, SEED),
  "transfer 3": () =>
    transfer({ ...common, version: 3, recipient: TO, amount: 1003, attachment: "72k1xXWG59fYdzSNoA" }, SEED),
  "transfer 3 to alias": () =>
    transfer({ ...common, version: 3, recipient: "alias:R:somebody", amount: "9007199254740993" }, SEED),
  "data 1": () => data({ ...common, version: 1, data: entries }, SEED),
  "data 2": () => data({ ...common, version: 2, data: entries }, SEED),
  "data 2 with deletion": () =>
    data({ ...common, version: 2, data: [{ key: "whole" }, { key: "kept", value: "on" }] }, SEED),
};

// The transaction and the bytes that were signed.
function make(name) {
  const made = examples[name]();
  return made.body ? made : { transaction: made, body: makeTxBytes(made) };
}

module.exports = { TO, make, names: Object.keys(examples) };
