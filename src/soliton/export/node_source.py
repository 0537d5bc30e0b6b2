"""The chain of a node that is asked over its REST interface.

A node moves on between two questions. Blocks are read with what their transactions wrote, and then
the last of them is asked for once more: is it still there, nothing below it has changed either.

What lives here: asking, putting together. What does not: what follows from it (``follower``).
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
"""Blocks, or transactions, that are asked for at once: what nodes give by default."""
MAX_TRANSACTIONS: Final = 2_000
"""Transactions of the blocks that are asked for at once, unless one block has more."""
ANSWER_BYTES: Final = 256 * 1024 * 1024
POLL_SECONDS: Final = 1.0
"""So often a node is asked that has no stream of events."""
_LAST: Final = "/blocks/headers/last"
_EVENTS: Final = "/events?events=block,microblock"
_WITHOUT_ASSETS: Final = frozenset((1, 2, 4, 7, 8, 9, 10, 11, 13))
"""Types that write nothing about assets, nor data, by the numbers that the network gives them."""
_ETHEREUM: Final = "bytes"


class NodeSource:
    """The chain of a node."""

    def __init__(self, url: str, complete: frozenset[int] = frozenset()) -> None:
        """``complete`` are types whose outcome is to be shown as well. Raises ``SourceAway`` where
        nobody answers.
        """
        self._runner = asyncio.Runner()
        self._client = HttpClient(url, ClientLimits(answer_bytes=ANSWER_BYTES))
        self._complete = complete
        self._ids: dict[int, str] = {}
        self._height = 0
        self._aliases: dict[str, str] = {}
        self._supply: dict[int, int] = {}
        self._heard = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self.network = ""
        try:
            self.chain_id = self._first_answer(url)
        except BaseException:
            self.close()
            raise

    def _first_answer(self, url: str) -> int:
        try:
            generator = base58.decode(self._ask(self._member(_LAST, "generator", str)))
        except Base58Error:
            generator = b""
        if len(generator) != ADDRESS_LENGTH:
            raise WrongChain(f"{url} is no node of this family")
        return generator[1]

    def refresh(self) -> int:
        """See what is new."""
        self._height, name = self._ask(self._last())
        self._ids = {self._height: name}
        return self._height

    def block_id(self, height: int) -> str | None:
        """The id of the block at a height."""
        if not 1 <= height <= self._height:
            return None
        found = self._ids.get(height)
        if found is None:
            question = self._member(f"/blocks/headers/at/{height}", "id", str)
            found = self._ids[height] = self._ask(question)
        return found

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """Blocks of these heights, as many as are asked for at once."""
        return iter(self._ask(self._blocks(first, min(last, first + PAGE - 1))))

    def address_of(self, alias: str) -> str:
        """The account that an alias stands for; it never changes."""
        found = self._aliases.get(alias)
        if found is None:
            question = self._member(f"/alias/by-alias/{quote(alias, safe='')}", "address", str)
            found = self._aliases[alias] = self._ask(question)
        return found

    def wait(self, seconds: float) -> None:
        """Return when the node tells of something, or after so long."""
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

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, question: Coroutine[None, None, T]) -> T:
        try:
            return self._runner.run(question)
        except HttpTrouble as error:
            raise SourceAway(f"the node: {error}") from error
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise SourceAway(f"the node answers something else than expected: {error!r}") from error

    async def _get(self, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON value
        data = b"" if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        answer = await self._client.request(method, path, data)
        if answer.status != HTTPStatus.OK:
            raise SourceAway(f"the node answers {answer.status} to {path}")
        return json.loads(answer.body)

    async def _member(self, path: str, name: str, kind: type[T]) -> T:
        """One member of an answer, which is of a kind; raises ``TypeError``."""
        return _of_kind((await self._get(path))[name], kind)

    async def _last(self) -> tuple[int, str]:
        header = await self._get(_LAST)
        return _of_kind(header["height"], int), _of_kind(header["id"], str)

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
                raise SourceAway("the chain has moved while it was read")
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
        """How much there is of the chain's coin with a block."""
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
        """Return when the node tells of something; one that has no stream is asked now and then."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        self._heard.clear()

    async def _listen(self) -> None:
        """Hear the node's events until the stream ends."""
        try:
            async with self._client.stream(_EVENTS) as (status, lines):
                if status == HTTPStatus.OK:
                    async for line in lines:
                        if line.startswith(b"data:"):
                            self._heard.set()
        except HttpTrouble:
            # The next question finds out what there is to be said.
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
