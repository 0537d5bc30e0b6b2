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
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from http import HTTPStatus
from typing import Final

from soliton.chain.addresses import Address, address_text
from soliton.chain.errors import ChainError
from soliton.chain.orders import Order
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.event_stream import EventStream
from soliton.matcher.node_client import (
    AccountState,
    Asset,
    Balances,
    Broadcast,
    BroadcastAnswer,
    ChainIdentity,
    ChainStatus,
    NodeUpdate,
    ScriptAnswer,
)
from soliton.matcher.polling import Json, Poller, block_status
from soliton.matcher.settings import NodeAccess
from soliton.matching.account_checks import ScriptFault
from soliton.web.client import Answer, ClientLimits, HttpClient, HttpTrouble

MAX_IDS_PER_REQUEST: Final = 100
_CONNECTIONS: Final = 32
_WORDS: Final = 1_000
"""A refusal is quoted up to this length."""

_PAGE: Final = 500
_MAX_PAGES: Final = 400
"""An account with more transactions than this in the time in question is not searched through."""
_SERVER_ERRORS: Final = 500

# What a node's words mean, the first that fit. Sources: wavesplatform/Waves
# ``state/diffs/{CommonValidation,ExchangeTransactionDiff}.scala``, ``utx/UtxPoolImpl.scala``.
_REFUSALS: Final = (
    (Broadcast.CONFIRMED, ("already in the state",)),
    (Broadcast.LATER, ("in the future relative to",)),
    (Broadcast.TOO_LATE, ("in the past relative to",)),
    (Broadcast.LATER, ("transaction pool", "utx", "not enough connections")),
    (
        Broadcast.FINAL,
        (
            "not allowed by",
            "error while executing",
            "proof doesn't validate",
            "invalid signature",
            "signature is not valid",
            "expiration should be",
        ),
    ),
)
_UNASKED: Final = (
    "it could not be asked, because the node refuses the trial exchange with the matcher's account "
    "for another reason"
)
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
        data = b"" if body is None else json.dumps(body).encode()
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

    async def identity(self) -> ChainIdentity:
        """As ``NodeClient.identity``: the first block tells, and who generated it."""
        first = await self.get("/blocks/headers/at/1")
        try:
            generator = base58.decode(first["generator"])
            return ChainIdentity(generator[1], str(first["signature"]))
        except (KeyError, TypeError, IndexError, Base58Error) as error:
            raise NodeUnavailable("the node does not tell its first block") from error

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

    async def heights(self, transaction_ids: Sequence[bytes]) -> dict[bytes, int]:
        """As ``NodeClient.heights``."""
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
                elif each.get("status") == "unconfirmed":
                    heights[base58.decode(each["id"])] = 0
        return heights

    async def now(self) -> int:
        """As ``NodeClient.now``."""
        try:
            return int((await self.get("/utils/time"))["NTP"])
        except (KeyError, TypeError, ValueError) as error:
            raise NodeUnavailable("the node does not tell its time") from error

    async def block_time(self, height: int) -> int:
        """As ``NodeClient.block_time``."""
        try:
            return int((await self.get(f"/blocks/headers/at/{height}"))["timestamp"])
        except (KeyError, TypeError, ValueError) as error:
            raise NodeUnavailable("the node does not tell the time of a block") from error

    async def find_exchange(
        self, trader: Address, orders: frozenset[bytes], since: int
    ) -> tuple[AnyTransaction, int] | None:
        """As ``NodeClient.find_exchange``."""
        path = f"/transactions/address/{address_text(trader)}/limit/{_PAGE}"
        after = ""
        for _ in range(_MAX_PAGES):
            try:
                [page] = await self.get(path + after)
                for each in page:
                    if _orders_of(each) == orders:
                        return read_signed(each, self._chain_id), int(each["height"])
                    if int(each["timestamp"]) < since:
                        return None
                if len(page) < _PAGE:
                    return None
                after = f"?after={page[-1]['id']}"
            except (AttributeError, KeyError, TypeError, ValueError, ChainError) as error:
                raise NodeUnavailable("the node does not list an account's history") from error
        raise NodeUnavailable(
            f"an account has more than {_PAGE * _MAX_PAGES} transactions to search"
        )

    # --- scripts ----------------------------------------------------------------------------------

    async def run_scripts(
        self, trials: Iterable[AnyTransaction], order: Order, assets: Collection[AssetId]
    ) -> ScriptAnswer:
        """As ``NodeClient.run_scripts``: the node says what would become of the exchange.

        A node looks at balances before it asks scripts. Whatever else it refuses a trial for says
        nothing about these, and who was not asked has not agreed.
        """
        del order
        words = "there was no trial"
        for trial in trials:
            status, answer = await self._ask("POST", "/debug/validate", codec.to_json(trial))
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                raise NodeUnavailable(f"the node answers {status} about scripts: {_shown(answer)}")
            if status != HTTPStatus.OK or not isinstance(answer, dict):
                words = f"the node answers {status} to /debug/validate: {_shown(answer)}"
                break
            if answer.get("valid") is True:
                return ScriptAnswer()
            words = _shown(answer.get("error", ""))
            lowered = words.lower()
            blamed = next((each for each in assets if base58.encode(each) in words), None)
            if "not allowed by" in lowered:
                return ScriptAnswer(ScriptFault.DENIED, blamed, words)
            if "error while executing" in lowered:
                return ScriptAnswer(ScriptFault.RETURNED_ERROR, blamed, words)
        return ScriptAnswer(ScriptFault.EXCEPTION, None, f"{_UNASKED}: {words}")

    # --- transactions -----------------------------------------------------------------------------

    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        """As ``NodeClient.broadcast``."""
        data = json.dumps(codec.to_json(transaction)).encode()
        try:
            answer = await self._http.request("POST", "/transactions/broadcast", data)
        except HttpTrouble as error:
            raise NodeUnavailable(f"the node at {self._access.url}: {error}") from error
        if answer.status == HTTPStatus.OK:
            return BroadcastAnswer(Broadcast.UNCONFIRMED)
        return _refusal_of(answer)

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
        self._http.close()


def _refusal_of(answer: Answer) -> BroadcastAnswer:
    """What an answer that is no acceptance means. The node's own refusals of a transaction have
    status 400 and a number of their own; anything else comes from something in between.
    """
    try:
        told = json.loads(answer.body)
    except (ValueError, RecursionError):
        told = answer.body.decode(errors="replace")
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS or answer.status >= _SERVER_ERRORS:
        return BroadcastAnswer(Broadcast.LATER, f"status {answer.status}: {_shown(told)}")
    own = isinstance(told, dict) and isinstance(told.get("error"), int)
    if answer.status != HTTPStatus.BAD_REQUEST or not own:
        return BroadcastAnswer(Broadcast.OPERATOR, f"status {answer.status}: {_shown(told)}")
    return refusal(_shown(told.get("message", told)))


def refusal(words: str) -> BroadcastAnswer:
    """What a node's words about a transaction mean for sending it again. Words that nobody here
    knows are taken for a matter of time: an execution is not given up for them.
    """
    lowered = words.lower()
    for result, parts in _REFUSALS:
        if any(part in lowered for part in parts):
            return BroadcastAnswer(result, words)
    return BroadcastAnswer(Broadcast.NOT_YET, words)


def _orders_of(shown: Json) -> frozenset[bytes]:
    if shown.get("type") != TYPE.type_id:
        return frozenset()
    return frozenset(base58.decode(shown[each]["id"]) for each in ("order1", "order2"))


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:_WORDS]
