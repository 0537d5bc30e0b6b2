// Compiles the sources that standard input has as a JSON list, and tells for each the script in
// base64, or null where it was refused.
const { compile } = require('@waves/ride-js');
const { readFileSync } = require('fs');

const ESTIMATOR = 3;
const sources = JSON.parse(readFileSync(0, 'utf-8'));
sources.forEach((given, place) => {
  let script = null;
  try {
    const answer = compile(given.source, ESTIMATOR, given.compact, given.unused, given.libraries);
    if (!answer.error) script = answer.result.base64.replace('base64:', '');
  } catch (error) {
    script = null;
  }
  console.log(JSON.stringify({ name: String(place), value: script }));
});
