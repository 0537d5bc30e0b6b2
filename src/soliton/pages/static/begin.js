// Lets a browser paint the frame of a page, which its markup has, before it fetches and runs the modules
// that fill it.

/** A browser that says nothing of its paints is waited for so many milliseconds. */
const LATEST = 400;
const { entry, modules = "" } = document.documentElement.dataset;
let hasBegun = false;

function begin() {
  if (hasBegun) return;
  hasBegun = true;
  for (const each of modules.split(" ")) {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = new URL(each, import.meta.url).href;
    document.head.append(link);
  }
  import(`./${entry}`);
}

// A place in the page that has no frame there shows none.
const home = document.getElementById("home");
if (home && location.hash.length > 1) home.hidden = true;
new PerformanceObserver(begin).observe({ type: "paint", buffered: true });
setTimeout(begin, document.visibilityState === "hidden" ? 0 : LATEST);
