"""The identity of a client from the system or TLS: an address, a local user, or a certificate.

What lives here: reading them, and the two kinds of names in ``Request.peer``. What does not: keys
for rate limits (``clients``), and permissions (the applications).
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
import struct
from typing import Final, cast

_CREDENTIALS: Final = getattr(socket, "SO_PEERCRED", None)
_UCRED: Final = struct.Struct("3i")


def user(uid: int) -> str:
    """Return the name of a local user."""
    return f"uid:{uid}"


def certificate(fingerprint: str) -> str:
    """Return the name of a client certificate, from its SHA-256 in hexadecimal."""
    return f"certificate:{fingerprint}"


def peer_of(transport: asyncio.BaseTransport) -> str:
    """Return the client's name; empty if it is unknown."""
    tls = transport.get_extra_info("ssl_object")
    if tls is not None:
        data = cast("ssl.SSLObject", tls).getpeercert(binary_form=True)
        return certificate(hashlib.sha256(data).hexdigest()) if data else ""
    plug = cast("socket.socket | None", transport.get_extra_info("socket"))
    if plug is None or plug.family != socket.AF_UNIX or _CREDENTIALS is None:
        return ""
    try:
        credentials = plug.getsockopt(socket.SOL_SOCKET, _CREDENTIALS, _UCRED.size)
    except OSError:
        return ""
    return user(_UCRED.unpack(credentials)[1])


def host_of(transport: asyncio.BaseTransport) -> str | None:
    """Return the address of a client, ``None`` if it is gone, empty if it has none."""
    plug = cast("socket.socket | None", transport.get_extra_info("socket"))
    try:
        peer = transport.get_extra_info("peername") if plug is None else plug.getpeername()
    except OSError:
        return None
    return peer[0] if isinstance(peer, tuple) else ""
