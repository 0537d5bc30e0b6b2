// Lets a browser paint the frame of a page, which its markup has, before it fetches and runs the modules
// that fill it. It is no module: where it stands in the markup a browser waits for it, and paints what is above.

/** A browser that says nothing of its paints is waited for so many milliseconds. */
const LATEST = 400;
const ROOT = document.documentElement;
const { entry = "", modules = "" } = ROOT.dataset;
const SCRIPT = /** @type {HTMLScriptElement} */ (document.currentScript);
const FROM = SCRIPT.src;
let hasBegun = false;

function begin() {
  if (hasBegun) return;
  hasBegun = true;
  for (const each of modules.split(" ")) {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = new URL(each, FROM).href;
    document.head.append(link);
  }
  // The rest of the markup may still be on its way, and the modules fill it.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", fill);
  else fill();
}

function fill() {
  import(new URL(entry, FROM).href);
}

SCRIPT.remove();
// Where a place is named, the frame of the home view is not shown.
if (location.hash.length > 1) ROOT.dataset.elsewhere = "";
new PerformanceObserver(begin).observe({ type: "paint", buffered: true });
setTimeout(begin, document.visibilityState === "hidden" ? 0 : LATEST);
