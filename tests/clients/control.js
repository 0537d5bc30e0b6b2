"use strict";

// ethers.js over /eth of a devnet, telling it what to do under the names of anvil and Hardhat:
// node control.js URL

const ethers = require("ethers");
const { run, tell } = require("./common");

const SOMEBODY = "0x" + "cd".repeat(20);

run(async () => {
  const url = process.argv[2];
  const provider = new ethers.JsonRpcProvider(`${url}/eth`, undefined, { cacheTimeout: -1 });
  const send = (method, ...params) => provider.send(method, params);
  const state = async () => ({
    height: await provider.getBlockNumber(),
    balance: (await provider.getBalance(SOMEBODY)).toString(),
    time: (await provider.getBlock("latest")).timestamp,
  });
  const errors = {};
  const refused = async (name, method, ...params) => {
    errors[name] = await send(method, ...params).then(() => null, (error) => (error.error || error).message);
  };

  await send("evm_setAutomine", false);
  tell("automine", await send("hardhat_getAutomine"));
  tell("start", await state());
  const id = await send("evm_snapshot");
  tell("set", [await send("anvil_setBalance", SOMEBODY, ethers.toQuantity(ethers.parseEther("3"))), await state()]);
  tell("hardhat", [await send("hardhat_setBalance", SOMEBODY, "0xde0b6b3a7640000"), await state()]);
  await send("anvil_addBalance", SOMEBODY, "0xde0b6b3a7640000");
  tell("added", await state());
  tell("mined", [await send("hardhat_mine", "0x3e8", "0x3c"), await state()]);
  tell("mine", [await send("evm_mine"), await state()]);
  tell("offset", await send("evm_increaseTime", 3600));
  await send("evm_mine");
  tell("later", await state());
  const next = (await state()).time + 86400;
  await send("evm_setNextBlockTimestamp", next);
  await send("anvil_mine");
  tell("next", [next, await state()]);
  await send("anvil_reorg", { depth: 2, tx_block_pairs: [] });
  tell("reorganized", await state());
  await send("anvil_rollback", 2);
  tell("rolled back", await state());
  tell("impersonated", [await send("anvil_impersonateAccount", SOMEBODY), await send("hardhat_stopImpersonatingAccount", SOMEBODY)]);
  tell("dropped", [await send("anvil_dropTransaction", "0x" + "11".repeat(32)), await send("hardhat_dropTransaction", "0x" + "11".repeat(32))]);
  tell("pool", await send("txpool_status"));
  tell("metadata", await send("hardhat_metadata"));
  const dumped = await send("anvil_dumpState");
  tell("reverted", [await send("evm_revert", id), await send("anvil_revert", id), await send("evm_revert", "0x77"), await state()]);
  tell("loaded", [await send("anvil_loadState", dumped), await state()]);
  tell("reset", [await send("anvil_reset"), await state()]);
  await refused("amount", "anvil_setBalance", SOMEBODY, "lots");
  await refused("address", "anvil_setBalance", "0x12", "0x1");
  await refused("blocks", "anvil_mine", "0xffffffffff");
  await refused("past", "evm_setNextBlockTimestamp", 1);
  await refused("fork", "hardhat_reset", { forking: { jsonRpcUrl: "http://127.0.0.1:1" } });
  await refused("unknown", "anvil_setNonce", SOMEBODY, "0x1");
  await refused("depth", "anvil_reorg", { depth: 1000000, tx_block_pairs: [] });
  await refused("state", "anvil_loadState", "0x1234");
  tell("errors", errors);
  provider.destroy();
});
