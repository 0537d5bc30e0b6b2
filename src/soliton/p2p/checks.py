"""The queue of peers' transactions, which are checked in time slices.

What lives here: the queue and its scheduling. What does not: the check (``soliton.node.pool``),
relaying new transactions (``soliton.sync.relay``).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from soliton.chain.transactions import codec
from soliton.errors import InputError
from soliton.node.node import Node
from soliton.node.pool import Origin
from soliton.p2p.core import Core, Effect
from soliton.steps import Steps, interruptible
from soliton.sync.relay import CheckTransaction
from soliton.wire import messages

_log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 0.005
"""The length of a time slice."""


class TransactionChecks:
    """The queue of peers' transactions to check."""

    def __init__(
        self,
        node: Node,
        core: Core,
        now: Callable[[], int],
        carry_out: Callable[[Iterable[Effect]], None],
        call_soon: Callable[[Callable[[], None]], object],
        timer: Callable[[], float],
    ) -> None:
        """The parameters are those of ``Jobs``."""
        self._node = node
        self._core = core
        self._now = now
        self._carry_out = carry_out
        self._call_soon = call_soon
        self._timer = timer
        self._queue: deque[CheckTransaction] = deque()
        self._planned = False
        self.is_checking = False
        """Whether the transaction that the pool is adding comes from a peer."""
        self._running: tuple[CheckTransaction, Steps[tuple[bytes, bool]]] | None = None

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return len(self._queue) + (self._running is not None)

    def add(self, check: CheckTransaction) -> None:
        """Queue a check."""
        self._queue.append(check)
        self._plan()

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            self._call_soon(self._check)

    def _check(self) -> None:
        self._planned = False
        until = self._timer() + CHECK_SECONDS
        while self._timer() < until and (self._running is not None or self._queue):
            if self._running is None:
                check = self._queue.popleft()
                self._running = check, interruptible(partial(self._take, check))
            check, steps = self._running
            self.is_checking = True
            try:
                next(steps)
            except StopIteration as end:
                transaction_id, is_new = end.value
            else:
                continue
            finally:
                self.is_checking = False
            self._running = None
            now = self._now()
            self._carry_out(self._core.checked(check, transaction_id, is_new=is_new, now=now))
        if self._running is not None or self._queue:
            self._plan()

    def _take(self, check: CheckTransaction) -> tuple[bytes, bool]:
        chain_id = self._node.network.chain_id
        message = check.message
        legacy = isinstance(message, messages.LegacyTransaction)
        decode = codec.decode_legacy if legacy else codec.decode_protobuf
        try:
            transaction = decode(message.data, chain_id)
            # As in the reference, which reads no transaction that breaks them: no block can hold
            # it, and peers blacklist who relays it.
            codec.validate(transaction)
            is_new = self._node.broadcast(transaction, origin=Origin.PEER)
        except InputError as error:
            _log.debug("a peer's transaction is refused: %s", error)
            return b"", False
        return transaction.id, is_new
