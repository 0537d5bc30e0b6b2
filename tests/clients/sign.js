"use strict";

// Signs every example; tells the JSON that the library would send, and the signed bytes in hexadecimal.

const { default: stringify } = require("@waves/node-api-js/cjs/tools/stringify");
const { run, tell } = require("./common");
const { make, names } = require("./examples");

run(async () => {
  for (const name of names) {
    const { transaction, body } = make(name);
    const json = stringify(transaction);
    tell(name, { json, body: Buffer.from(body).toString("hex") });
  }
});
