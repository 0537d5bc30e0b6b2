"""Routes under ``/blocks``: blocks and headers by height and id, their times and heights.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/BlocksApiRoute.scala``
and ``api/common/CommonBlocksApi.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/
BlocksApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Final

import msgspec

from soliton.api.errors import (
    BLOCK_DOES_NOT_EXIST,
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    INVALID_BLOCK_ID,
    INVALID_SIGNATURE,
    TOO_BIG_SEQUENCE,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    RejectionError,
    invalid_request,
)
from soliton.api.hints import about_block, with_hint
from soliton.api.http import APPLICATION_JSON, JsonStream, Raw, Request
from soliton.api.json_blocks import header_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import ADDRESS, address_argument, block_id, is_oldest, node_of
from soliton.api.rest import examples
from soliton.api.routes import GET, NATURAL, NATURAL_LONG, TEXT, Parameter, Route
from soliton.api.schemas import BLOCK, BLOCK_HEADER
from soliton.chain.addresses import from_public_key
from soliton.node.chain import Chain
from soliton.node.node import Node
from soliton.web.significands import JSON_WITH_STRINGS, Accepted, accepted

MAX_BLOCKS_FOR_DELAY: Final = 10_000

_TAG: Final = "blocks"
_GENESIS: Final = 1
_MIDDLE: Final = "tn"
_EMPTY: Final = Raw(b"", status=404)

_NO_PATHS: Final = (
    "/blocks/headers/{id}/{rest}",
    "/blocks/headers/{id}/{rest}/{more}",
    "/blocks/{id}/{rest}",
    "/blocks/{id}/{rest}/{more}",
)

FAMILIES: Final = {
    "/blocks/first": ("zbs", "tn"),
    "/blocks/signature/{signature}": ("zbs", "tn"),
    "/blocks/child/{signature}": ("zbs",),
    "/blocks/{id}": ("waves", "tn"),
    "/blocks/headers/{id}": ("waves", "tn"),
    **dict.fromkeys(_NO_PATHS, ("waves", "tn")),
}
"""Routes that only some families of networks have."""

Show = Callable[[Request, int], object]


class Height(msgspec.Struct, frozen=True, gc=False):
    """A height of the chain."""

    height: int


class Delay(msgspec.Struct, frozen=True, gc=False):
    """A mean time between blocks in milliseconds."""

    delay: int


class NoBlock(msgspec.Struct, frozen=True, gc=False):
    """What the oldest generation says, with status 200, where there is no such block."""

    status: str
    details: str


def height(request: Request) -> Height:
    """The height of the last block."""
    return Height(node_of(request).chain.height)


def last(request: Request) -> object:
    """The last block."""
    return _block(request, node_of(request).chain.height)


def last_header(request: Request) -> object:
    """The last block's header."""
    chain = node_of(request).chain
    return header_json(chain, chain.height)


def first(request: Request) -> object:
    """The genesis block."""
    return _block(request, _GENESIS)


def at(request: Request) -> object:
    """The block at a height."""
    return _at(request, _block)


def header_at(request: Request) -> object:
    """The header of the block at a height."""
    return _at(request, _header)


def _block(request: Request, height: int) -> Raw | Coroutine[None, None, Raw]:
    """The block at a height, or who makes its text; raises ``KeyError``."""
    strings = _wants_strings(request)
    found = _find(request, height, strings=strings)
    if isinstance(found, bytes):
        return _raw(found, strings=strings)
    return _block_later(found, strings=strings)


async def _block_later(making: asyncio.Task[bytes], *, strings: bool) -> Raw:
    return _raw(await asyncio.shield(making), strings=strings)


def _raw(text: bytes, *, strings: bool) -> Raw:
    return Raw(text, JSON_WITH_STRINGS if strings else APPLICATION_JSON)


def _find(request: Request, height: int, *, strings: bool) -> bytes | asyncio.Task[bytes]:
    context, chain = request.context, node_of(request).chain
    return context.block_texts.find(chain, height, context.turns, strings=strings)


def _wants_strings(request: Request) -> bool:
    return accepted(request.headers.get(b"accept")) is Accepted.STRINGS


def _header(request: Request, height: int) -> Members:
    return header_json(node_of(request).chain, height)


def _at(request: Request, show: Show) -> object:
    node = node_of(request)
    try:
        return show(request, request.integer("height"))
    except KeyError as error:
        if is_oldest(node):
            return NoBlock("error", "No block for this height")
        if node.network.family == _MIDDLE:
            return _EMPTY
        raise BLOCK_DOES_NOT_EXIST.error() from error


def by_id(request: Request) -> object:
    """The block with an id."""
    node = node_of(request)
    return _block(request, _height_of(node, request.text("id")))


def header_by_id(request: Request) -> object:
    """The header of the block with an id."""
    node = node_of(request)
    return header_json(node.chain, _height_of(node, request.text("id")))


def by_signature(request: Request) -> object:
    """The block with a signature."""
    node = node_of(request)
    return _block(request, _height_of(node, request.text("signature")))


def child(request: Request) -> object:
    """The block after the one with a signature."""
    node = node_of(request)
    above = _height_of(node, request.text("signature")) + 1
    if above > node.chain.height:
        return NoBlock("error", "No child blocks")
    return _block(request, above)


def height_by_id(request: Request) -> Height:
    """The height of the block with an id."""
    node = node_of(request)
    return Height(_height_of(node, request.text("id")))


def _height_of(node: Node, text: str) -> int:
    name = block_id(text, node)
    found = node.chain.height_of(name)
    if found is None:
        raise with_hint(BLOCK_DOES_NOT_EXIST.error(), about_block(name, node))
    return found


def no_such_path(request: Request) -> object:
    """What the reference does with paths below ``/blocks`` that nothing else takes.

    Its last route reads the first segment as an id and fails for that, before it sees more.
    """
    block_id(request.text("id"), node_of(request))
    raise RejectionError("more segments than a route has")


def delay(request: Request) -> Delay:
    """The mean time between the blocks before one."""
    node = node_of(request)
    count = request.integer("count")
    if is_oldest(node):
        return _oldest_delay(node, request.text("id"), count)
    name = block_id(request.text("id"), node)
    if count > MAX_BLOCKS_FOR_DELAY:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_BLOCKS_FOR_DELAY)
    top = node.chain.height_of(name)
    if top is None:
        raise BLOCK_DOES_NOT_EXIST.error()
    bottom = max(_GENESIS, top - max(1, count))
    return Delay(_elapsed(node.chain, bottom, top) // max(1, top - bottom))


def _oldest_delay(node: Node, text: str, count: int) -> Delay:
    top = _height_of(node, text)
    if count <= 0:
        raise invalid_request("Block count should be positive")
    if top - count < _GENESIS:
        raise invalid_request(f"Cannot go {count} blocks back")
    return Delay(_elapsed(node.chain, top - count, top) // count)


def _elapsed(chain: Chain, bottom: int, top: int) -> int:
    return chain.meta(top).timestamp - chain.meta(bottom).timestamp


def height_by_timestamp(request: Request) -> Height:
    """The height of the last block that is not younger than a time."""
    node = node_of(request)
    chain, timestamp = node.chain, request.integer("timestamp")
    if timestamp > node.clock():
        raise invalid_request("Indicated timestamp belongs to the future")
    if timestamp < chain.meta(_GENESIS).timestamp:
        raise invalid_request("Indicated timestamp is before the start of the blockchain")
    heights = range(_GENESIS, chain.height + 1)
    return Height(bisect_right(heights, timestamp, key=lambda h: chain.meta(h).timestamp))


def sequence(request: Request) -> JsonStream:
    """The blocks from one height to another."""
    node = node_of(request)
    return JsonStream(_blocks(request, _range(request, node)))


def header_sequence(request: Request) -> JsonStream:
    """The headers from one height to another."""
    node = node_of(request)
    return JsonStream(_headers(node.chain, _range(request, node)))


def by_generator(request: Request) -> JsonStream:
    """The blocks of one generator from one height to another."""
    node = node_of(request)
    chain = node.chain
    generator = address_argument(request)
    heights = _range(request, node)

    def own(candidate: int) -> bool:
        if not _GENESIS <= candidate <= chain.height:
            return False
        key = chain.meta(candidate).generator
        return from_public_key(key, chain.network.chain_id) == generator

    return JsonStream(_blocks(request, [item for item in heights if own(item)]))


def _range(request: Request, node: Node) -> range:
    start, end = request.integer("from"), request.integer("to")
    if end < start or end - start >= node.settings.rest_api.blocks_request_limit:
        raise TOO_BIG_SEQUENCE.error()
    top = node.chain.height
    if start == 0 and not is_oldest(node):
        # The reference counts heights that are not positive from the end.
        return range(top, (top if end == 0 else end) + 1)
    return range(max(_GENESIS, start), min(top, end) + 1)


async def _blocks(request: Request, heights: Iterable[int]) -> AsyncIterator[object]:
    """Blocks as finished texts, up to the first that there is not."""
    strings = _wants_strings(request)
    for item in heights:
        try:
            found = _find(request, item, strings=strings)
        except KeyError:
            return
        yield msgspec.Raw(found if isinstance(found, bytes) else await asyncio.shield(found))


async def _headers(chain: Chain, heights: Iterable[int]) -> AsyncIterator[object]:
    for item in heights:
        try:
            yield header_json(chain, item)
        except KeyError:
            return


_HEIGHT: Final = Parameter("height", NATURAL, "Height, 1 for the genesis block", 2)
_FROM: Final = Parameter("from", NATURAL, "First height", 2)
_TO: Final = Parameter("to", NATURAL, "Last height", 2)
_ID: Final = Parameter("id", TEXT, "Id of a block in base58", examples.BLOCK_ID)
_SIGNATURE: Final = Parameter("signature", TEXT, "Signature in base58", examples.BLOCK_ID)
_BLOCK_ERRORS: Final = (INVALID_BLOCK_ID, INVALID_SIGNATURE, BLOCK_DOES_NOT_EXIST)
_NO_BLOCK: Final = {
    "type": "object",
    "description": "There is no such block, on networks of the oldest generation",
    "properties": {"status": {"type": "string"}, "details": {"type": "string"}},
    "required": ["status", "details"],
}
_BLOCK_OR_NONE: Final = {"anyOf": [BLOCK, _NO_BLOCK]}
_HEADER_OR_NONE: Final = {"anyOf": [BLOCK_HEADER, _NO_BLOCK]}
_BLOCKS: Final = {"type": "array", "items": BLOCK}
_HEADERS: Final = {"type": "array", "items": BLOCK_HEADER}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/blocks/height",
        handler=height,
        tag=_TAG,
        summary="Height of the last block",
        response=Height,
        example={"height": 1},
    ),
    Route(
        methods=GET,
        path="/blocks/last",
        handler=last,
        tag=_TAG,
        summary="The last block",
        response=BLOCK,
        example=examples.BLOCK,
    ),
    Route(
        methods=GET,
        path="/blocks/first",
        handler=first,
        tag=_TAG,
        summary="The genesis block",
        response=BLOCK,
        example=examples.BLOCK,
    ),
    Route(
        methods=GET,
        path="/blocks/at/{height}",
        handler=at,
        tag=_TAG,
        summary="The block at a height",
        parameters=(_HEIGHT,),
        response=_BLOCK_OR_NONE,
        example=examples.BLOCK,
        errors=(INVALID_BLOCK_ID, BLOCK_DOES_NOT_EXIST),
    ),
    Route(
        methods=GET,
        path="/blocks/seq/{from}/{to}",
        handler=sequence,
        tag=_TAG,
        summary="The blocks from one height to another, both included; at most 100",
        parameters=(_FROM, _TO),
        response=_BLOCKS,
        example=[examples.BLOCK],
        errors=(TOO_BIG_SEQUENCE,),
    ),
    Route(
        methods=GET,
        path="/blocks/address/{address}/{from}/{to}",
        handler=by_generator,
        tag=_TAG,
        summary="The blocks of one generator from one height to another; at most 100 heights",
        parameters=(ADDRESS, _FROM, _TO),
        response=_BLOCKS,
        example=[examples.BLOCK],
        errors=(INVALID_ADDRESS, TOO_BIG_SEQUENCE),
    ),
    Route(
        methods=GET,
        path="/blocks/height/{id}",
        handler=height_by_id,
        tag=_TAG,
        summary="Height of the block with an id",
        parameters=(_ID,),
        response=Height,
        example={"height": 1},
        errors=_BLOCK_ERRORS,
    ),
    Route(
        methods=GET,
        path="/blocks/heightByTimestamp/{timestamp}",
        handler=height_by_timestamp,
        tag=_TAG,
        summary="Height of the last block that is not younger than a time",
        parameters=(
            Parameter("timestamp", NATURAL_LONG, "Milliseconds since 1970, UTC", 1566817216027),
        ),
        response=Height,
        example={"height": 1},
        errors=(CUSTOM_VALIDATION_ERROR,),
    ),
    Route(
        methods=GET,
        path="/blocks/delay/{id}/{count}",
        handler=delay,
        tag=_TAG,
        summary="Mean time in ms between a number of blocks, the last of which has the id",
        parameters=(_ID, Parameter("count", NATURAL, "Number of blocks, at most 10000", 1)),
        response=Delay,
        example={"delay": 0},
        errors=(*_BLOCK_ERRORS, TOO_BIG_SEQUENCE_WITH_LIMIT, CUSTOM_VALIDATION_ERROR),
    ),
    Route(
        methods=GET,
        path="/blocks/headers/last",
        handler=last_header,
        tag=_TAG,
        summary="The last block's header",
        response=BLOCK_HEADER,
        example=examples.HEADER,
    ),
    Route(
        methods=GET,
        path="/blocks/headers/at/{height}",
        handler=header_at,
        tag=_TAG,
        summary="The header of the block at a height",
        parameters=(_HEIGHT,),
        response=_HEADER_OR_NONE,
        example=examples.HEADER,
        errors=(INVALID_BLOCK_ID, BLOCK_DOES_NOT_EXIST),
    ),
    Route(
        methods=GET,
        path="/blocks/headers/seq/{from}/{to}",
        handler=header_sequence,
        tag=_TAG,
        summary="The headers from one height to another, both included; at most 100",
        parameters=(_FROM, _TO),
        response=_HEADERS,
        example=[examples.HEADER],
        errors=(TOO_BIG_SEQUENCE,),
    ),
    Route(
        methods=GET,
        path="/blocks/headers/{id}",
        handler=header_by_id,
        tag=_TAG,
        summary="The header of the block with an id",
        parameters=(_ID,),
        response=BLOCK_HEADER,
        example=examples.HEADER,
        errors=_BLOCK_ERRORS,
    ),
    Route(
        methods=GET,
        path="/blocks/signature/{signature}",
        handler=by_signature,
        tag=_TAG,
        summary="The block with a signature",
        parameters=(_SIGNATURE,),
        response=BLOCK,
        example=examples.BLOCK,
        errors=_BLOCK_ERRORS,
    ),
    Route(
        methods=GET,
        path="/blocks/child/{signature}",
        handler=child,
        tag=_TAG,
        summary="The block after the one with a signature",
        parameters=(_SIGNATURE,),
        response=_BLOCK_OR_NONE,
        example=examples.BLOCK,
        errors=_BLOCK_ERRORS,
    ),
    Route(
        methods=GET,
        path="/blocks/{id}",
        handler=by_id,
        tag=_TAG,
        summary="The block with an id",
        parameters=(_ID,),
        response=BLOCK,
        example=examples.BLOCK,
        errors=_BLOCK_ERRORS,
    ),
    *(
        Route(
            methods=GET,
            path=path,
            handler=no_such_path,
            tag=_TAG,
            summary="Paths that nothing takes",
            parameters=(
                _ID,
                *(
                    Parameter(name, TEXT, "Anything", "x")
                    for name in ("rest", "more")
                    if f"{{{name}}}" in path
                ),
            ),
            response={"type": "object"},
            example=INVALID_BLOCK_ID.error(**INVALID_BLOCK_ID.example).body(),
            documented=False,
        )
        for path in _NO_PATHS
    ),
)
