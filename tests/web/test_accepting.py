"""Connections that wait are taken together (``soliton.web.accepting``)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

import uvloop

from soliton.web.answers import Answer, Whole
from soliton.web.limits import STOP_SECONDS
from soliton.web.request import Request
from soliton.web.server import serve
from tests.signer.test_doors import certificate
from tests.web.services import Simple

CLIENTS = 150
MAX_ROUNDS = 20


def test_a_crowd_is_heard_within_a_few_rounds_of_the_loop() -> None:
    async def main() -> int:
        heard, rounds = 0, 0

        def respond(_: Request) -> Answer:
            nonlocal heard
            heard += 1
            return Whole(b"")

        running = await serve(Simple(respond), "127.0.0.1", 0)
        with contextlib.ExitStack() as plugs:
            for _ in range(CLIENTS):
                plug = plugs.enter_context(socket.create_connection(("127.0.0.1", running.port)))
                plug.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while heard < CLIENTS and rounds < 10 * CLIENTS:
                rounds += 1
                await asyncio.sleep(0)
        await running.stop()
        assert heard == CLIENTS
        return rounds

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) <= MAX_ROUNDS


def test_who_has_gone_or_speaks_no_tls_costs_nothing_but_itself(tmp_path: Path) -> None:
    own, key, _ = certificate(tmp_path, "server")

    async def main() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(own, key)
        running = await serve(Simple(lambda _: Whole(b"here")), "127.0.0.1", 0, tls=context)
        where = ("127.0.0.1", running.port)
        for number in range(CLIENTS):
            plug = socket.create_connection(where)
            if number % 2:
                plug.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            plug.close()
        trusting = ssl.create_default_context(cafile=own)
        trusting.check_hostname = False
        reader, writer = await asyncio.open_connection(*where, ssl=trusting)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"here")
        writer.close()
        await asyncio.wait_for(running.stop(), STOP_SECONDS + 1)

    faults: list[dict[str, object]] = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(lambda _, told: faults.append(told))
        runner.run(main())
    assert not faults
