"""Who asks: API keys, users of this machine and certificates with what they may do, how fast, and
under which host names.

What lives here: telling a caller by its key or as a peer, scopes, rates, the list of hosts. What
does not: the settings' file (``node.signer_settings``), and what a key may sign (``policy``).
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
"""What a caller may do: have things signed; see which keys there are; unlock and lock them; approve
and refuse what waits; load the rules again.
"""
MAX_KEY_CHARACTERS: Final = 1_024
LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
KEY_HEADER: Final = b"x-api-key"


class Caller(msgspec.Struct, frozen=True):
    """A caller of the settings: who shows the API key with this hash (empty for none), or who is
    one of ``peers`` (``web.peers``); ``rate`` is requests in a second, 0 for no limit.
    """

    name: str
    key_hash: bytes
    may: frozenset[str]
    rate: int = 0
    peers: frozenset[str] = frozenset()


class Callers:
    """All callers; ``now`` gives milliseconds that nobody sets."""

    def __init__(
        self, callers: Iterable[Caller], hosts: Iterable[str], now: Callable[[], int]
    ) -> None:
        self._callers = tuple(callers)
        self._hosts = LOCAL_HOSTS | {host.lower() for host in hosts}
        self._now = now
        self._known: dict[bytes, Caller] = {}
        self._peers = {peer: it for it in self._callers for peer in it.peers}
        self._left: dict[str, tuple[int, int]] = {}
        """Of callers with a rate: thousandths of requests that are left, and when that was so."""

    def caller_of(self, request: Request, scope: str | None) -> Caller:
        """Who asks for something that takes this scope, or any; raises ``RequestRefused``."""
        self._check_host(request)
        key = request.headers.get(KEY_HEADER, b"")
        caller = self._find(key) if key else self._peers.get(request.peer)
        if caller is None or (scope is not None and scope not in caller.may):
            words = "this takes an API key" + (f" that may {scope}" if scope else "")
            raise RequestRefused(NO_CALLER, words)
        if caller.rate:
            self._count(caller)
        return caller

    def _check_host(self, request: Request) -> None:
        """A page of a stranger's host name that leads here says that name."""
        host = header_text(request.headers.get(b"host", b"")).lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name not in self._hosts:
            raise RequestRefused(NO_HOST, "signer.hosts does not name this host")

    def _find(self, key: bytes) -> Caller | None:
        if not key or len(key) > MAX_KEY_CHARACTERS:
            return None
        known = self._known.get(key)
        if known is not None:
            return known
        offered = secure_hash(key)
        found = None
        for caller in self._callers:
            if caller.key_hash and hmac.compare_digest(offered, caller.key_hash):
                found = caller
        if found is not None:
            self._known[key] = found
        return found

    def _count(self, caller: Caller) -> None:
        now, most = self._now(), caller.rate * 1_000
        left, at = self._left.get(caller.name, (most, now))
        left = min(most, left + (now - at) * caller.rate)
        if left < 1_000:
            self._left[caller.name] = left, now
            raise RequestRefused(TOO_FAST, f"more than {caller.rate} requests a second", after=1)
        self._left[caller.name] = left - 1_000, now
