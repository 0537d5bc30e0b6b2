"""Addresses of peers: name resolution, the file of known peers, and the node's own addresses.

What lives here: these. What does not: which peers to dial (``soliton.sync.peers``).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from soliton.node.network_settings import HostPort
from soliton.wire.handshake import MAX_PORT, PeerAddress

_log = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 1_000_000
NAME_SECONDS: Final = 10.0
"""The timeout of resolving one name."""
_ALL = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def own_addresses(bound: str, port: int) -> Iterator[PeerAddress]:
    """Yield the local addresses at which a node bound to ``bound`` can be dialled."""
    texts = {bound}
    if bound in _ALL:
        texts = {"127.0.0.1"}
        with contextlib.suppress(OSError):
            infos = socket.getaddrinfo(socket.gethostname(), port, type=socket.SOCK_STREAM)
            texts |= {str(info[4][0]) for info in infos}
    for text in texts:
        with contextlib.suppress(ValueError):
            yield PeerAddress(ipaddress.ip_address(text), port)


def load(file: Path) -> list[PeerAddress]:
    """Return the addresses in a file of peers; logs a warning if it cannot be read."""
    try:
        with file.open("rb") as opened:
            found = json.loads(opened.read(MAX_FILE_BYTES))
        return [parse_address(str(each).removeprefix("/")) for each in found]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, RecursionError) as error:
        _log.warning("%s cannot be read, peers are looked for anew: %s", file, error)
        return []


def save(file: Path, known: Iterable[PeerAddress]) -> None:
    """Replace a file of peers atomically; logs a warning if it cannot be written."""
    temporary = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps([str(each) for each in known]))
        temporary.replace(file)
    except OSError as error:
        _log.warning("cannot write %s: %s", file, error)


def parse_address(text: str) -> PeerAddress:
    """Parse ``IP:PORT``; raises ``ValueError``."""
    host, _, port = text.rpartition(":")
    number = int(port)
    if not 0 < number <= MAX_PORT:
        raise ValueError(f"port {number}")
    return PeerAddress(ipaddress.ip_address(host.strip("[]")), number)


async def resolve(wanted: Sequence[HostPort]) -> list[PeerAddress]:
    """Return all addresses of these peers, in order; names that cannot be resolved are skipped."""
    loop = asyncio.get_running_loop()
    found: list[PeerAddress] = []
    for each in wanted:
        try:
            async with asyncio.timeout(NAME_SECONDS):
                infos = await loop.getaddrinfo(each.host, each.port, type=socket.SOCK_STREAM)
        except (OSError, TimeoutError) as error:
            _log.warning("peer %s: its name is not known: %s", each, error)
            continue
        for info in infos:
            address = PeerAddress(ipaddress.ip_address(info[4][0]), each.port)
            if address not in found:
                found.append(address)
    return found
