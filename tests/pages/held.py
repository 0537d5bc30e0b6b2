"""Answers and frames that a page waits for, in the hands of a test.

What lives here: holding them, and letting them go. What does not: any check.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Final

from tests.e2e.browser import Page
from tests.pages.pages import prepared

_SCRIPT: Final = """
const gates = [];
window.hold = (pattern, most) => {
  const gate = { pattern: new RegExp(pattern), left: most, come: 0 };
  gate.opened = new Promise(done => { gate.open = done; });
  gates.push(gate);
};
window.letGo = () => gates.splice(0).forEach(each => each.open());
window.heldAnswers = () => gates.reduce((sum, each) => sum + each.come, 0);
window.fetch = (ask => async (path, ...more) => {
  const gate = gates.find(each => each.left > 0 && each.pattern.test(path));
  if (gate) gate.left -= 1;
  const answer = await ask(path, ...more);
  if (gate) {
    gate.come += 1;
    await gate.opened;
  }
  return answer;
})(window.fetch);
let frames = null;
window.holdFrames = () => { frames = []; };
window.letFramesGo = () => {
  const held = frames;
  frames = null;
  held.forEach(each => requestAnimationFrame(each));
};
window.requestAnimationFrame = (begin => what => frames ? frames.push(what) : begin(what))(
  window.requestAnimationFrame.bind(window));
"""
_A_MOMENT: Final = "new Promise(done => { setTimeout(done, 300); })"


def in_our_hands(page: Page) -> AbstractContextManager[None]:
    """Pages that are opened meanwhile have the functions that the others here call."""
    return prepared(page, _SCRIPT)


def hold(page: Page, pattern: str, most: int = 1) -> None:
    """Keep the next answers, so many at most, of addresses that a pattern fits."""
    page.run(f"hold({json.dumps(pattern)}, {most})")


def come(page: Page, count: int = 1) -> None:
    """Wait until so many answers are there and kept."""
    page.wait_for(f"heldAnswers() === {count}")


def let_go(page: Page) -> None:
    """Give the page what was kept, and a moment to do something with it."""
    page.run("letGo()")
    page.run(_A_MOMENT)


def a_moment(page: Page) -> None:
    """Wait long enough for something that must not happen."""
    page.run(_A_MOMENT)
