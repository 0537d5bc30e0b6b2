"""Failures of the node's environment (disk, store, wallet file) as errors of the REST API.

What lives here: the table, and logging the details at a limited rate. What does not: errors of the
clients' input (``translate``).
"""

from __future__ import annotations

import logging
import time
from typing import Final

from soliton.api import errors
from soliton.api.errors import ApiError, ErrorKind
from soliton.errors import EnvironmentProblem, SolitonError
from soliton.node.remote_keys import SignerUnavailable
from soliton.node.wallet import WalletFileProblem
from soliton.storage.errors import (
    BelowProblem,
    DamagedStore,
    NotBelow,
    NotKept,
    StorageProblem,
    StoreBusy,
    StoreFull,
)

LOG_SECONDS: Final = 10.0
"""The minimum interval between log lines of one kind."""

_KINDS: Final[tuple[tuple[type[SolitonError], ErrorKind], ...]] = (
    (StoreBusy, errors.STORE_BUSY),
    (StoreFull, errors.STORE_FULL),
    (NotBelow, errors.NOT_IN_FORK),
    (NotKept, errors.NOT_KEPT),
    (BelowProblem, errors.FORK_TROUBLE),
    (DamagedStore, errors.STORE_DAMAGED),
    (StorageProblem, errors.STORE_TROUBLE),
    (WalletFileProblem, errors.WALLET_NOT_WRITTEN),
    (SignerUnavailable, errors.SIGNER_SILENT),
)

_log = logging.getLogger(__name__)


class Troubles:
    """Translates and logs the failures of one application."""

    __slots__ = ("_logged_at",)

    def __init__(self) -> None:
        self._logged_at: dict[int, float] = {}

    def answer(self, error: Exception) -> ApiError | None:
        """The API's form of a failure, which is logged; ``None`` for any other exception."""
        for kind, answer in _KINDS:
            if isinstance(error, kind):
                if kind not in (NotBelow, NotKept):
                    self._log(answer.code, f"answered {answer.status}: {error}")
                return answer.error(message=str(error)) if "{" in answer.message else answer.error()
        return None

    def note(self, error: EnvironmentProblem) -> None:
        """Log a failure that cut a response off."""
        self._log(0, f"an answer broke off: {error}")

    def _log(self, code: int, message: str) -> None:
        now = time.monotonic()
        if now - self._logged_at.get(code, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged_at[code] = now
            _log.error("%s", message)
