// Encrypted seeds of the ecosystem's library, both ways: `node seeds.js PHRASE PASSWORD OURS`.
const crypto = require("@waves/ts-lib-crypto");

const [phrase, password, ours] = process.argv.slice(2);
const tell = (name, value) => console.log(JSON.stringify({ name, value }));
tell("made", crypto.encryptSeed(phrase, password));
tell("made in a hundred rounds", crypto.encryptSeed(phrase, password, 100));
tell("opened", crypto.decryptSeed(ours, password));
