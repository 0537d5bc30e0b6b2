"""Who a client is by what the system or TLS says: an address, a local user, or a certificate.

What lives here: asking for them, and the two names that ``Request.peer`` may have. What does not:
telling addresses apart (``clients``), and what anybody may do (the applications).
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
    """The name of a user, by number."""
    return f"uid:{uid}"


def certificate(fingerprint: str) -> str:
    """The name of a client's certificate: its SHA-256, in hexadecimal."""
    return f"certificate:{fingerprint}"


def peer_of(transport: asyncio.BaseTransport) -> str:
    """The client's name, empty where nothing is known of it."""
    tls = transport.get_extra_info("ssl_object")
    if tls is not None:
        data = cast("ssl.SSLObject", tls).getpeercert(binary_form=True)
        return certificate(hashlib.sha256(data).hexdigest()) if data else ""
    plug = cast("socket.socket | None", transport.get_extra_info("socket"))
    if plug is None or plug.family != socket.AF_UNIX or _CREDENTIALS is None:
        return ""
    try:
        told = plug.getsockopt(socket.SOL_SOCKET, _CREDENTIALS, _UCRED.size)
    except OSError:
        return ""
    return user(_UCRED.unpack(told)[1])


def host_of(transport: asyncio.BaseTransport) -> str | None:
    """The address of a client, ``None`` for one that has gone; empty where there are none."""
    plug = cast("socket.socket | None", transport.get_extra_info("socket"))
    try:
        peer = transport.get_extra_info("peername") if plug is None else plug.getpeername()
    except OSError:
        return None
    return peer[0] if isinstance(peer, tuple) else ""
