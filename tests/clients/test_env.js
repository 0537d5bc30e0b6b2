"use strict";

// @waves/js-test-env without surfboard, as programs in a browser or a REPL use it: node test_env.js URL

const { run, tell } = require("./common");
const augment = require("@waves/js-test-env/augment").default;

const SCRIPT = `
{-# STDLIB_VERSION 5 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func give(amount: Int) = if (amount > 3) then throw("too much") else [ScriptTransfer(i.caller, amount, unit)]
`;

run(async () => {
  const url = process.argv[2];
  augment(globalThis);
  globalThis.env = {
    API_BASE: url, CHAIN_ID: "R", SEED: "waves private node seed with waves tokens", timeout: 60000, file: () => SCRIPT,
  };
  await setupAccounts({ dapp: 10 ** 8, friend: 10 ** 8 });
  const before = await balance(address(accounts.friend));
  const paid = transfer({ recipient: address(accounts.friend), amount: 25 });
  await broadcast(paid);
  const mined = await waitForTx(paid.id);
  tell("transfer", { status: mined.applicationStatus, received: (await balance(address(accounts.friend))) - before });
  const set = setScript({ script: compile(file("any.ride")) }, accounts.dapp);
  await broadcast(set);
  await waitForTx(set.id);
  const call = invokeScript({
    dApp: address(accounts.dapp), call: { function: "give", args: [{ type: "integer", value: 4 }] }, payment: [],
  }, accounts.friend);
  const refused = await broadcast(call).then(() => null, (error) => error.message);
  tell("refused", refused.includes("too much") ? "too much" : refused);
  const height = await currentHeight();
  tell("confirmations", (await waitForTxWithNConfirmations(paid.id, 0)).height <= height);
});
