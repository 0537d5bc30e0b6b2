"""Clients behind reverse proxies: who they are is read from a header, as far as it is trusted."""

from __future__ import annotations

import asyncio
import json
import socket
from ipaddress import ip_network

import pytest

from soliton.proxies import (
    FORWARDED,
    MAX_FORWARDED_BYTES,
    UNKNOWN,
    X_FORWARDED_FOR,
    TrustedProxies,
)
from soliton.web.answers import Whole
from soliton.web.http1 import RequestParser
from soliton.web.limits import ServerLimits
from soliton.web.request import Request
from soliton.web.server import serve
from tests.web.services import Simple

NETWORKS = tuple(map(ip_network, ("127.0.0.1", "10.0.0.0/24", "2001:db8:f::/48")))
PROXY, CLIENT, SPOOFED = "10.0.0.1", "203.0.113.9", "198.51.100.7"

# What a trusted proxy sends in X-Forwarded-For, and whose request it is.
LISTS = {
    CLIENT: CLIENT,
    f" {CLIENT}\t": CLIENT,
    f"{SPOOFED}, {CLIENT}": CLIENT,
    f"127.0.0.1, {CLIENT}": CLIENT,
    f"{SPOOFED}, {CLIENT}, 10.0.0.7, 2001:db8:f::1": CLIENT,
    f"{SPOOFED}, {CLIENT}, ::ffff:10.0.0.7": CLIENT,
    f"{SPOOFED},,{CLIENT},": CLIENT,
    f"not an address, {CLIENT}": CLIENT,
    f"{CLIENT}:4711": CLIENT,
    "2001:db8::1": "2001:db8::1",
    "[2001:db8::1]": "2001:db8::1",
    "[2001:db8::1]:4711": "2001:db8::1",
    f"::ffff:{CLIENT}": CLIENT,
    "10.0.0.7": "10.0.0.7",
    f"{CLIENT}, unknown": UNKNOWN,
    f"{CLIENT}, _hidden": UNKNOWN,
    f"{CLIENT}, 300.1.1.1": UNKNOWN,
    f"{CLIENT}, 10.0.0.7x": UNKNOWN,
    f"{CLIENT}:port": UNKNOWN,
    f"[{CLIENT}]": UNKNOWN,
    "[2001:db8::1": UNKNOWN,
    "[2001:db8::1]4711:": UNKNOWN,
    "127.0.0.1": UNKNOWN,
    "::1": UNKNOWN,
    "::ffff:127.0.0.1": UNKNOWN,
    "localhost": UNKNOWN,
    "": UNKNOWN,
    ",,,": UNKNOWN,
    "1" * 100: UNKNOWN,
    f"{SPOOFED}, " * (MAX_FORWARDED_BYTES // 10) + CLIENT: UNKNOWN,
}
ELEMENTS = {
    f"for={CLIENT}": CLIENT,
    f"For={CLIENT};proto=http;by=10.0.0.1": CLIENT,
    f"by=10.0.0.1; proto=https ;for={CLIENT}": CLIENT,
    f'for="{CLIENT}:4711"': CLIENT,
    'for="[2001:db8:cafe::17]:4711"': "2001:db8:cafe::17",
    f'for={SPOOFED}, for={CLIENT};host="a, for=10.0.0.9;b", for="10.0.0.7:1"': CLIENT,
    'for="203.0.\\113.9", for=10.0.0.7': CLIENT,
    f"for={SPOOFED} , for={CLIENT} , ": CLIENT,
    f"for={SPOOFED}, proto=http": UNKNOWN,
    f"for={SPOOFED}, for=unknown": UNKNOWN,
    f'for={SPOOFED}, for="_gazonk"': UNKNOWN,
    'for="[2001:db8::1]:_port"': "2001:db8::1",
    f"for={SPOOFED};for={CLIENT}": UNKNOWN,
    # What a client has written must not hide what the proxy adds.
    f'for=", for={CLIENT}': UNKNOWN,
    f'for="\\", for={CLIENT}': UNKNOWN,
    f"for, for={CLIENT}": UNKNOWN,
    f"=, for={CLIENT}": UNKNOWN,
    "for=127.0.0.1": UNKNOWN,
    "": UNKNOWN,
    ";;;": UNKNOWN,
    f"for={SPOOFED}, " * (MAX_FORWARDED_BYTES // 10): UNKNOWN,
}


def parser(header: str, host: str = PROXY) -> RequestParser[Request]:
    proxies = TrustedProxies(NETWORKS, header)
    return RequestParser(Simple(lambda _request: Whole(b"")), 64 * 1024, host, "", proxies)


def client_of(made: RequestParser[Request], lines: str) -> str:
    (request,) = made.feed(f"GET / HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
    assert isinstance(request, Request)
    return request.host


@pytest.mark.parametrize(
    ("header", "value", "client"),
    [
        *((X_FORWARDED_FOR, *each) for each in LISTS.items()),
        *((FORWARDED, *each) for each in ELEMENTS.items()),
    ],
)
def test_whose_request_a_proxy_sends(header: str, value: str, client: str) -> None:
    assert client_of(parser(header), f"{header}: {value}\r\n") == client
    # From anybody else the header says nothing.
    for host in ("192.0.2.1", "2001:db8:e::1", "::1", "127.0.0.2"):
        assert client_of(parser(header, host), f"{header}: {value}\r\n") == host


@pytest.mark.parametrize("host", [PROXY, f"::ffff:{PROXY}", "127.0.0.1", "2001:db8:f:2::3"])
def test_requests_of_a_connection_have_their_own_clients(host: str) -> None:
    made = parser(X_FORWARDED_FOR, host)
    assert client_of(made, f"X-Forwarded-For: {CLIENT}\r\n") == CLIENT
    # The proxy's own, such as a check of its health.
    assert client_of(made, "") == host
    assert client_of(made, f"x-forwarded-for: {SPOOFED}\r\n") == SPOOFED
    # A proxy that writes the other header has other clients.
    assert client_of(made, f"Forwarded: for={CLIENT}\r\n") == UNKNOWN


def test_repeated_headers_are_one_list() -> None:
    lines = [f"X-Forwarded-For: {each}\r\n" for each in (SPOOFED, CLIENT, "10.0.0.7")]
    assert client_of(parser(X_FORWARDED_FOR), "".join(lines)) == CLIENT
    lines = [f"Forwarded: for={each}\r\n" for each in (SPOOFED, CLIENT, "10.0.0.7")]
    assert client_of(parser(FORWARDED), "".join(lines)) == CLIENT


async def test_connections_of_a_proxy_are_not_limited_by_address() -> None:
    def respond(request: Request) -> Whole:
        return Whole(json.dumps(request.host).encode())

    async def ask(own: str, headers: str) -> list[tuple[int, bytes]]:
        """Ask over three connections at once."""
        ends = [
            await asyncio.open_connection("127.0.0.1", running.port, local_addr=(own, 0))
            for _ in range(3)
        ]
        found = []
        for reader, writer in ends:
            writer.write(
                f"GET / HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n".encode()
            )
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            found.append((int(head.split()[1]), body))
            writer.close()
        return found

    limits = ServerLimits(
        connections_per_client=1,
        counts_local_clients=True,
        proxies=TrustedProxies(tuple(map(ip_network, ("127.0.0.1",)))),
    )
    running = await serve(Simple(respond), "127.0.0.1", 0, limits)
    async with asyncio.timeout(60):
        named = f"X-Forwarded-For: {SPOOFED}, {CLIENT}\r\n"
        assert await ask("127.0.0.1", named) == [(200, f'"{CLIENT}"'.encode())] * 3
        if can_bind("127.0.0.2"):
            statuses = [status for status, _ in await ask("127.0.0.2", named)]
            assert statuses.count(503) == 2
    await running.stop()


def can_bind(host: str) -> bool:
    """Whether the machine has more than one address of its own; macOS has one."""
    with socket.socket() as plug:
        try:
            plug.bind((host, 0))
        except OSError:
            return False
    return True
