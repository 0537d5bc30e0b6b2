"use strict";

// Compiles what standard input lists with the network's JavaScript build of its compiler.
// In: [{source, compact, remove_unused}], out: [{base64 and complexities} or {error}], both JSON.
// The argument is the directory whose node_modules has the library.

const { readFileSync } = require("fs");

const ESTIMATOR = 3;

console.log = console.error; // the library prints what it catches
const ride = require(require.resolve("@waves/ride-js", { paths: [process.argv[2]] }));

const programs = JSON.parse(readFileSync(0, "utf8"));
const told = programs.map((program) => {
  const done = ride.compile(program.source, ESTIMATOR, program.compact, program.remove_unused, {});
  if (done.error) return { error: String(done.error) };
  const { ast, bytes, ...told } = done.result;
  return told;
});
process.stdout.write(JSON.stringify(told));
