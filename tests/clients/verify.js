"use strict";

// Reads signed transactions from standard input, one per line; tells the library's verdict on each.

const { readFileSync } = require("node:fs");
const { libs, makeTxBytes } = require("@waves/waves-transactions");
const { run, tell } = require("./common");

run(async () => {
  // One transaction per line. The library's own reader keeps integers that JavaScript would round.
  const lines = readFileSync(0, "utf8").trim().split("\n");
  for (const [index, line] of lines.entries()) {
    const transaction = libs.marshall.json.parseTx(line);
    // The library's `verify` knows no protobuf versions; its parts do.
    const body = makeTxBytes(transaction);
    const [proof] = transaction.proofs;
    const valid = libs.crypto.verifySignature(transaction.senderPublicKey, body, proof);
    tell(String(index), { valid, id: libs.crypto.base58Encode(libs.crypto.blake2b(body)) });
  }
});
