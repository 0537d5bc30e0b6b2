"""A client of the node's REST API, for any node of the Waves family.

What lives here: the requests of ``NodeClient``. What does not: following the chain
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
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
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
    FoundExchange,
    Inclusion,
    NodeUpdate,
    OrderPair,
    ScriptAnswer,
    failure_in,
)
from soliton.matcher.polling import Json, Poller, block_status
from soliton.matcher.settings import NodeAccess
from soliton.matching.account_checks import ScriptFault
from soliton.web.client import Answer, ClientLimits, HttpClient, HttpTrouble

MAX_IDS_PER_REQUEST: Final = 100
_CONNECTIONS: Final = 32
_MAX_MESSAGE_CHARS: Final = 1_000

_PAGE: Final = 500
_MAX_PAGES: Final = 400
"""The limit of a search through an account's transactions, in pages."""

# The meanings of a node's messages; the first match counts. Sources: wavesplatform/Waves
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
_NO_SUCH_ROUTE: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
)
"""Statuses of older nodes, which read the last part of the path as the id of a block."""

_log = logging.getLogger(__name__)


class HttpNodeClient:
    """A ``NodeClient`` over HTTP."""

    parallel_requests = 16
    parallel_broadcasts = 16

    def __init__(self, access: NodeAccess, chain_id: int) -> None:
        """Raises ``InputError`` for an invalid URL."""
        headers = {"X-API-Key": access.api_key} if access.api_key else None
        limits = ClientLimits(_CONNECTIONS, answer_seconds=access.timeout_ms / 1000)
        self._http = HttpClient(access.url, limits, headers)
        self._access = access
        self._chain_id = chain_id
        self._features: tuple[int, frozenset[int]] = (-1, frozenset())

    async def get(self, path: str) -> Json:
        """The JSON at a path; raises ``NodeUnavailable`` for anything but 200."""
        status, answer = await self._request("GET", path)
        if status != HTTPStatus.OK:
            raise NodeUnavailable(f"the node answers {status} to {path}: {_shortened(answer)}")
        return answer

    async def _request(self, method: str, path: str, body: object = None) -> tuple[int, Json]:
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
        """As ``NodeClient.identity``, from the first block and its generator's address."""
        first = await self.get("/blocks/headers/at/1")
        with _reading("its first block"):
            generator = base58.decode(first["generator"])
            return ChainIdentity(generator[1], str(first["signature"]))

    async def status(self) -> ChainStatus:
        """As ``NodeClient.status``."""
        return block_status(await self.get("/blocks/headers/last"))

    async def block_id(self, height: int) -> bytes | None:
        """As ``NodeClient.block_id``."""
        path = f"/blocks/headers/at/{height}"
        status, answer = await self._request("GET", path)
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
            return None
        if status != HTTPStatus.OK:
            raise NodeUnavailable(f"the node answers {status} to {path}: {_shortened(answer)}")
        return block_status(answer).block_id

    async def finalized_height(self) -> int:
        """The height of the last final block; 0 if the node does not know of finality."""
        path = "/blocks/height/finalized"
        status, answer = await self._request("GET", path)
        if status in _NO_SUCH_ROUTE:
            return 0
        if status != HTTPStatus.OK:
            raise NodeUnavailable(f"the node answers {status} to {path}: {_shortened(answer)}")
        with _reading("its last final block"):
            return int(answer["height"])

    async def feature_active(self, feature: int) -> bool:
        """As ``NodeClient.feature_active``; there is one request per height."""
        height = (await self.status()).height
        if self._features[0] != height:
            answer = await self.get("/activation/status")
            with _reading("its features"):
                active = frozenset(
                    int(each["id"])
                    for each in answer.get("features", ())
                    if each.get("blockchainStatus") == _ACTIVATED
                )
            self._features = height, active
        return feature in self._features[1]

    async def asset(self, asset_id: AssetId) -> Asset | None:
        """As ``NodeClient.asset``."""
        status, answer = await self._request("GET", f"/assets/details/{base58.encode(asset_id)}")
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
            return None
        if status != HTTPStatus.OK:
            raise NodeUnavailable(f"the node answers {status} about an asset: {_shortened(answer)}")
        with _reading("an asset"):
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
        with _reading("an account's script"):
            return answer.get("script") is not None

    async def account(
        self, address: Address, assets: Collection[AssetId | None] | None
    ) -> AccountState:
        """As ``NodeClient.account``."""
        text = address_text(address)
        balances: Balances = {}
        leased_out = 0
        with _reading("an account's balances"):
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

    async def was_executed(self, order_id: bytes) -> bool:  # noqa: ARG002 - there is no route
        """Always false: the REST API does not report what was executed of an order.
        ``docs/reference/matcher-settings.md`` has the consequences for a matcher that lost its
        data.
        """
        return False

    async def inclusions(self, transaction_ids: Sequence[bytes]) -> dict[bytes, Inclusion]:
        """As ``NodeClient.inclusions``."""
        found: dict[bytes, Inclusion] = {}
        for start in range(0, len(transaction_ids), MAX_IDS_PER_REQUEST):
            part = transaction_ids[start : start + MAX_IDS_PER_REQUEST]
            body = {"ids": [base58.encode(each) for each in part]}
            status, answer = await self._request("POST", "/transactions/status", body)
            if status != HTTPStatus.OK:
                raise NodeUnavailable(f"the node does not tell statuses: {_shortened(answer)}")
            with _reading("the status of transactions"):
                for each in answer:
                    if each.get("status") == "confirmed":
                        failure = failure_in(each.get("applicationStatus"))
                        found[base58.decode(each["id"])] = Inclusion(int(each["height"]), failure)
                    elif each.get("status") == "unconfirmed":
                        found[base58.decode(each["id"])] = Inclusion(0)
        return found

    async def now(self) -> int:
        """As ``NodeClient.now``."""
        with _reading("its time"):
            return int((await self.get("/utils/time"))["NTP"])

    async def block_time(self, height: int) -> int:
        """As ``NodeClient.block_time``."""
        with _reading("the time of a block"):
            return int((await self.get(f"/blocks/headers/at/{height}"))["timestamp"])

    async def find_exchanges(
        self, account: Address, wanted: Collection[OrderPair], since: int
    ) -> dict[OrderPair, FoundExchange]:
        """As ``NodeClient.find_exchanges``."""
        found: dict[OrderPair, FoundExchange] = {}
        missing = set(wanted)
        path = f"/transactions/address/{address_text(account)}/limit/{_PAGE}"
        after = ""
        with _reading("an account's history"):
            for _ in range(_MAX_PAGES):
                [page] = await self.get(path + after)
                for each in page:
                    orders = _orders_of(each)
                    if orders in missing:
                        failure = failure_in(each.get("applicationStatus"))
                        inclusion = Inclusion(int(each["height"]), failure)
                        exchange = FoundExchange(read_signed(each, self._chain_id), inclusion)
                        if not failure:
                            found[orders] = exchange
                            missing.discard(orders)
                        found.setdefault(orders, exchange)
                    if not missing or int(each["timestamp"]) < since:
                        return found
                if len(page) < _PAGE:
                    return found
                after = f"?after={page[-1]['id']}"
        raise NodeUnavailable(
            f"an account has more than {_PAGE * _MAX_PAGES} transactions to search"
        )

    # --- scripts ----------------------------------------------------------------------------------

    async def run_scripts(
        self,
        trials: Iterable[AnyTransaction],
        order: Order,
        assets: Collection[AssetId],
        *,
        blind: bool,
    ) -> ScriptAnswer:
        """As ``NodeClient.run_scripts``, by validating the trials on the node, which does not
        prevent scripts from reading the chain.

        A node checks balances before it runs scripts. If it rejects the trials for another reason
        than a script, the scripts have not run, which counts as a fault.
        """
        del order, blind
        message = "there was no trial"
        for trial in trials:
            status, answer = await self._request("POST", "/debug/validate", codec.to_json(trial))
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                raise NodeUnavailable(
                    f"the node answers {status} about scripts: {_shortened(answer)}"
                )
            if status != HTTPStatus.OK or not isinstance(answer, dict):
                message = f"the node answers {status} to /debug/validate: {_shortened(answer)}"
                break
            if answer.get("valid") is True:
                return ScriptAnswer()
            message = _shortened(answer.get("error", ""))
            lowered = message.lower()
            blamed = next((each for each in assets if base58.encode(each) in message), None)
            if "not allowed by" in lowered:
                return ScriptAnswer(ScriptFault.DENIED, blamed, message)
            if "error while executing" in lowered:
                return ScriptAnswer(ScriptFault.RETURNED_ERROR, blamed, message)
        return ScriptAnswer(ScriptFault.EXCEPTION, None, f"{_UNASKED}: {message}")

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

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """As ``NodeClient.updates``: from the node's event stream, or by polling if it has none."""
        stream = EventStream(self._http, self.status, self._chain_id)
        if await self._exists(stream):
            _log.info("following the node by its events")
            source = stream.updates()
        else:
            _log.info("following the node by asking every %d ms", self._access.poll_interval_ms)
            interval = self._access.poll_interval_ms / 1000
            source = Poller(self.get, interval, self._chain_id).updates()
        async with contextlib.aclosing(source):
            async for update in source:
                yield update

    async def _exists(self, stream: EventStream) -> bool:
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
    """The meaning of an error response. The node's own rejections of a transaction have status 400
    and an error code; anything else comes from a proxy in between.
    """
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        body = answer.body.decode(errors="replace")
    text = f"status {answer.status}: {_shortened(body)}"
    is_temporary = answer.status == HTTPStatus.TOO_MANY_REQUESTS
    if is_temporary or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return BroadcastAnswer(Broadcast.LATER, text)
    is_own = isinstance(body, dict) and isinstance(body.get("error"), int)
    if answer.status != HTTPStatus.BAD_REQUEST or not is_own:
        return BroadcastAnswer(Broadcast.OPERATOR, text)
    return refusal(_shortened(body.get("message", body)))


def refusal(message: str) -> BroadcastAnswer:
    """What a node's message about a rejected transaction means for sending it again. Unknown
    messages count as temporary: an execution is not given up for them.
    """
    lowered = message.lower()
    for result, parts in _REFUSALS:
        if any(part in lowered for part in parts):
            return BroadcastAnswer(result, message)
    return BroadcastAnswer(Broadcast.NOT_YET, message)


@contextlib.contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn errors in reading a response of unexpected form into ``NodeUnavailable``."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, Base58Error, ChainError) as error:
        raise NodeUnavailable(f"the node does not tell {what}: {error!r}") from error


def _orders_of(transaction: Json) -> OrderPair:
    if transaction.get("type") != TYPE.type_id:
        return frozenset()
    return frozenset(base58.decode(transaction[each]["id"]) for each in ("order1", "order2"))


def _shortened(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:_MAX_MESSAGE_CHARS]
