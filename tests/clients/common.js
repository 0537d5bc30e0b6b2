"use strict";

// What the scripts share: one result per line, as JSON, for the test that started them.

const SEED = "waves private node seed with waves tokens";
const CHAIN_ID = "R";

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
