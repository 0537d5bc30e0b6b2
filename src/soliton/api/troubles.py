"""What went wrong around the node, as errors of the REST API: the disk, the store, the wallet's
file. Clients are told what it means for them; the operator finds the details in the log.

What lives here: the table, and how often the log has the same thing. What does not: refusals of
what clients sent (``translate``).
"""

from __future__ import annotations

import logging
import time
from typing import Final

from soliton.api import errors
from soliton.api.errors import ApiError, ErrorKind
from soliton.errors import EnvironmentProblem, SolitonError
from soliton.node.held_keys import SignerSilent
from soliton.node.wallet import WalletFileProblem
from soliton.storage.errors import (
    BelowProblem,
    DamagedStore,
    NotBelow,
    StorageProblem,
    StoreBusy,
    StoreFull,
)

LOG_SECONDS: Final = 10.0
"""How often the log has one kind of trouble."""

_KINDS: Final[tuple[tuple[type[SolitonError], ErrorKind], ...]] = (
    (StoreBusy, errors.STORE_BUSY),
    (StoreFull, errors.STORE_FULL),
    (NotBelow, errors.NOT_IN_FORK),
    (BelowProblem, errors.FORK_TROUBLE),
    (DamagedStore, errors.STORE_DAMAGED),
    (StorageProblem, errors.STORE_TROUBLE),
    (WalletFileProblem, errors.WALLET_NOT_WRITTEN),
    (SignerSilent, errors.SIGNER_SILENT),
)

_log = logging.getLogger(__name__)


class Troubles:
    """The troubles of one application."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: dict[int, float] = {}

    def answer(self, error: Exception) -> ApiError | None:
        """The API's form of a trouble, ``None`` for a fault of our own; the log is told as well."""
        for kind, answer in _KINDS:
            if isinstance(error, kind):
                if kind is not NotBelow:
                    self._log(answer.code, f"answered {answer.status}: {error}")
                return answer.error(message=str(error)) if "{" in answer.message else answer.error()
        return None

    def note(self, error: EnvironmentProblem) -> None:
        """An answer that had begun has broken off."""
        self._log(0, f"an answer broke off: {error}")

    def _log(self, code: int, words: str) -> None:
        now = time.monotonic()
        if now - self._told.get(code, -LOG_SECONDS) >= LOG_SECONDS:
            self._told[code] = now
            _log.error("%s", words)
