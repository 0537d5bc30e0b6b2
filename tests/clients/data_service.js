"use strict";

// Each method of the ecosystem's client of the data service: node data_service.js URL NAMES
//
// NAMES is a JSON object: ids of what the chain holds.

const DataServiceClient = require("@waves/data-service-client-js").default;
const { run, tell } = require("./common");

const [url, given] = process.argv.slice(2);
const names = JSON.parse(given);
const sent = [];

async function ask(address, options) {
  sent.push({ method: (options && options.method) || "GET", address });
  const answer = await fetch(address, options);
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text;
}

const called = new Set();

// The same methods, with a note of which were called.
function noted(methods, path) {
  const known = Object.entries(methods).map(([name, value]) => {
    const full = path ? `${path}.${name}` : name;
    if (typeof value !== "function") return [name, noted(value, full)];
    return [name, (...given) => { called.add(full); return value(...given); }];
  });
  return Object.fromEntries(known);
}

function namesOf(methods, path) {
  return Object.entries(methods).flatMap(([name, value]) => {
    const full = path ? `${path}.${name}` : name;
    return typeof value === "function" ? [full] : namesOf(value, full);
  });
}

const made = new DataServiceClient({ rootUrl: url, fetch: ask, parse: JSON.parse });
const client = noted(made, "");
const ids = (answer) => answer.data.map((each) => each && each.id);

async function everyPage(first) {
  const found = [];
  let answer = await first;
  while (answer) {
    found.push(...ids(answer));
    answer = answer.fetchMore ? await answer.fetchMore(2) : null;
    if (answer && answer.data.length === 0) break;
  }
  return found;
}

run(async () => {
  tell("asset", (await client.getAssets("WAVES")).data);
  tell("assets", ids(await client.getAssets("WAVES", names.asset, "unknown")));
  tell("many assets", ids(await client.getAssets(...Array(60).fill(names.asset))));
  tell("tickers", ids(await client.getAssetsByTicker("*")));
  tell("ticker", ids(await client.getAssetsByTicker("WAVES")));
  tell("pairs", (await client.getPairs(names.matcher)([names.pair, "WAVES/unknown"])).data);
  tell("exchange", (await client.getExchangeTxs(names.exchange)).data);
  tell("exchanges", ids(await client.getExchangeTxs()));
  tell("exchanges of", ids(await client.getExchangeTxs({
    sender: names.trader, amountAsset: names.pair.split("/")[0], priceAsset: names.pair.split("/")[1],
    timeStart: new Date(names.time).toISOString(), timeEnd: names.time,
  })));
  tell("exchange pages", await everyPage(client.getExchangeTxs({ matcher: names.matcher, limit: 2, sort: "asc" })));
  tell("transfer", (await client.getTransferTxs(names.transfer)).data);
  tell("transfer pages", await everyPage(client.getTransferTxs({ sender: names.sender, limit: 3 })));
  tell("transfers", ids(await client.getTransferTxs()));
  tell("transfers at a time", ids(await client.getTransferTxs({
    recipient: names.recipient, assetId: "WAVES", sort: "asc",
    timeStart: new Date(names.transferTime), timeEnd: names.transferTime,
  })));
  tell("mass transfers", ids(await client.getMassTransferTxs()));
  tell("mass transfers to", ids(await client.getMassTransferTxs({
    sender: names.massSender, recipient: names.massRecipient, assetId: names.massAsset,
  })));
  tell("mass transfer", (await client.getMassTransferTxs(names.massTransfer)).data);
  tell("mass transfer pages", await everyPage(client.getMassTransferTxs({ limit: 2 })));
  tell("alias", (await client.aliases.getById(names.alias)).data);
  tell("aliases", (await client.aliases.getByIdList([names.alias, "unknown"])).data);
  tell("aliases of", (await client.aliases.getByAddress(names.owner)).data);
  tell("aliases with broken ones", (await client.aliases.getByAddress(names.owner, { showBroken: true })).data);
  const [amount, price] = names.pair.split("/");
  tell("candles", (await client.getCandles(amount, price, {
    timeStart: new Date(names.time - 86400000), timeEnd: new Date(names.time), interval: "1d", matcher: names.matcher,
  })).data);
  tell("refusal", await client.getCandles(amount, price, { timeStart: 1, interval: "1m" }).catch((error) => String(error.message || error)));
  tell("not called", namesOf(made, "").filter((each) => !called.has(each)));
  tell("methods", [...new Set(sent.map((each) => each.method))].sort());
});
