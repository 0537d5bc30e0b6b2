"""``--metrics``: ``/livez``, ``/readyz`` and ``/metrics`` of a program that serves nothing else.

What lives here: the option, and a thread with the server. What does not: the answers
(``soliton.web.monitoring``), and what is measured (the programs).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from soliton.export.metrics import Progress


class Address(NamedTuple):
    """A host and a port to listen on."""

    host: str
    port: int


class _AddressType(click.ParamType[Address]):
    name = "address"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        """Return host and port of ``HOST:PORT``, ``:PORT`` or ``[IPV6]:PORT``."""
        host, colon, port = str(value).rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) >= 1 << 16:
            self.fail(f"{value!r} is not HOST:PORT, such as 127.0.0.1:9100", param, ctx)
        return Address(host.strip("[]") or "127.0.0.1", int(port))


metrics_option = click.option(
    "--metrics",
    type=_AddressType(),
    metavar="HOST:PORT",
    help="Serve /metrics, /livez and /readyz there (default: nowhere).",
)


@contextmanager
def watched(service: str, progress: Progress, where: Address | None) -> Iterator[None]:
    """Serve the progress of a program meanwhile; raises ``EnvironmentProblem`` if the address
    cannot be used.
    """
    if where is None:
        yield
        return
    loop, ready = asyncio.new_event_loop(), threading.Event()
    ended = asyncio.Event()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            loop.run_until_complete(_serve(service, progress, where, ready, ended))
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            problems.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="metrics", daemon=True)
    thread.start()
    ready.wait()
    try:
        if problems:
            raise problems[0]
        yield
    finally:
        if not problems:
            loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


async def _serve(
    service: str,
    progress: Progress,
    where: Address,
    ready: threading.Event,
    ended: asyncio.Event,
) -> None:
    from soliton.export.metrics import METRICS
    from soliton.web.monitoring import MonitorService, figures
    from soliton.web.server import serve

    app = MonitorService(service, progress.check, partial(figures, METRICS, progress))
    server = await serve(app, *where)
    click.echo(f"metrics on http://{server.host}:{server.port}/metrics", err=True)
    ready.set()
    await ended.wait()
    await server.stop()
