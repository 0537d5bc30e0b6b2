"""A book of ten thousand levels for the exchange page, where a matcher of a test has five.

What lives here: what the page's socket adds to the first message about a book. What does not: the
page, the matcher.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from tests.e2e.browser import Page
from tests.pages.pages import prepared

LEVELS: Final = 10_000
"""Of each side; ten orders stand in each, say, so there are 100,000 to a side."""
_SOCKET: Final = """
window.WebSocket = class extends WebSocket {
  set onmessage(hear) {
    super.onmessage = event => {
      const message = JSON.parse(event.data);
      if (message.T === "ob" && message.U === 0) {
        window.crowd = (price, amount) => hear({ data: JSON.stringify(
          { ...message, U: 1, a: [[price, amount]], b: [] }) });
        message.a ??= [];
        message.b ??= [];
        for (let at = 1; at <= LEVELS; at += 1) {
          message.a.push([(10 + at / 1000).toFixed(8), (1 + at % 7).toFixed(8)]);
          message.b.push([(1.5 - at / 10000).toFixed(8), (1 + at % 5).toFixed(8)]);
        }
      }
      hear({ data: JSON.stringify(message) });
    };
  }
};
"""


def crowd(page: Page) -> AbstractContextManager[None]:
    """Books of pages that are opened meanwhile are long."""
    return prepared(page, _SOCKET.replace("LEVELS", str(LEVELS)))
