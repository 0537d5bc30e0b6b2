"""``/transactions/wait`` and ``/blocks/wait``: answers that come when something has happened. No
other node has them.

What lives here: looking, and what is answered when the time is up. What does not: the waiting
itself (``soliton.api.waiting``).
"""

from __future__ import annotations

import asyncio
from typing import Final

from soliton.api.errors import (
    BLOCK_DOES_NOT_EXIST,
    INVALID_SIGNATURE,
    INVALID_TRANSACTION_ID,
    TOO_MANY_WAITING,
)
from soliton.api.http import Request
from soliton.api.json_blocks import header_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import node_of, transaction_id
from soliton.api.rest import examples
from soliton.api.rest.transactions import STATUS_SCHEMA, status_of
from soliton.api.routes import GET, NATURAL, TEXT, Parameter, Route, query_parameter
from soliton.api.schemas import BLOCK_HEADER

MAX_SECONDS: Final = 60
"""Longer than this, proxies and clients on the way give up."""
DEFAULT_SECONDS: Final = 30
_SPARE_SECONDS: Final = 5


async def wait_for_transaction(request: Request) -> Members:
    """Where a transaction is, as soon as it is in a block and that deep enough."""
    node = node_of(request)
    name = transaction_id(request.text("id"), node)
    wanted = request.optional_integer("confirmations") or 0
    until, known = _until(request), False
    while True:
        found = status_of(node, name)
        location = node.chain.store.transaction_location(name)
        if location is not None and node.chain.height - location.height >= wanted:
            return found
        thing = name if location is None else location.height + wanted
        rest = until - asyncio.get_running_loop().time()
        gone = known and found["status"] == "not_found"
        if rest <= 0 or gone or node.is_stopping:
            return found
        known = found["status"] != "not_found"
        reason = await request.context.waiting.wait(node.events, thing, rest)
        if reason is not None:
            return status_of(node, name) | {"reason": reason}


async def wait_for_block(request: Request) -> Members:
    """The header of the block at a height, as soon as there is one."""
    node, height = node_of(request), request.integer("height")
    until = _until(request)
    while not 1 <= height <= node.chain.height:
        rest = until - asyncio.get_running_loop().time()
        if rest <= 0 or height == 0 or node.is_stopping:
            raise BLOCK_DOES_NOT_EXIST.error()
        await request.context.waiting.wait(node.events, height, rest)
    return header_json(node.chain, height)


def _until(request: Request) -> float:
    """The time, on the event loop's clock, at which the answer must come."""
    seconds = request.optional_integer("timeout")
    seconds = DEFAULT_SECONDS if seconds is None else min(seconds, MAX_SECONDS)
    return asyncio.get_running_loop().time() + seconds


_TIMEOUT: Final = query_parameter(
    "timeout",
    NATURAL,
    f"Seconds after which an answer comes anyway, {DEFAULT_SECONDS} by default, "
    f"at most {MAX_SECONDS}",
    10,
)

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/transactions/wait/{id}",
        handler=wait_for_transaction,
        tag="transactions",
        summary="Where a transaction is, as soon as it is in a block; or when the time is up",
        parameters=(
            Parameter("id", TEXT, "Id of a transaction in base58", examples.TRANSACTION_ID),
            _TIMEOUT,
            query_parameter(
                "confirmations", NATURAL, "Wait until so many blocks are above it, too", 0
            ),
        ),
        response={
            **STATUS_SCHEMA,
            "properties": {
                **STATUS_SCHEMA["properties"],
                "reason": {"type": "string", "description": "Why it has fallen out of the pool"},
            },
        },
        example=examples.STATUS,
        errors=(INVALID_TRANSACTION_ID, INVALID_SIGNATURE, TOO_MANY_WAITING),
        seconds=MAX_SECONDS + _SPARE_SECONDS,
    ),
    Route(
        methods=GET,
        path="/blocks/wait/{height}",
        handler=wait_for_block,
        tag="blocks",
        summary="The header of the block at a height, as soon as there is one",
        parameters=(
            Parameter("height", NATURAL, "Height, 1 for the genesis block", 2),
            _TIMEOUT,
        ),
        response=BLOCK_HEADER,
        example=examples.HEADER,
        errors=(BLOCK_DOES_NOT_EXIST, TOO_MANY_WAITING),
        seconds=MAX_SECONDS + _SPARE_SECONDS,
    ),
)
