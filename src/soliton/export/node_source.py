"""The chain of a node, read over its REST API.

A node may change between two requests. After reading blocks and the changes of their transactions,
the last block is requested again: if it is still on the chain, everything below has not changed
either.

What lives here: requests, assembling blocks. What does not: their processing (``follower``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

from soliton.chain.addresses import ADDRESS_LENGTH
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.export.errors import SourceAway, WrongChain
from soliton.export.sources import ASSET_MEMBERS, ChainBlock, ChainTransaction, Members, key_of
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

T = TypeVar("T")

PAGE: Final = 100
"""Blocks, or transactions, per request: the default limit of nodes."""
MAX_TRANSACTIONS: Final = 2_000
"""Limit on the transactions of blocks that are requested together, unless one block has more."""
ANSWER_BYTES: Final = 256 * 1024 * 1024
POLL_SECONDS: Final = 1.0
"""Polling interval of a node without a stream of events."""
FINAL_DEPTH: Final = 100
"""The depth below which nodes replace no blocks, where there is no finality by votes."""
_FINALIZED: Final = "/blocks/height/finalized"
_NO_SUCH_ROUTE: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
)
"""Statuses of older nodes, which read the last part of the path as the id of a block."""
_LAST: Final = "/blocks/headers/last"
_EVENTS: Final = "/events?events=block,microblock"
_WITHOUT_ASSETS: Final = frozenset((1, 2, 4, 7, 8, 9, 10, 11, 13))
"""Types that change neither assets nor data."""
_ETHEREUM: Final = "bytes"


class NodeSource:
    """The chain of a node."""

    only_final = False

    def __init__(self, url: str, complete: frozenset[int] = frozenset()) -> None:
        """``complete`` are the types to read with their outcome. Raises ``SourceAway`` if the node
        does not respond.
        """
        self._runner = asyncio.Runner()
        self._client = HttpClient(url, ClientLimits(answer_bytes=ANSWER_BYTES))
        self._complete = complete
        self._ids: dict[int, str] = {}
        self._height = 0
        self._aliases: dict[str, str] = {}
        self._supply: dict[int, int] = {}
        self._event = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self.network = ""
        try:
            self.chain_id = self._read_chain_id(url)
        except BaseException:
            self.close()
            raise

    def _read_chain_id(self, url: str) -> int:
        try:
            generator = base58.decode(self._run(self._member(_LAST, "generator", str)))
        except Base58Error:
            generator = b""
        if len(generator) != ADDRESS_LENGTH:
            raise WrongChain(f"{url} is not a node of this family")
        return generator[1]

    def refresh(self) -> int:
        """See ``Source``."""
        self._height, name = self._run(self._last())
        self._ids = {self._height: name}
        return self._height

    def finalized_height(self) -> int:
        """See ``Source``; a node that does not know of finality replaces only so many blocks."""
        return self._run(self._final())

    def block_id(self, height: int) -> str | None:
        """See ``Source``."""
        if not 1 <= height <= self._height:
            return None
        found = self._ids.get(height)
        if found is None:
            request = self._member(f"/blocks/headers/at/{height}", "id", str)
            found = self._ids[height] = self._run(request)
        return found

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """See ``Source``; yields at most a page."""
        return iter(self._run(self._blocks(first, min(last, first + PAGE - 1))))

    def address_of(self, alias: str) -> str:
        """See ``Source``; an alias never changes."""
        found = self._aliases.get(alias)
        if found is None:
            request = self._member(f"/alias/by-alias/{quote(alias, safe='')}", "address", str)
            found = self._aliases[alias] = self._run(request)
        return found

    def wait(self, seconds: float) -> None:
        """Wait for an event of the node, at most for a time."""
        self._runner.run(self._wait(min(seconds, POLL_SECONDS)))

    def close(self) -> None:
        """Close the connections."""

        async def close() -> None:
            if self._listening is not None:
                self._listening.cancel()
                await asyncio.wait((self._listening,))
            self._client.close()

        self._runner.run(close())
        self._runner.close()

    # --- requests ---------------------------------------------------------------------------------

    def _run(self, request: Coroutine[None, None, T]) -> T:
        try:
            return self._runner.run(request)
        except HttpTrouble as error:
            raise SourceAway(f"the node: {error}") from error
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise SourceAway(f"the node sent an unexpected response: {error!r}") from error

    async def _get(self, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON value
        data = b"" if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        answer = await self._client.request(method, path, data)
        if answer.status != HTTPStatus.OK:
            raise SourceAway(f"the node answers {answer.status} to {path}")
        return json.loads(answer.body)

    async def _member(self, path: str, name: str, kind: type[T]) -> T:
        """Return one member of a response; raises ``TypeError`` if it is not of a kind."""
        return _of_kind((await self._get(path))[name], kind)

    async def _last(self) -> tuple[int, str]:
        header = await self._get(_LAST)
        return _of_kind(header["height"], int), _of_kind(header["id"], str)

    async def _final(self) -> int:
        answer = await self._client.request("GET", _FINALIZED)
        if answer.status in _NO_SUCH_ROUTE:
            return max(self._height - FINAL_DEPTH, 1)
        if answer.status != HTTPStatus.OK:
            raise SourceAway(f"the node answers {answer.status} to {_FINALIZED}")
        return min(_of_kind(json.loads(answer.body)["height"], int), self._height)

    async def _blocks(self, first: int, last: int) -> Sequence[ChainBlock]:
        headers = await self._get(f"/blocks/headers/seq/{first}/{last}")
        count = chosen = 0
        for header in headers:
            count += header["transactionCount"]
            if chosen and count > MAX_TRANSACTIONS:
                break
            chosen += 1
        if not chosen:
            return ()
        blocks = await self._get(f"/blocks/seq/{first}/{first + chosen - 1}")
        found = [await self._block(each) for each in blocks]
        if found:
            top = await self._get(f"/blocks/headers/at/{found[-1].height}")
            if top["id"] != found[-1].id:
                raise SourceAway("the chain changed while it was read")
        return found

    async def _block(self, block: Members) -> ChainBlock:
        transactions: list[Members] = block["transactions"]
        partial = [
            each["id"]
            for each in transactions
            if _ETHEREUM in each or each["type"] in self._complete
        ]
        complete = {each["id"]: each for each in await self._many("/transactions/info", partial)}
        writers = [each["id"] for each in transactions if each["type"] not in _WITHOUT_ASSETS]
        written = dict(
            zip(writers, await self._many("/transactions/snapshot", writers), strict=True)
        )
        return ChainBlock(
            block["height"],
            block["id"],
            block["reference"],
            key_of(
                block["timestamp"],
                block["reference"],
                block["nxt-consensus"]["generation-signature"],
            ),
            block["timestamp"],
            await self._total(block),
            [
                ChainTransaction(complete.get(each["id"], each), *_assets(written.get(each["id"])))
                for each in transactions
            ],
        )

    async def _many(self, path: str, names: Sequence[str]) -> list[Members]:
        found: list[Members] = []
        for at in range(0, len(names), PAGE):
            found += await self._get(path, {"ids": names[at : at + PAGE]})
        return found

    async def _total(self, block: Members) -> int | None:
        """Return the total supply after a block, ``None`` if the node does not report it."""
        height: int = block["height"]
        below, reward = self._supply.get(height - 1), block.get("reward")
        if height == 1:
            total = int(sum(each["amount"] for each in block["transactions"]))
        elif below is not None and isinstance(reward, int):
            total = below + max(0, reward)
        else:
            answer = await self._client.request("GET", f"/blockchain/rewards/{height}")
            if answer.status != HTTPStatus.OK:
                return None
            total = int(json.loads(answer.body)["totalWavesAmount"])
        self._supply = {height: total}
        return total

    # --- waiting ----------------------------------------------------------------------------------

    async def _wait(self, seconds: float) -> None:
        """Wait for an event; a node without a stream is polled."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        self._event.clear()

    async def _listen(self) -> None:
        """Listen to the node's events until the stream ends."""
        try:
            async with self._client.stream(_EVENTS) as (status, lines):
                if status == HTTPStatus.OK:
                    async for line in lines:
                        if line.startswith(b"data:"):
                            self._event.set()
        except HttpTrouble:
            # The next request reports the failure.
            return


def _of_kind(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.100} where {kind.__name__} was expected")
    return value


def _assets(written: Members | None) -> tuple[Members, Sequence[Members]]:
    if written is None:
        return {}, ()
    if not any(written[name] for name in ASSET_MEMBERS):
        return {}, written["accountData"]
    return {name: written[name] for name in ASSET_MEMBERS}, written["accountData"]
