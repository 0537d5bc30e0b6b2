"use strict";

// Transactions of version 1 of the oldest types, which the library does not sign any more.

const { libs, makeTxBytes } = require("@waves/waves-transactions");

// How many bytes the signed bytes of version 2 have more: after the type, and at the end.
const ADDED = { 3: [2, 1], 4: [1, 0], 5: [2, 0], 6: [2, 0], 8: [2, 0], 9: [2, 0], 10: [1, 0] };
const ALIAS = 10;

// `make` is one of the library's functions. Gives the transaction and the bytes that were signed.
function firstVersion(make, params, seed) {
  const { version, proofs, id, script, ...unsigned } = make({ ...params, version: 2 }, seed);
  const bytes = makeTxBytes({ ...unsigned, script: null, version: 2 });
  const [head, tail] = ADDED[unsigned.type];
  const body = Uint8Array.from([bytes[0], ...bytes.slice(1 + head, bytes.length - tail)]);
  // The id of an alias is that of its name.
  const named = unsigned.type === ALIAS ? Uint8Array.from([body[0], ...body.slice(35, -16)]) : body;
  const name = libs.crypto.base58Encode(libs.crypto.blake2b(named));
  const signature = libs.crypto.signBytes(seed, body);
  return { transaction: { ...unsigned, version: 1, signature, id: name }, body };
}

module.exports = { firstVersion };
