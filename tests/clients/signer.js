"use strict";

// Calls the signer as demo applications do, and looks for the result: node signer.js SIGNER NODE

const { libs, makeTxBytes, waitForTx } = require("@waves/waves-transactions");
const { SEED, run, tell } = require("./common");

run(async () => {
  const [signer, node] = process.argv.slice(2);
  const post = async (body) => {
    const headers = { Accept: "application/json", "Content-Type": "application/json" };
    const response = await fetch(`${signer}/data`, { method: "POST", headers, body });
    return { status: response.status, text: await response.text() };
  };
  const data = [
    { key: "integerVal", value: 1 },
    { key: "booleanVal", value: true },
    { key: "stringVal", value: "hello" },
    { key: "binaryVal", value: [1, 2, 3, 4] },
  ];
  const answer = await post(JSON.stringify({ seed: SEED, data }));
  const signed = JSON.parse(answer.text);
  const body = makeTxBytes(signed);
  tell("answer", answer);
  tell("valid", libs.crypto.verifySignature(signed.senderPublicKey, body, signed.proofs[0]));
  tell("id", libs.crypto.base58Encode(libs.crypto.blake2b(body)));
  tell("mined", await waitForTx(signed.id, { apiBase: node, timeout: 10000 }));
  tell("no funds", await post(JSON.stringify({ seed: "nobody ever paid this account", data })));
  tell("too large", await post(`{"seed":"${SEED}","data":[{"key":"a","value":${2n ** 63n}}]}`));
});
