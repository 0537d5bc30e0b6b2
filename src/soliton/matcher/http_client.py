"""The node over its REST API, for any node of the Waves family.

What lives here: the questions of ``NodeClient`` as requests. What does not: watching the chain
(``event_stream``, ``polling``), and connections (``soliton.web.client``).

Sources of the routes: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http``
(``AddressApiRoute``, ``AssetsApiRoute``, ``TransactionsApiRoute``, ``DebugApiRoute``,
``ActivationApiRoute``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from http import HTTPStatus
from typing import Final

from soliton.chain.addresses import Address, address_text
from soliton.chain.orders import Order
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.event_stream import EventStream
from soliton.matcher.node_client import (
    AccountState,
    Asset,
    Balances,
    Broadcast,
    BroadcastAnswer,
    ChainStatus,
    NodeUpdate,
    ScriptAnswer,
)
from soliton.matcher.polling import Json, Poller, block_status
from soliton.matcher.settings import NodeAccess
from soliton.matching.account_checks import ScriptFault
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

MAX_IDS_PER_REQUEST: Final = 100
_CONNECTIONS: Final = 32
_WORDS: Final = 1_000
"""A refusal is quoted up to this length."""

# Refusals that a later moment may lift, by what stands in the node's words.
_RETRY_WORDS: Final = (
    "transaction pool",
    "utx",
    "not enough connections",
    "too much",
    "negative asset balance",
    "negative waves balance",
    "accounts balance errors",
)
_CONFIRMED_WORDS: Final = "already in the state"
_ACTIVATED: Final = "ACTIVATED"

_log = logging.getLogger(__name__)


class HttpNodeClient:
    """A ``NodeClient`` over HTTP."""

    parallel_questions = 16
    parallel_broadcasts = 16

    def __init__(self, access: NodeAccess, chain_id: int) -> None:
        """Raises ``InputError`` for an address that is none."""
        headers = {"X-API-Key": access.api_key} if access.api_key else None
        limits = ClientLimits(_CONNECTIONS, answer_seconds=access.timeout_ms / 1000)
        self._http = HttpClient(access.url, limits, headers)
        self._access = access
        self._chain_id = chain_id
        self._features: tuple[int, frozenset[int]] = (-1, frozenset())

    async def get(self, path: str) -> Json:
        """The JSON at a path; raises ``NodeUnavailable`` for anything but 200."""
        status, answer = await self._ask("GET", path)
        if status != HTTPStatus.OK:
            raise NodeUnavailable(f"the node answers {status} to {path}: {_shown(answer)}")
        return answer

    async def _ask(self, method: str, path: str, body: object = None) -> tuple[int, Json]:
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = await self._http.request(method, path, data)
            if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise NodeUnavailable(f"the node answers {answer.status} to {path}")
            return answer.status, json.loads(answer.body)
        except HttpTrouble as error:
            raise NodeUnavailable(f"the node at {self._access.url}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise NodeUnavailable(
                f"the node answers {path} with something else than JSON"
            ) from error

    # --- the chain --------------------------------------------------------------------------------

    async def status(self) -> ChainStatus:
        """As ``NodeClient.status``."""
        return block_status(await self.get("/blocks/headers/last"))

    async def feature_active(self, feature: int) -> bool:
        """As ``NodeClient.feature_active``; the node is asked once per height."""
        height = (await self.status()).height
        if self._features[0] != height:
            answer = await self.get("/activation/status")
            active = frozenset(
                int(each["id"])
                for each in answer.get("features", ())
                if each.get("blockchainStatus") == _ACTIVATED
            )
            self._features = height, active
        return feature in self._features[1]

    async def asset(self, asset_id: AssetId) -> Asset | None:
        """As ``NodeClient.asset``."""
        status, answer = await self._ask("GET", f"/assets/details/{base58.encode(asset_id)}")
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
            return None
        if status != HTTPStatus.OK:
            raise NodeUnavailable(f"the node answers {status} about an asset: {_shown(answer)}")
        return Asset(
            name=str(answer["name"]),
            decimals=int(answer["decimals"]),
            scripted=bool(answer.get("scripted", False)),
            nft=answer.get("quantity") == 1
            and answer["decimals"] == 0
            and answer.get("reissuable") is False,
        )

    async def has_script(self, address: Address) -> bool:
        """As ``NodeClient.has_script``."""
        answer = await self.get(f"/addresses/scriptInfo/{address_text(address)}")
        return answer.get("script") is not None

    async def account(
        self, address: Address, assets: Collection[AssetId | None] | None
    ) -> AccountState:
        """As ``NodeClient.account``."""
        text = address_text(address)
        balances: Balances = {}
        leased_out = 0
        if assets is None or None in assets:
            details = await self.get(f"/addresses/balance/details/{text}")
            balances[None] = int(details["regular"])
            leased_out = max(0, int(details["regular"]) - int(details["available"]))
        if assets is None:
            answer = await self.get(f"/assets/balance/{text}")
            for each in answer["balances"]:
                balances[base58.decode(each["assetId"])] = int(each["balance"])
        else:
            for asset_id in assets:
                if asset_id is not None:
                    answer = await self.get(f"/assets/balance/{text}/{base58.encode(asset_id)}")
                    balances[asset_id] = int(answer["balance"])
        return AccountState(balances, leased_out)

    async def was_executed(self, order_id: bytes) -> bool:  # noqa: ARG002 - no route tells
        """Always no: the REST API does not tell what was executed of an order. What that means for
        a matcher that has lost its data is said in ``docs/reference/matcher-settings.md``.
        """
        return False

    async def confirmed_heights(self, transaction_ids: Sequence[bytes]) -> dict[bytes, int]:
        """As ``NodeClient.confirmed_heights``."""
        heights: dict[bytes, int] = {}
        for start in range(0, len(transaction_ids), MAX_IDS_PER_REQUEST):
            part = transaction_ids[start : start + MAX_IDS_PER_REQUEST]
            body = {"ids": [base58.encode(each) for each in part]}
            status, answer = await self._ask("POST", "/transactions/status", body)
            if status != HTTPStatus.OK:
                raise NodeUnavailable(f"the node does not tell statuses: {_shown(answer)}")
            for each in answer:
                if each.get("status") == "confirmed":
                    heights[base58.decode(each["id"])] = int(each["height"])
        return heights

    # --- scripts ----------------------------------------------------------------------------------

    async def run_scripts(
        self, trial: AnyTransaction, order: Order, assets: Collection[AssetId]
    ) -> ScriptAnswer:
        """As ``NodeClient.run_scripts``: the node says what would become of the exchange.

        Its refusals for other reasons than a script (balances above all) are no answer of one.
        """
        del order
        status, answer = await self._ask("POST", "/debug/validate", codec.to_json(trial))
        if status != HTTPStatus.OK or answer.get("valid", False):
            return ScriptAnswer()
        words = _shown(answer.get("error", ""))
        lowered = words.lower()
        blamed = next((each for each in assets if base58.encode(each) in words), None)
        if "not allowed by" in lowered:
            return ScriptAnswer(ScriptFault.DENIED, blamed, words)
        if "error while executing" in lowered:
            return ScriptAnswer(ScriptFault.RETURNED_ERROR, blamed, words)
        return ScriptAnswer()

    # --- transactions -----------------------------------------------------------------------------

    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        """As ``NodeClient.broadcast``."""
        status, answer = await self._ask(
            "POST", "/transactions/broadcast", codec.to_json(transaction)
        )
        if status == HTTPStatus.OK:
            return BroadcastAnswer(Broadcast.UNCONFIRMED)
        return refusal(_shown(answer.get("message", answer)), status)

    async def updates(self) -> AsyncIterator[NodeUpdate]:
        """As ``NodeClient.updates``: from the node's stream of events, or by polling where it has
        none.
        """
        stream = EventStream(self._http, self.status, self._chain_id)
        if await self._has(stream):
            _log.info("following the node by its events")
            source = stream.updates()
        else:
            _log.info("following the node by asking every %d ms", self._access.poll_interval_ms)
            source = Poller(self, self._access.poll_interval_ms / 1000, self._chain_id).updates()
        async with contextlib.aclosing(source):
            async for update in source:
                yield update

    async def _has(self, stream: EventStream) -> bool:
        while True:
            try:
                return await stream.is_there()
            except NodeUnavailable as error:
                _log.warning("%s", error)
                await asyncio.sleep(self._access.poll_interval_ms / 1000)

    async def close(self) -> None:
        """As ``NodeClient.close``."""
        await self._http.close()


def refusal(words: str, status: int = HTTPStatus.BAD_REQUEST) -> BroadcastAnswer:
    """What a node's words about a transaction mean for sending it again."""
    lowered = words.lower()
    if _CONFIRMED_WORDS in lowered:
        return BroadcastAnswer(Broadcast.CONFIRMED, words)
    if status == HTTPStatus.TOO_MANY_REQUESTS or any(each in lowered for each in _RETRY_WORDS):
        return BroadcastAnswer(Broadcast.RETRY, words)
    return BroadcastAnswer(Broadcast.REFUSED, words)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:_WORDS]
