"""The signer's HTTP client of the node.

What lives here: broadcasting and simulating a transaction, reading heights, aliases and balances,
and the error for each kind of failure. What does not: the transactions.

Source of the routes: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/TransactionsApiRoute.scala``.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from soliton.errors import InputError
from soliton.signer.errors import (
    NODE_SENSELESS,
    NODE_SLOW,
    NODE_UNREACHABLE,
    Fault,
    NodeRefused,
    NodeTrouble,
)
from soliton.signer.settings import SignerSettings
from soliton.web.client import (
    ClientLimits,
    HttpClient,
    HttpTimeout,
    HttpTooLarge,
    HttpTrouble,
    HttpUnreachable,
)

FINAL_DEPTH: Final = 100
"""The depth below which nodes replace no blocks, where there is no finality by votes."""
_NO_SUCH_ROUTE: Final = frozenset((400, 404, 405))
"""Statuses of older nodes, which read the last part of the path as the id of a block."""
_MAX_MESSAGE: Final = 4_000
_IS_THERE: Final = "already in the state"
_UNCERTAIN: Final = frozenset((408, 425, 429))
"""Statuses below 500 of limits and delays, which do not tell whether something was done."""
_MAYBE: Final = "; the transaction may have arrived all the same, look for its id"


class NodeClient:
    """A pool of connections to one node."""

    __slots__ = ("_client",)

    def __init__(self, settings: SignerSettings) -> None:
        """Raises ``InputError`` for an invalid address."""
        limits = settings.limits
        try:
            self._client = HttpClient(
                settings.node_url,
                ClientLimits(
                    limits.requests_at_once,
                    connect_seconds=limits.connect_seconds,
                    answer_seconds=limits.node_seconds,
                    answer_bytes=limits.node_answer_bytes,
                    keep_alive_seconds=limits.keep_alive_seconds,
                ),
            )
        except InputError as error:
            raise InputError(
                "the signer's node address should look like http://host:port"
            ) from error

    async def broadcast(self, transaction: dict[str, object]) -> None:
        """Send a signed transaction; raises ``NodeRefused`` or ``NodeTrouble``.

        What the node, or a proxy in front of it, answers with a limit or a trouble of its own may
        have arrived: then the node is asked for its status.
        """
        transaction_id = str(transaction["id"])
        trouble: NodeRefused | NodeTrouble
        try:
            status, answer = await self._call(
                "POST", "/transactions/broadcast", transaction, transaction_id
            )
        except NodeTrouble as error:
            if "id" not in error.answer.more:
                raise
            trouble = error
        else:
            code, message = answer.get("error"), answer.get("message")
            if status == HTTPStatus.OK and answer.get("id") == transaction_id:
                return
            trouble = _senseless(status, transaction_id)
            is_refusal = 400 <= status < 500 and status not in _UNCERTAIN
            if is_refusal and type(code) is int and isinstance(message, str):
                trouble = NodeRefused(status, code, message[:_MAX_MESSAGE], answer.get("details"))
                if _IS_THERE not in message:
                    raise trouble
        if not await self._is_there(transaction_id):
            raise trouble

    async def _is_there(self, transaction_id: str) -> bool:
        """Whether the node has a transaction, confirmed or not; ``False`` if it does not answer."""
        try:
            answer = await self._client.request("GET", f"/transactions/status?id={transaction_id}")
            if answer.status == HTTPStatus.NOT_FOUND:
                # Nodes of the oldest generation have no such route.
                return await self.height_of(transaction_id) is not None
            rows = json.loads(answer.body)
        except (HttpTrouble, NodeTrouble, ValueError, RecursionError):
            return False
        return answer.status == HTTPStatus.OK and any(
            isinstance(each, dict)
            and each.get("id") == transaction_id
            and each.get("status") in ("confirmed", "unconfirmed")
            for each in (rows if isinstance(rows, list) else ())
        )

    async def height(self) -> int:
        """Return the height of the node's chain; raises ``NodeTrouble``."""
        status, answer = await self._call("GET", "/blocks/height")
        height = answer.get("height")
        if status != HTTPStatus.OK or type(height) is not int:
            raise _senseless(status)
        return height

    async def finalized_height(self) -> int:
        """Return the height of the node's last final block, which no fork replaces; where there are
        no votes, that is the one ``FINAL_DEPTH`` blocks below the last. Raises ``NodeTrouble``.
        """
        status, answer = await self._call("GET", "/blocks/height/finalized")
        if status in _NO_SUCH_ROUTE:
            return await self.height() - FINAL_DEPTH
        height = answer.get("height")
        if status != HTTPStatus.OK or type(height) is not int:
            raise _senseless(status)
        return height

    async def height_of(self, transaction_id: str) -> tuple[int, str] | None:
        """Return the height of a transaction's block, and its application status, or ``None``
        while it is in no block; raises ``NodeTrouble``.
        """
        status, answer = await self._call("GET", f"/transactions/info/{transaction_id}")
        height = answer.get("height")
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status != HTTPStatus.OK or type(height) is not int:
            raise _senseless(status)
        if answer.get("id") != transaction_id:
            raise NodeTrouble(NODE_SENSELESS, "the node answered about another transaction")
        return height, str(answer.get("applicationStatus", "succeeded"))

    async def address_of(self, alias: str) -> str:
        """Return the address of an alias, empty for none; raises ``NodeTrouble``."""
        status, answer = await self._call("GET", f"/alias/by-alias/{quote(alias)}")
        address = answer.get("address")
        if status == HTTPStatus.OK and isinstance(address, str):
            return address
        if 400 <= status < 500:
            return ""
        raise _senseless(status)

    async def fault_of(self, transaction: dict[str, object]) -> str | None:
        """Return why an unsigned transaction would fail, or ``None``; raises ``NodeTrouble``, also
        for a node without simulation.
        """
        answer = await self.simulated(transaction)
        return None if answer["valid"] else str(answer["message"])

    async def simulated(
        self, transaction: dict[str, object], *, alone: bool = False
    ) -> dict[str, Any]:
        """Return the node's simulation; unless it is ``valid``, ``message`` says why. ``alone``
        leaves out unconfirmed transactions. Raises ``NodeTrouble``.
        """
        path = "/transactions/simulate" + ("?unconfirmed=false" if alone else "")
        status, answer = await self._call("POST", path, transaction)
        valid, error = answer.get("valid"), answer.get("error")
        if status == HTTPStatus.OK and isinstance(valid, bool):
            message = error.get("message") if isinstance(error, dict) else error
            return {**answer, "message": str(message or "it would fail")[:_MAX_MESSAGE]}
        if status == HTTPStatus.BAD_REQUEST and isinstance(answer.get("message"), str):
            return {"valid": False, "message": str(answer["message"])[:_MAX_MESSAGE]}
        raise NodeTrouble(NODE_SENSELESS, "the node has no POST /transactions/simulate")

    async def balance(self, address: str, asset: str | None) -> int:
        """Return an account's balance on the node's chain; raises ``NodeTrouble``."""
        path = f"/addresses/balance/{quote(address)}"
        if asset is not None:
            path = f"/assets/balance/{quote(address)}/{quote(asset)}"
        status, answer = await self._call("GET", path)
        balance = answer.get("balance")
        if status != HTTPStatus.OK or type(balance) is not int:
            raise _senseless(status)
        return balance

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    async def _call(
        self,
        method: str,
        path: str,
        body: dict[str, object] | None = None,
        transaction_id: str | None = None,
    ) -> tuple[int, dict[str, object]]:
        """Return status and JSON object of an answer; the object is empty if it is no object."""
        maybe = _MAYBE if transaction_id is not None else ""
        data = b"" if body is None else json.dumps(body).encode()
        trouble: tuple[Fault, str]
        try:
            answer = await self._client.request(method, path, data, may_repeat=not data)
        except HttpUnreachable:
            raise NodeTrouble(NODE_UNREACHABLE, "the node cannot be reached") from None
        except HttpTooLarge as error:
            raise _senseless(error.status, transaction_id) from None
        except HttpTimeout:
            trouble = NODE_SLOW, "the node did not answer in time" + maybe
        except HttpTrouble:
            trouble = NODE_UNREACHABLE, "the node hung up without an answer" + maybe
        else:
            return answer.status, _object(answer.body)
        raise NodeTrouble(*trouble, transaction_id)


def _senseless(status: int, transaction_id: str | None = None) -> NodeTrouble:
    message = f"the node answered {status}, but not as a node does"
    if transaction_id is not None:
        message += _MAYBE
    return NodeTrouble(NODE_SENSELESS, message, transaction_id)


def _object(text: bytes) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
