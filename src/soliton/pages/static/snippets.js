// How to ask for the same from a shell, from JavaScript and from Python.

import { h } from "./dom.js";
import { compact } from "./json.js";
import { BASE } from "./node.js";
import { copy } from "./parts.js";

/** @typedef {import("./json.js").Json} Json */

/** @param {string} text */
function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// A JSON string is one of JavaScript and of Python too, once these two are escaped.
/** @param {string} text */
function literal(text) {
  return JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

/**
 * @param {string} path
 * @param {Json} [body] posted, where there is one
 * @returns {Record<string, string>}
 */
export function texts(path, body) {
  const url = BASE + path;
  if (body === undefined) {
    return {
      curl: `curl -s ${shell(url)}`,
      JavaScript: `const answer = await fetch(${literal(url)});\nconsole.log(await answer.json());`,
      Python: `import json, urllib.request\n\nwith urllib.request.urlopen(${literal(url)}) as answer:\n    print(json.load(answer))`,
    };
  }
  const sent = compact(body);
  return {
    curl: `curl -s ${shell(url)} -H 'Content-Type: application/json' \\\n  --data-raw ${shell(sent)}`,
    JavaScript: `const answer = await fetch(${literal(url)}, {\n  method: "POST",\n  headers: { "Content-Type": "application/json" },\n  body: ${literal(sent)},\n});\nconsole.log(await answer.json());`,
    Python: `import json, urllib.request\n\nrequest = urllib.request.Request(\n    ${literal(url)},\n    data=${literal(sent)}.encode(),\n    headers={"Content-Type": "application/json"},\n)\nwith urllib.request.urlopen(request) as answer:\n    print(json.load(answer))`,
  };
}

/**
 * @param {string} path
 * @param {Json} [body]
 */
export function snippets(path, body) {
  return h("div", { class: "snippets" }, Object.entries(texts(path, body)).map(([name, text]) =>
    h("figure", null,
      h("figcaption", null, `As ${name} `, copy(text, `the ${name}`)),
      h("pre", { tabindex: 0 }, text))));
}
