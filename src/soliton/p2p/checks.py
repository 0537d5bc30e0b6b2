"""The queues of peers' transactions and endorsements, which are checked in time slices.

What lives here: the queues and their scheduling. What does not: the check of a transaction
(``soliton.node.pool``), relaying new transactions (``soliton.sync.relay``), the limits of
endorsements (``soliton.sync.endorsements``).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Final

from soliton.chain.transactions import codec
from soliton.crypto import signatures
from soliton.errors import InputError
from soliton.node.node import Node
from soliton.node.pool import Origin
from soliton.p2p.core import Core, Effect
from soliton.parallel.bulk_verifier import BulkVerifier
from soliton.steps import Steps, interruptible
from soliton.sync.endorsements import CheckEndorsement
from soliton.sync.relay import CheckTransaction
from soliton.wire import messages

_log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 0.005
"""The length of a time slice."""
ENDORSEMENTS_BESIDE: Final = 8
"""When so many endorsements wait, another process verifies them: each takes a millisecond."""
ENDORSEMENTS_TOGETHER: Final = 64
"""Endorsements that the other process is given at once."""


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
        self._is_closed = False
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

    def close(self) -> None:
        """Check no more: the store may be closed."""
        self._is_closed = True
        self._queue.clear()
        if self._running is not None:
            _, steps = self._running
            self._running = None
            steps.close()

    def _plan(self) -> None:
        if not (self._planned or self._is_closed):
            self._planned = True
            self._call_soon(self._check)

    def _check(self) -> None:
        self._planned = False
        if self._is_closed:
            return
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


class EndorsementChecks:
    """The queue of peers' endorsements whose signatures are verified: one in a turn of the event
    loop, or by another process when there are many.
    """

    def __init__(
        self,
        core: Core,
        now: Callable[[], int],
        carry_out: Callable[[Iterable[Effect]], None],
        call_soon: Callable[[Callable[[], None]], object],
        on_done: Callable[[Future[None], Callable[[], None]], object],
        *,
        alone: bool,
    ) -> None:
        """The parameters are those of ``Jobs``; ``alone`` starts no process."""
        self._core = core
        self._now = now
        self._carry_out = carry_out
        self._call_soon = call_soon
        self._on_done = on_done
        self._verifier = BulkVerifier(starts=not alone)
        self._queue: deque[CheckEndorsement] = deque()
        self._work: Generator[Future[None] | None] | None = None
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return len(self._queue)

    def add(self, check: CheckEndorsement) -> None:
        """Queue a check."""
        if self._is_closed:
            return
        self._queue.append(check)
        if self._work is None:
            self._work = self._working()
            self._call_soon(self._step)

    def close(self) -> None:
        """Verify no more, and end the process."""
        self._is_closed = True
        self._queue.clear()
        self._verifier.close()

    def _step(self) -> None:
        assert self._work is not None, "a step follows another, or the first check"
        if self._is_closed:
            return
        try:
            wanted = next(self._work)
        except StopIteration:
            self._work = None
            return
        if wanted is None or wanted.done():
            self._call_soon(self._step)
        else:
            self._on_done(wanted, self._step)

    def _working(self) -> Generator[Future[None] | None]:
        while self._queue:
            if len(self._queue) < ENDORSEMENTS_BESIDE:
                check = self._queue.popleft()
                self._finish(check, is_valid=signatures.verify(*check.claim))
                yield None
                continue
            count = min(len(self._queue), ENDORSEMENTS_TOGETHER)
            checks = [self._queue.popleft() for _ in range(count)]
            self._verifier.begin()
            if not self._verifier.is_ready:
                for check in checks:
                    self._finish(check, is_valid=signatures.verify(*check.claim))
                    yield None
                continue
            batch = self._verifier.batch()
            batch.gather([check.claim for check in checks])
            batch.hurry()
            for place, check in enumerate(checks):
                is_valid = yield from batch.is_valid(place)
                self._finish(check, is_valid=is_valid)

    def _finish(self, check: CheckEndorsement, *, is_valid: bool) -> None:
        self._carry_out(self._core.endorsement_checked(check, is_valid=is_valid, now=self._now()))
