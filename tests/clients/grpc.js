"use strict";

// Every call of a node's gRPC services, by @grpc/grpc-js with the messages that the ecosystem's package
// @waves/protobuf-serialization carries: node grpc.js NODE_PORT UPDATES_PORT TRANSACTION (base64)

const path = require("path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const { run, tell } = require("./common");

const ROOT = path.join(path.dirname(require.resolve("@waves/protobuf-serialization/package.json")), "proto");
const FILES = ["accounts", "assets", "blockchain", "blocks", "transactions"].map((name) => `waves/node/grpc/${name}_api.proto`);

run(async () => {
  const [nodePort, updatesPort, signed] = process.argv.slice(2);
  const definition = loader.loadSync([...FILES, "waves/events/grpc/blockchain_updates.proto"], {
    includeDirs: [ROOT], keepCase: true, longs: String, bytes: Buffer, enums: String, defaults: false, oneofs: true,
  });
  const { waves } = grpc.loadPackageDefinition(definition);
  const connect = (Service, port) => new Service(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const apis = Object.fromEntries(
    Object.entries(waves.node.grpc).filter(([, each]) => each.service).map(([name, each]) => [name, connect(each, nodePort)]),
  );
  const updates = connect(waves.events.grpc.BlockchainUpdatesApi, updatesPort);

  const one = (api, name, request) => new Promise((resolve) => {
    api[name](request, (error, found) => resolve(error ? { code: error.code, details: error.details } : found));
  });
  const all = (api, name, request, most = Infinity) => new Promise((resolve) => {
    const found = [];
    const call = api[name](request);
    call.on("data", (each) => { found.push(each); if (found.length >= most) { call.cancel(); } });
    call.on("error", (error) => resolve(found.length >= most ? found : { code: error.code, details: error.details }));
    call.on("end", () => resolve(found));
  });
  const hex = (bytes) => Buffer.from(bytes || []).toString("hex");
  const { AccountsApi, AssetsApi, BlockchainApi, BlocksApi, TransactionsApi } = apis;

  tell("height", await one(BlocksApi, "GetCurrentHeight", {}));
  const block = await one(BlocksApi, "GetBlock", { height: 2, include_transactions: true });
  const [transaction] = block.block.transactions;
  tell("block", [block.height, block.block.transactions.length]);
  const sender = transaction.waves_transaction.sender_public_key;
  const listed = await all(TransactionsApi, "GetTransactions", { sender });
  const ids = listed.map((each) => each.id);
  tell("range", (await all(BlocksApi, "GetBlockRange", { from_height: 1, to_height: 2 })).map((each) => each.height));
  tell("balances", (await all(AccountsApi, "GetBalances", { address: sender })).map((each) => each.balance));
  tell("script", await one(AccountsApi, "GetScript", { address: sender }));
  tell("leases", await all(AccountsApi, "GetActiveLeases", { address: sender }));
  tell("data", (await all(AccountsApi, "GetDataEntries", { address: sender })).map((each) => [each.entry.key, each.entry.int_value]));
  tell("alias", await one(AccountsApi, "ResolveAlias", { value: "nobody-at-all" }));
  tell("asset", await one(AssetsApi, "GetInfo", { asset_id: Buffer.alloc(32) }));
  tell("nfts", await all(AssetsApi, "GetNFTList", { address: sender, limit: 10 }));
  tell("activation", (await one(BlockchainApi, "GetActivationStatus", { height: 2 })).features.length);
  tell("target", Number((await one(BlockchainApi, "GetBaseTarget", {})).base_target) > 0);
  tell("score", hex((await one(BlockchainApi, "GetCumulativeScore", {})).score).length > 0);
  tell("transactions", listed.map((each) => [each.height, each.application_status]));
  tell("snapshots", (await all(TransactionsApi, "GetTransactionSnapshots", { transaction_ids: ids })).length);
  tell("changes", await all(TransactionsApi, "GetStateChanges", { transaction_ids: ids }));
  tell("statuses", (await all(TransactionsApi, "GetStatuses", { transaction_ids: [...ids, Buffer.alloc(32)] })).map((each) => each.status || "NOT_EXISTS"));
  tell("sign", (await one(TransactionsApi, "Sign", {})).code);
  const message = waves.node.grpc.TransactionsApi.service.Broadcast.responseDeserialize(Buffer.from(signed, "base64"));
  const sent = await one(TransactionsApi, "Broadcast", message);
  tell("sent", Boolean(sent.waves_transaction));
  tell("unconfirmed", (await all(TransactionsApi, "GetUnconfirmed", { sender })).length);
  tell("update", (await one(updates, "GetBlockUpdate", { height: 2 })).update.append.transaction_ids.length);
  tell("updates", (await one(updates, "GetBlockUpdatesRange", { from_height: 1, to_height: 2 })).updates.map((each) => each.height));
  tell("events", (await all(updates, "Subscribe", { from_height: 1 }, 3)).map((each) => each.update.height));
});
