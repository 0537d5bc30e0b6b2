// Making elements. What strangers wrote enters a page here and nowhere else, and always as text:
// there is no way from this module to HTML, to a script, or to an address outside of `safe`.

/** @typedef {Node | string | number | bigint | null | undefined | false} Child */
/** @typedef {{readonly length: number, readonly [index: number]: Children}} Many */
/** @typedef {Child | Many} Children */
/** @typedef {Record<string, unknown>} Attributes */

const SVG = "http://www.w3.org/2000/svg";
/**
 * Of a table's parts. They follow from the tags, until a style sheet lays the parts out as blocks (in narrow
 * windows): some browsers then forget that it is a table.
 * @type {Record<string, string>}
 */
const ROLES = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", th: "columnheader", td: "cell" };

/**
 * An element with attributes, listeners (`onclick` and the like take functions) and content.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes | null} [attributes]
 * @param {Children[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  if (ROLES[tag]) element.setAttribute("role", ROLES[tag]);
  dress(element, attributes ?? {});
  fill(element, children);
  return element;
}

/**
 * The same for drawings.
 * @param {string} tag
 * @param {Attributes | null} [attributes]
 * @param {Children[]} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  dress(element, attributes ?? {});
  fill(element, children);
  return element;
}

/**
 * Put this content in place of what an element holds.
 * @param {Element} element
 * @param {Children[]} children
 */
export function show(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * The same for what is drawn again and again: who has the keyboard on something with a `data-key` keeps it there.
 * @param {Element} element
 * @param {Children[]} children
 */
export function redraw(element, ...children) {
  const held = element.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
  show(element, ...children);
  if (held) /** @type {HTMLElement | undefined} */ ([...element.querySelectorAll("[data-key]")].find((each) => each.getAttribute("data-key") === held))?.focus({ preventScroll: true });
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function dress(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      if (typeof value !== "function") throw new TypeError(`${name} wants a function`);
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "href") {
      element.setAttribute(name, safe(String(value)));
    } else if (name === "value" && "value" in element) {
      /** @type {HTMLInputElement} */ (element).value = String(value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * An address that a link may have: a place in this page, or on a server by HTTP.
 * @param {string} address
 */
export function safe(address) {
  return /^(#|\/(?!\/)|\?|https?:\/\/)/.test(address) ? address : "#";
}

/**
 * @param {Element} element
 * @param {Children[]} children
 */
function fill(element, children) {
  element.append(...nodes(children));
}

/**
 * @param {unknown[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  /** @type {(Node | string)[]} */
  const found = [];
  for (const child of children) {
    if (Array.isArray(child)) found.push(...nodes(child));
    else if (child instanceof Node) found.push(child);
    else if (child !== null && child !== undefined && child !== false) found.push(String(child));
  }
  return found;
}

/**
 * The element with an id, which the page has from the start.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function at(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}
