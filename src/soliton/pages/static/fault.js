// Where a script has refused: function, line, expression, values and the calls that led there.

import { h } from "./dom.js";
import { clean } from "./format.js";
import { accountLink, trouble } from "./parts.js";
import { NodeError } from "./node.js";

/** @typedef {import("./json.js").Json} Json */

/** @param {Json} found the member `fault` of an answer */
export function fault(found) {
  if (!found) return null;
  return h("div", { class: "fault" },
    h("p", null, h("strong", null, clean(found.message, 300))),
    h("ol", { class: "plain" }, [found, ...(found.calls ?? [])].map((each, at) => h("li", null, at > 0 && "called by ", where(each)))));
}

/** @param {Json} each */
function where(each) {
  const values = Object.entries(each.values ?? {});
  return [
    h("code", null, clean(each.function ?? "the verifier", 60)), " of ", accountLink(String(each.script)),
    each.line !== undefined && [`, line ${each.line}, column ${each.column}`, each.source === "decompiled" && " of the source read out of the script"],
    each.expression && [": ", h("code", null, clean(each.expression, 200))],
    values.length > 0 && h("span", { class: "soft" }, " with ", values.map(([name, value]) => `${clean(name, 40)} = ${clean(value, 80)}`).join(", ")),
  ];
}

/** @param {unknown} error */
export function refusal(error) {
  return h("div", null, trouble(error), error instanceof NodeError && fault(error.body?.fault));
}
