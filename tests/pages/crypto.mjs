// What the pages' cryptography gives, beside what the ecosystem's library gives: one line of JSON each.

import { createRequire } from "node:module";

const [, , directory, modules] = process.argv;
const ours = await import(`${directory}/crypto.js`);
const theirs = createRequire(`${modules}/`)("@waves/ts-lib-crypto");
const hex = (bytes) => Buffer.from(bytes).toString("hex");

for (const length of [0, 1, 55, 56, 111, 112, 127, 128, 129, 135, 136, 137, 300]) {
  const message = Uint8Array.from({ length }, (_, at) => (at * 7 + length) & 255);
  for (const name of ["sha256", "blake2b", "keccak"]) {
    console.log(JSON.stringify([`${name} ${length}`, hex(ours[name](message)), hex(theirs[name](message))]));
  }
}
for (const seed of ["", "soliton devnet account 1", "\u00e4\u{1f600}", "x".repeat(500)]) {
  const { privateKey, publicKey } = ours.keysOf(seed);
  const their = theirs.keyPair(seed);
  console.log(JSON.stringify([`keys ${seed}`, hex(privateKey) + hex(publicKey),
    hex(theirs.base58Decode(their.privateKey)) + hex(theirs.base58Decode(their.publicKey))]));
  console.log(JSON.stringify([`address ${seed}`, hex(ours.addressOf(publicKey, 82)), hex(theirs.base58Decode(theirs.address(seed, 82)))]));
  for (const length of [0, 32, 200]) {
    const message = Uint8Array.from({ length }, (_, at) => at & 255);
    const signature = ours.sign(privateKey, message);
    const isGood = theirs.verifySignature(publicKey, message, signature);
    message[length - 1] ^= 1;
    const isBad = length > 0 && theirs.verifySignature(publicKey, message, signature);
    console.log(JSON.stringify([`signature ${seed} ${length}`, `${isGood} ${isBad}`, "true false"]));
  }
}
