"""``refused``: expects that a chain rejects something.

What lives here: the context manager. What does not: the errors (``soliton.client.errors``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from soliton.client.errors import NodeRefused, ScriptRefused, TransactionLost
from soliton.errors import InputError

__tracebackhide__ = True


class Refusal:
    """A rejection; ``error`` is set at the end of the ``with`` block."""

    error: NodeRefused | TransactionLost | InputError

    @property
    def message(self) -> str:
        """The reason, in the words of the node."""
        return str(self.error)


@contextmanager
def refused(
    message: str | re.Pattern[str] = "",
    *,
    code: int | None = None,
    function: str | None = None,
) -> Iterator[Refusal]:
    """Assert that the ``with`` block is rejected: by a node, by a script, in a block, or by the
    library before it sends anything.

    ``message`` is a substring of the reason, or a pattern to search in it; ``code`` is the node's
    error code; ``function`` is the dApp's function that rejects. Raises ``AssertionError`` if
    nothing is rejected, or for another reason.

    >>> from soliton import Account
    >>> alice = Account.from_seed("soliton devnet account 1", "R")
    >>> with refused("negative") as refusal:
    ...     payment = alice.transfer(alice, -1)
    >>> "-1" in refusal.message
    True
    """
    __tracebackhide__ = True
    found = Refusal()
    try:
        yield found
    except (NodeRefused, TransactionLost, InputError) as error:
        found.error = error
    else:
        raise AssertionError(f"nothing was refused{_expected(message)}")
    reason = str(found.error)
    fits = message in reason if isinstance(message, str) else bool(message.search(reason))
    if not fits:
        raise AssertionError(f"refused, but not{_expected(message)}: {reason}") from found.error
    actual = getattr(found.error, "code", None)
    if code is not None and actual != code:
        raise AssertionError(f"refused with code {actual}, not {code}: {reason}") from found.error
    where = found.error.function if isinstance(found.error, ScriptRefused) else None
    if function is not None and where != function:
        raise AssertionError(f"{where} refused, not {function}: {reason}") from found.error


def _expected(message: str | re.Pattern[str]) -> str:
    text = message if isinstance(message, str) else message.pattern
    return f" with {text!r}" if text else ""
