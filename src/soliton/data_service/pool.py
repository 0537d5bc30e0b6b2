"""A pool of connections to the database.

What lives here: connecting, running queries, timeouts. What does not: the queries.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from soliton.data_service.errors import DatabaseAway, QueryTimeout

CONNECTIONS: Final = 20
WAITING: Final = 500
"""Limit on the queries that wait for a connection; more are refused."""
STATEMENT_SECONDS: Final = 10.0
LATE_SECONDS: Final = 5.0
"""After this much more than the statement timeout, a server is considered unresponsive."""
CONNECT_SECONDS: Final = 10

Row = dict[str, Any]
Parameters = Sequence[object] | Mapping[str, object]
_Connection = psycopg.AsyncConnection[Row]

_log = logging.getLogger(__name__)


class Pool:
    """A pool of connections to one database."""

    def __init__(
        self, dsn: str, size: int = CONNECTIONS, seconds: float = STATEMENT_SECONDS
    ) -> None:
        self._dsn = dsn
        self._free: list[_Connection] = []
        self._slots = asyncio.Semaphore(size)
        self.waiting = 0
        """Queries that wait for a connection."""
        self.connections = 0
        """Open connections."""
        self._milliseconds = int(seconds * 1_000)

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._free:
            await connection.close()
        self.connections -= len(self._free)
        self._free.clear()

    async def fetch(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        """Return the rows of a statement; raises ``DatabaseAway`` or ``QueryTimeout``."""
        try:
            return await self._fetch(statement, parameters)
        except psycopg.errors.QueryCanceled as error:
            raise QueryTimeout("the statement took too long") from error
        except psycopg.Error as error:
            _log.warning("the database: %s", " ".join(str(error).split()))
            raise DatabaseAway("invalid response from the database") from error

    async def _fetch(self, statement: str, parameters: Parameters) -> list[Row]:
        for is_last in (False, True):
            async with self._connection() as (connection, is_new), self._cut_off_late(connection):
                try:
                    cursor = await connection.execute(statement.encode(), parameters)
                    return await cursor.fetchall()
                except psycopg.OperationalError:
                    # A pooled connection may have been closed in the meantime.
                    if is_last or is_new or not connection.closed:
                        raise
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _cut_off_late(self, connection: _Connection) -> AsyncIterator[None]:
        """Shut a connection down if its server does not even report a timeout."""

        def cut_off() -> None:
            with socket.socket(fileno=os.dup(connection.fileno())) as made:
                made.shutdown(socket.SHUT_RDWR)

        seconds = self._milliseconds / 1_000 + LATE_SECONDS
        timer = asyncio.get_running_loop().call_later(seconds, cut_off)
        try:
            yield
        finally:
            timer.cancel()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[_Connection, bool]]:
        if self.waiting >= WAITING:
            raise DatabaseAway("too many requests are waiting for the database")
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        connection = None
        try:
            is_new = not self._free
            connection = await self._connect() if is_new else self._free.pop()
            yield connection, is_new
        finally:
            self._slots.release()
            if connection is not None:
                if connection.closed or connection.info.transaction_status:
                    self.connections -= 1
                    await connection.close()
                else:
                    self._free.append(connection)

    async def _connect(self) -> _Connection:
        connection = await psycopg.AsyncConnection.connect(
            self._dsn,
            autocommit=True,
            row_factory=dict_row,
            application_name="soliton-data-service",
            connect_timeout=CONNECT_SECONDS,
        )
        await connection.execute("SET timezone TO 'UTC'")
        await connection.execute(f"SET statement_timeout TO {self._milliseconds}".encode())
        await connection.execute("SET default_transaction_read_only TO on")
        self.connections += 1
        return connection
