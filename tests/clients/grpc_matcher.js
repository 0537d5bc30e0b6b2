"use strict";

// Every call of the Scala matcher's extension, by @grpc/grpc-js: node grpc_matcher.js PORT SCHEMAS ADDRESS TRANSACTION
// (the directory of the schemas; the address in hex, the exchange in base64)

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const { run, tell } = require("./common");

run(async () => {
  const [port, schemas, owner, signed] = process.argv.slice(2);
  const definition = loader.loadSync("soliton/grpc_api/proto/waves_blockchain_api.proto", {
    includeDirs: [schemas], keepCase: true, longs: String, bytes: Buffer, enums: String, defaults: true, oneofs: true,
  });
  const Service = grpc.loadPackageDefinition(definition).waves.dex.grpc.integration.WavesBlockchainApi;
  const api = new Service(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const called = new Set(["GetUtxEvents"]);
  const one = (name, request) => new Promise((resolve) => {
    called.add(name);
    api[name](request, (error, found) => resolve(error ? { code: error.code, desc: error.metadata.get("desc") } : found));
  });

  const events = api.GetUtxEvents({});
  const first = new Promise((resolve) => events.once("data", resolve));
  events.on("error", () => {});
  tell("pool", (await first).switch.transactions.length);
  const added = new Promise((resolve) => events.once("data", resolve));
  const address = Buffer.from(owner, "hex");
  const asset_id = Buffer.alloc(32);
  tell("block", (await one("GetCurrentBlockInfo", {})).height);
  tell("feature", (await one("IsFeatureActivated", { feature_id: 1 })).is_activated);
  tell("description", (await one("AssetDescription", { asset_id })).maybe_description || null);
  tell("asset script", (await one("HasAssetScript", { asset_id })).has);
  tell("asset answer", (await one("RunAssetScript", { asset_id })).result || null);
  tell("script", (await one("HasAddressScript", { address })).has);
  tell("answer", (await one("RunAddressScript", { address })).result || null);
  tell("forged", (await one("ForgedOrder", { order_id: asset_id })).is_forged);
  tell("leased", (await one("GetOutgoingLeasing", { address })).outgoing_leasing);
  const whole = await one("GetAddressFullRegularBalance", { address });
  const partly = await one("GetAddressPartialRegularBalance", { address, asset_ids: [{ asset_id: Buffer.alloc(0) }] });
  tell("balances", [whole.balances.length, partly.balances.length, whole.balances[0].balance === partly.balances[0].balance]);
  const many = await one("GetBalances", { regular: [{ address, assets: [asset_id] }], outgoingLeasingAddresses: [address] });
  tell("many", [many.regular[0].amount[0].amount, many.outgoingLeasing[0].amount]);
  tell("checked", (await one("CheckAddress", { address })).successfully_checked);
  const message = Service.service.CheckedBroadcast.requestDeserialize(Buffer.from(signed, "base64"));
  tell("sent", (await one("CheckedBroadcast", message)).unconfirmed);
  tell("again", (await one("Broadcast", { transaction: message.transaction })).added);
  const found = (await added).update.added[0].transaction;
  tell("event", found.transaction.waves_transaction.exchange.amount);
  tell("status", (await one("GetStatuses", { transaction_ids: [found.id] })).transactions_statutes[0].status);
  tell("refused", (await one("GetOutgoingLeasing", { address: Buffer.alloc(3) })).code);
  tell("called", Object.keys(Service.service).filter((name) => !called.has(name)));
  events.cancel();
  api.close();
});
