"""Authentication of callers: API keys, local users and certificates; scopes, rate limits and the
allowed ``Host`` headers.

What lives here: those checks. What does not: the settings' file (``node.signer_settings``), and
what a key may sign (``policy``).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from soliton.crypto.hashes import secure_hash
from soliton.signer.errors import NO_CALLER, NO_HOST, TOO_FAST, RequestRefused
from soliton.web.request import Request, header_text

SCOPES: Final = ("sign", "list", "unlock", "approve", "operate")
"""What a caller may do: request signatures; list the keys; unlock and lock them; approve and refuse
pending requests; reload the rules and read the audit log.
"""
MAX_KEY_CHARACTERS: Final = 1_024
LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
KEY_HEADER: Final = b"x-api-key"


class Caller(msgspec.Struct, frozen=True):
    """A caller of the settings, known by the hash of its API key (empty for none) or as one of
    ``peers`` (``web.peers``). ``rate`` is in requests a second, 0 for no limit.
    """

    name: str
    key_hash: bytes
    may: frozenset[str]
    rate: int = 0
    peers: frozenset[str] = frozenset()


class Callers:
    """All callers; ``now`` returns monotonic milliseconds."""

    def __init__(
        self, callers: Iterable[Caller], hosts: Iterable[str], now: Callable[[], int]
    ) -> None:
        self._callers = tuple(callers)
        self._hosts = LOCAL_HOSTS | {host.lower() for host in hosts}
        self._now = now
        self._known: dict[bytes, Caller] = {}
        self._peers = {peer: it for it in self._callers for peer in it.peers}
        self._left: dict[str, tuple[int, int]] = {}
        """The token bucket of each caller with a rate: thousandths of a request, and its time."""

    def caller_of(self, request: Request, scope: str | None) -> Caller:
        """Return the caller of a request that needs this scope, or none; raises
        ``RequestRefused``.
        """
        self._check_host(request)
        key = request.headers.get(KEY_HEADER, b"")
        caller = self._find(key) if key else self._peers.get(request.peer)
        if caller is None or (scope is not None and scope not in caller.may):
            message = "this takes an API key" + (f" that may {scope}" if scope else "")
            raise RequestRefused(NO_CALLER, message)
        if caller.rate:
            self._count(caller)
        return caller

    def _check_host(self, request: Request) -> None:
        """Refuse other host names, against DNS rebinding."""
        host = header_text(request.headers.get(b"host", b"")).lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name not in self._hosts:
            raise RequestRefused(NO_HOST, "signer.hosts does not name this host")

    def _find(self, key: bytes) -> Caller | None:
        if len(key) > MAX_KEY_CHARACTERS:
            return None
        if (known := self._known.get(key)) is not None:
            return known
        key_hash = secure_hash(key)
        for caller in self._callers:
            if caller.key_hash and hmac.compare_digest(key_hash, caller.key_hash):
                self._known[key] = caller
        return self._known.get(key)

    def _count(self, caller: Caller) -> None:
        now, most = self._now(), caller.rate * 1_000
        left, at = self._left.get(caller.name, (most, now))
        left = min(most, left + (now - at) * caller.rate)
        if left < 1_000:
            self._left[caller.name] = left, now
            raise RequestRefused(TOO_FAST, f"more than {caller.rate} requests a second", after=1)
        self._left[caller.name] = left - 1_000, now
