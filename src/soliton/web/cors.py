"""CORS: the headers for pages of other origins.

What lives here: the headers, for all services. What does not: reading settings, and adding the
headers to answers (the applications).

An origin is echoed rather than answered with ``*``: clients of the ecosystem send every request
with credentials, for which browsers do not accept ``*``. Answers therefore differ by origin, and
have a ``Vary`` header. ``null``, the origin of files and sandboxes, cannot be trusted and gets no
headers, as from the reference node.

Source: the Fetch standard, ``fetch.spec.whatwg.org``, "CORS protocol"; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Final

import msgspec
from msgspec.structs import force_setattr

from soliton.web.types import Headers

FROM_REQUEST: Final = "origin-from-request"
"""As an allowed origin: any page's."""
ANY: Final = "*"
"""The same for requests without credentials only."""
KEY_HEADERS: Final = ("X-API-Key", "api_key")
"""Pages of other origins may send these only if the settings allow it."""
REQUEST_HEADERS: Final = (
    "Authorization",
    "Content-Type",
    "X-Requested-With",
    "Timestamp",
    "Signature",
)
METHODS: Final = ("OPTIONS", "POST", "PUT", "GET", "DELETE")
MAX_ORIGIN_BYTES: Final = 512
"""A host name has at most 253 characters."""

_ORIGIN: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://[!-~]+")
VARY: Final = (b"vary", b"Origin")
_ORIGIN_NAME: Final = b"access-control-allow-origin"
_CREDENTIALS: Final = (b"access-control-allow-credentials", b"true")
_OPTIONS: Final = "OPTIONS"


def _listed(names: tuple[str, ...]) -> bytes:
    return ", ".join(names).encode("latin-1", "replace")


class Cors(msgspec.Struct, frozen=True, kw_only=True):
    """Which origins may read answers, and what they may send; ``exposed`` are headers of answers.

    Browsers cache a preflight response for ``seconds``, if given. The last three members follow
    from the others and are not given.
    """

    allows: bool = True
    origin: str = FROM_REQUEST
    request_headers: tuple[str, ...] = REQUEST_HEADERS
    methods: tuple[str, ...] = METHODS
    credentials: bool = True
    exposed: tuple[str, ...] = ()
    seconds: int | None = None
    always: Headers = ()
    """Headers also of answers to requests without an origin, for caches."""
    preflight: Headers = ()
    """Additional headers of a preflight response."""
    _more: Headers = ()

    def __post_init__(self) -> None:
        more: Headers = (_CREDENTIALS,) if self.credentials else ()
        if self.exposed:
            more += ((b"access-control-expose-headers", _listed(self.exposed)),)
        preflight: Headers = (
            (b"access-control-allow-headers", _listed(self.request_headers)),
            (b"access-control-allow-methods", _listed(self.methods)),
        )
        if self.seconds is not None:
            preflight += ((b"access-control-max-age", b"%d" % self.seconds),)
        force_setattr(self, "always", (VARY,) if self.allows else ())
        force_setattr(self, "_more", more)
        force_setattr(self, "preflight", preflight)

    def headers(self, method: str, origin: bytes | None) -> Headers:
        """Return the headers of the answer to a request with this method from this origin."""
        if origin is None or not self.allows:
            return self.always
        allowed = self._allowed(origin)
        if allowed is None:
            return self.always
        found = ((_ORIGIN_NAME, allowed), *self._more, VARY)
        return found + self.preflight if method == _OPTIONS else found

    def admits(self, origin: bytes | None, host: bytes) -> bool:
        """Whether a page may open a WebSocket on ``host``, which browsers leave to the server.
        Other clients send no origin.
        """
        if origin is None or origin.partition(b"://")[2] == host:
            return True
        if not self.allows:
            return False
        allowed = self._allowed(origin)
        return allowed is not None and allowed in (origin, ANY.encode())

    def _allowed(self, origin: bytes) -> bytes | None:
        origin = origin.partition(b" ")[0]
        if len(origin) > MAX_ORIGIN_BYTES or _ORIGIN.fullmatch(origin) is None:
            return None
        return origin if self.origin == FROM_REQUEST else self.origin.encode("latin-1", "replace")


CLOSED: Final = Cors(allows=False)
"""No other origin may read answers."""


def with_cors(headers: Headers, cors: Cors, method: str, origin: bytes | None) -> Headers:
    """Return the headers of an answer with the CORS headers, which replace its own."""
    added = cors.headers(method, origin)
    names = {name for name, _ in added}
    return (*(each for each in headers if each[0] not in names), *added)


def is_page_here(origin: bytes | None, host: bytes, named: Collection[str] = ()) -> bool:
    """Whether a page of this machine, or of a ``named`` origin, or no page at all sends a request.

    A name that an attacker's server has may lead to this machine, so the page's origin is not
    compared with the name alone that the request is for: it has to be an address, or ``localhost``.
    """
    if origin is None or origin.decode("latin-1") in named:
        return True
    authority = origin.partition(b"://")[2].decode("latin-1")
    if authority.encode("latin-1") != host:
        return False
    is_bracketed = authority.startswith("[")
    name = authority[1:].partition("]")[0] if is_bracketed else authority.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
