"use strict";

// What the scripts share: one result per line, as JSON, for the test that started them.

const SEED = "waves private node seed with waves tokens";
const CHAIN_ID = "R";

// The libraries ask once a second whether something has happened: here it has, a moment later. What
// they wait for at most is longer, and stays as it is.
const PAUSE_MS = 1000;
const SHORT_MS = 20;
const usual = globalThis.setTimeout;
globalThis.setTimeout = (work, ms, ...more) => usual(work, ms > PAUSE_MS ? ms : Math.min(ms, SHORT_MS), ...more);

function tell(name, value) {
  process.stdout.write(JSON.stringify({ name, value: value === undefined ? null : value }) + "\n");
}

function run(main) {
  main().catch((error) => {
    process.stderr.write(`${error && error.stack ? error.stack : JSON.stringify(error)}\n`);
    process.exitCode = 1;
  });
}

// What the library throws for a call that is meant to fail.
async function refusal(promise) {
  try {
    return { accepted: await promise };
  } catch (error) {
    return typeof error === "string" ? { text: error } : { message: error.message, ...error };
  }
}

module.exports = { CHAIN_ID, SEED, refusal, run, tell };
