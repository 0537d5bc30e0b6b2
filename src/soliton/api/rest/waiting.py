"""``/transactions/wait`` and ``/blocks/wait``: long polling. No other node has them.

A transaction is awaited until it has a number of blocks above it, or until its block is final:
which block that is can change only with a new block or a rollback.

What lives here: checking the conditions, and the response at the timeout. What does not: the
waiting itself (``soliton.api.waiting``).
"""

from __future__ import annotations

import asyncio
from typing import Final

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.json_blocks import header_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import node_of, transaction_id
from soliton.api.rest import examples
from soliton.api.rest.transactions import STATUS_SCHEMA, status_of
from soliton.api.route_table import row, table
from soliton.api.schemas import BLOCK_HEADER
from soliton.web.parameters import NATURAL, Kind

MAX_SECONDS: Final = 60
"""The longest timeout; proxies and clients give up after that."""
DEFAULT_SECONDS: Final = 30
_SPARE_SECONDS: Final = 5
FINALIZED: Final = "finalized"
"""In place of a number of confirmations: those that make a block final."""


async def wait_for_transaction(request: Request) -> Members:
    """The status of a transaction, as soon as it has enough confirmations."""
    node = node_of(request)
    name = transaction_id(request.text("id"), node)
    confirmations = request.arguments.get("confirmations") or 0
    until, known = _until(request), False
    while True:
        found = status_of(node, name)
        key: bytes | int = name
        location = node.chain.store.transaction_location(name)
        if location is not None:
            if confirmations == FINALIZED:
                found["finalized"] = is_enough = location.height <= node.chain.finalized_height
                key = node.chain.height + 1
            else:
                assert isinstance(confirmations, int)
                key = location.height + confirmations
                is_enough = key <= node.chain.height
            if is_enough:
                return found
        rest = until - asyncio.get_running_loop().time()
        was_dropped = known and found["status"] == "not_found"
        if rest <= 0 or was_dropped or node.is_stopping:
            return found
        known = found["status"] != "not_found"
        reason = await request.context.waiting.wait(node.events, key, rest)
        if reason is not None:
            return status_of(node, name) | {"reason": reason}


async def wait_for_block(request: Request) -> Members:
    """The header of the block at a height, as soon as there is one."""
    node, height = node_of(request), request.integer("height")
    until = _until(request)
    while not 1 <= height <= node.chain.height:
        rest = until - asyncio.get_running_loop().time()
        if rest <= 0 or height == 0 or node.is_stopping:
            raise errors.BLOCK_DOES_NOT_EXIST.error()
        await request.context.waiting.wait(node.events, height, rest)
    return header_json(node.chain, height)


def _until(request: Request) -> float:
    """The deadline of the request on the event loop's clock."""
    seconds = request.optional_integer("timeout")
    seconds = DEFAULT_SECONDS if seconds is None else min(seconds, MAX_SECONDS)
    return asyncio.get_running_loop().time() + seconds


def _confirmations(text: str) -> object | None:
    return FINALIZED if text == FINALIZED else NATURAL.convert(text)


_CONFIRMATIONS: Final = Kind(
    "confirmations",
    {"anyOf": [NATURAL.schema, {"type": "string", "enum": [FINALIZED]}]},
    _confirmations,
    f"{NATURAL.expected}, or {FINALIZED}",
)
_STATUS_OR_REASON: Final = {
    **STATUS_SCHEMA,
    "properties": {
        **STATUS_SCHEMA["properties"],
        "finalized": {
            "type": "boolean",
            "description": "Whether its block is final; with `confirmations=finalized`",
        },
        "reason": {"type": "string", "description": "Why the pool dropped it"},
    },
}
_TIMEOUT: Final = f"Timeout in seconds, {DEFAULT_SECONDS} by default, at most {MAX_SECONDS}"
ROUTES: Final = table("blocks", f"""
timeout       | natural       | {_TIMEOUT} | 10
confirmations | confirmations | Blocks above it to wait for, or `finalized` for a final block | 0
""",
    row("GET /transactions/wait/{id.transaction}?timeout&confirmations tag=transactions",
        wait_for_transaction,
        "The status of a transaction, as soon as it is in a block, or at the timeout",
        _STATUS_OR_REASON,
        examples.STATUS, "INVALID_TRANSACTION_ID INVALID_SIGNATURE TOO_MANY_WAITING",
        seconds=MAX_SECONDS + _SPARE_SECONDS),
    row("GET /blocks/wait/{height}?timeout", wait_for_block,
        "The header of the block at a height, as soon as there is one", BLOCK_HEADER,
        examples.HEADER, "BLOCK_DOES_NOT_EXIST TOO_MANY_WAITING",
        seconds=MAX_SECONDS + _SPARE_SECONDS),
    own=True,
    kinds=(_CONFIRMATIONS,),
)  # fmt: skip
