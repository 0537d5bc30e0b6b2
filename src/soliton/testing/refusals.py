"""``refused``: what a test expects a chain to refuse.

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
    """What was refused: ``error`` is there once the block has ended."""

    error: NodeRefused | TransactionLost | InputError

    @property
    def message(self) -> str:
        """Why, in the node's words."""
        return str(self.error)


@contextmanager
def refused(
    message: str | re.Pattern[str] = "",
    *,
    code: int | None = None,
    function: str | None = None,
) -> Iterator[Refusal]:
    """What happens here is refused: by a node, by a script, in a block, or by the library before
    anything is sent.

    ``message`` is a part of the reason, or a pattern that is found in it; ``code`` is the node's
    number of the error; ``function`` the dApp's that refused. Raises ``AssertionError`` where
    nothing is refused, or for another reason.

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
        raise AssertionError(f"nothing was refused{_wanted(message)}")
    said = str(found.error)
    fits = message in said if isinstance(message, str) else bool(message.search(said))
    if not fits:
        raise AssertionError(f"refused, but not{_wanted(message)}: {said}") from found.error
    given = getattr(found.error, "code", None)
    if code is not None and given != code:
        raise AssertionError(f"refused with code {given}, not {code}: {said}") from found.error
    where = found.error.function if isinstance(found.error, ScriptRefused) else None
    if function is not None and where != function:
        raise AssertionError(f"{where} refused, not {function}: {said}") from found.error


def _wanted(message: str | re.Pattern[str]) -> str:
    text = message if isinstance(message, str) else message.pattern
    return f" with {text!r}" if text else ""
