"use strict";

// A walk of ethers.js over /eth: node ethers.js URL
//
// A wallet gets coins and tokens, sends both on, and calls a dApp by its ABI, with what ethers.js does
// by itself (nonce, fee, type of transaction) wherever it does it right.

const ethers = require("ethers");
const { broadcast, issue, libs, setScript, transfer, waitForTx } = require("@waves/waves-transactions");
const { CHAIN_ID, refusal, run, tell } = require("./common");

const [OWNER, DAPP] = [3, 4].map((number) => `soliton devnet account ${number}`);
const COIN = 10 ** 8;
const KEY = "0x" + "01".repeat(32);
const FRIEND = "0x" + "ab".repeat(20);
const TOKEN_ABI = [
  "function name() view returns (string)",
  "function symbol() view returns (string)",
  "function decimals() view returns (uint8)",
  "function totalSupply() view returns (uint256)",
  "function balanceOf(address) view returns (uint256)",
  "function transfer(address to, uint256 amount)",
];

// The address of this chain that has the same 20 bytes in it.
function native(address) {
  const head = Uint8Array.from([1, CHAIN_ID.charCodeAt(0), ...ethers.getBytes(address)]);
  const sum = libs.crypto.keccak(libs.crypto.blake2b(head)).slice(0, 4);
  return libs.crypto.base58Encode(Uint8Array.from([...head, ...sum]));
}

function foreign(address) {
  return ethers.getAddress(ethers.hexlify(libs.crypto.base58Decode(address).slice(2, 22)));
}

// Numbers as strings: JSON has none so large.
function plain(value) {
  return JSON.parse(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? each.toString() : each)));
}

async function put(url, transaction) {
  await broadcast(transaction, url);
  await waitForTx(transaction.id, { apiBase: url, timeout: 10000 });
  return transaction;
}

async function told(name, response) {
  const receipt = await response.wait();
  tell(name, {
    response: plain(response), receipt: plain(receipt), id: libs.crypto.base58Encode(ethers.getBytes(response.hash)) });
}

run(async () => {
  const url = process.argv[2];
  const script = process.argv[3];
  const provider = new ethers.JsonRpcProvider(`${url}/eth`, undefined, { pollingInterval: 50, cacheTimeout: -1 });
  const wallet = new ethers.Wallet(KEY, provider);
  const common = { chainId: CHAIN_ID };

  tell("network", plain(await provider.getNetwork()));
  tell("fees", plain(await provider.getFeeData()));
  tell("empty", plain(await provider.getBalance(wallet.address)));
  await put(url, transfer({ ...common, recipient: native(wallet.address), amount: 10 * COIN }, OWNER));
  const gold = await put(url, issue({ ...common, name: "Gold", description: "", quantity: 5000, decimals: 2, reissuable: true }, OWNER));
  await put(url, transfer({ ...common, recipient: native(wallet.address), amount: 700, assetId: gold.id }, OWNER));
  await put(url, setScript({ ...common, script }, DAPP));
  tell("addresses", { wallet: native(wallet.address), friend: native(FRIEND), dapp: libs.crypto.address(DAPP, CHAIN_ID) });
  tell("funded", plain(await provider.getBalance(wallet.address)));
  const height = await provider.getBlockNumber();
  tell("height", height);

  const paid = await wallet.sendTransaction({ to: FRIEND, value: ethers.parseEther("2.5") });
  await told("payment", paid);
  tell("after payment", plain(await provider.getBalance(FRIEND)));
  tell("found", plain(await provider.getTransaction(paid.hash)));
  const block = await provider.getBlock((await paid.wait()).blockNumber, true);
  tell("block", { number: block.number, hash: block.hash, hashes: block.transactions,
    whole: plain(block.prefetchedTransactions), miner: native(block.miner), timestamp: block.timestamp,
    byHash: plain(await provider.getBlock(block.hash)) });
  tell("no block", await provider.getBlock(1000000));

  const token = new ethers.Contract(
    ethers.hexlify(libs.crypto.base58Decode(gold.id).slice(0, 20)), TOKEN_ABI, wallet);
  tell("token", plain({ name: await token.name(), symbol: await token.symbol(), decimals: await token.decimals(),
    supply: await token.totalSupply(), balance: await token.balanceOf(wallet.address), code: await provider.getCode(token.target) }));
  await told("tokens sent", await token.transfer(FRIEND, 250n));
  tell("tokens", plain([await token.balanceOf(wallet.address), await token.balanceOf(FRIEND)]));

  const dappAddress = libs.crypto.address(DAPP, CHAIN_ID);
  const abi = await (await fetch(`${url}/eth/abi/${dappAddress}`)).json();
  const dapp = new ethers.Contract(foreign(dappAddress), abi, wallet);
  const noAsset = ethers.ZeroHash;
  await told("call", await dapp.keep("key", [3n, 4n, 5n], true, "0x0102", [{ assetId: noAsset, amount: 7n }]));
  await told("default call", await dapp.getFunction("default")([]));

  tell("too much", plain(await refusal(wallet.sendTransaction({ to: FRIEND, value: ethers.parseEther("1000") }))));
  tell("wrong call", plain(await refusal(wallet.sendTransaction({ to: dapp.target, data: "0x01020304" }))));
  tell("nothing", plain(await refusal(wallet.sendTransaction({ to: FRIEND }))));
  const wrong = await refusal(wallet.sendTransaction({ to: FRIEND, value: 10n ** 10n, type: 2, maxFeePerGas: 1n,
    maxPriorityFeePerGas: 1n, gasLimit: 100000n }));
  tell("type 2", plain(wrong));
  tell("unknown method", plain(await refusal(provider.send("eth_mine", []))));
  tell("unknown transaction", [await provider.getTransaction(ethers.ZeroHash), await provider.getTransactionReceipt(ethers.ZeroHash)]);
  const many = await Promise.all(Array.from({ length: 150 }, () => provider.getBalance(FRIEND)));
  tell("batches", plain([...new Set(many)]));
  provider.destroy();
});
