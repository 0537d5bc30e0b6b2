"""Routes under ``/blocks``: blocks and headers by height and id, timestamps and heights.

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

from soliton.api import errors
from soliton.api.hints import about_block, with_hint
from soliton.api.http import Request
from soliton.api.json_blocks import header_json
from soliton.api.json_transactions import MIDDLE, Members
from soliton.api.lookup import address_argument, block_id, is_oldest, node_of
from soliton.api.rest import examples
from soliton.api.route_table import row, table
from soliton.api.schemas import BLOCK, BLOCK_HEADER
from soliton.api.streaming import json_stream
from soliton.chain.addresses import from_public_key
from soliton.node.blockchain import Blockchain
from soliton.node.node import Node
from soliton.web.answers import APPLICATION_JSON, Stream, Whole
from soliton.web.number_strings import JSON_WITH_STRINGS, Accepted, accepted

MAX_BLOCKS_FOR_DELAY: Final = 10_000

_GENESIS: Final = 1
_EMPTY: Final = Whole(b"", status=404)

_NO_PATHS: Final = (
    "/blocks/headers/{id.block}/{rest}",
    "/blocks/headers/{id.block}/{rest}/{more}",
    "/blocks/{id.block}/{rest}",
    "/blocks/{id.block}/{rest}/{more}",
)


Show = Callable[[Request, int], object]


class Height(msgspec.Struct, frozen=True, gc=False):
    """A height of the chain."""

    height: int


class Delay(msgspec.Struct, frozen=True, gc=False):
    """A mean time between blocks in milliseconds."""

    delay: int


class NoBlock(msgspec.Struct, frozen=True, gc=False):
    """The answer of the oldest generation, with status 200, if there is no such block."""

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


def finalized_height(request: Request) -> Height:
    """The height of the last final block."""
    return Height(node_of(request).chain.finalized_height)


def finalized_header(request: Request) -> object:
    """The last final block's header."""
    chain = node_of(request).chain
    return header_json(chain, chain.finalized_height)


def finalized_at(request: Request) -> Height:
    """The height of the last block that was final with the block at a height."""
    chain, height = node_of(request).chain, request.integer("height")
    if height >= chain.height:
        raise errors.NOT_FINALIZED.error()
    return Height(chain.finalized_with(height))


def first(request: Request) -> object:
    """The genesis block."""
    return _block(request, _GENESIS)


def at(request: Request) -> object:
    """The block at a height."""
    return _at(request, _block)


def header_at(request: Request) -> object:
    """The header of the block at a height."""
    return _at(request, _header)


def _block(request: Request, height: int) -> Whole | Coroutine[None, None, Whole]:
    """The block at a height, or a coroutine that renders it; raises ``KeyError``."""
    strings = _wants_strings(request)
    found = _find(request, height, strings=strings)
    if isinstance(found, bytes):
        return _raw(found, strings=strings)
    return _block_later(found, strings=strings)


async def _block_later(task: asyncio.Task[bytes], *, strings: bool) -> Whole:
    return _raw(await asyncio.shield(task), strings=strings)


def _raw(text: bytes, *, strings: bool) -> Whole:
    return Whole(text, JSON_WITH_STRINGS if strings else APPLICATION_JSON)


def _find(request: Request, height: int, *, strings: bool) -> bytes | asyncio.Task[bytes]:
    context, chain = request.context, node_of(request).chain
    return context.block_texts.find(chain, height, context.time_slices, strings=strings)


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
        if node.network.family == MIDDLE:
            return _EMPTY
        raise errors.BLOCK_DOES_NOT_EXIST.error() from error


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
        raise with_hint(errors.BLOCK_DOES_NOT_EXIST.error(), about_block(name, node))
    return found


def no_such_path(request: Request) -> object:
    """The reference's answer to longer paths below ``/blocks``.

    Its last route parses the first segment as an id and fails before it sees the others.
    """
    block_id(request.text("id"), node_of(request))
    raise errors.RejectionError("more segments than a route has")


def delay(request: Request) -> Delay:
    """The mean time between blocks before a given one."""
    node = node_of(request)
    count = request.integer("count")
    if is_oldest(node):
        return _oldest_delay(node, request.text("id"), count)
    name = block_id(request.text("id"), node)
    if count > MAX_BLOCKS_FOR_DELAY:
        raise errors.TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_BLOCKS_FOR_DELAY)
    top = node.chain.height_of(name)
    if top is None:
        raise errors.BLOCK_DOES_NOT_EXIST.error()
    bottom = max(_GENESIS, top - max(1, count))
    return Delay(_elapsed(node.chain, bottom, top) // max(1, top - bottom))


def _oldest_delay(node: Node, text: str, count: int) -> Delay:
    top = _height_of(node, text)
    if count <= 0:
        raise errors.invalid_request("Block count should be positive")
    if top - count < _GENESIS:
        raise errors.invalid_request(f"Cannot go {count} blocks back")
    return Delay(_elapsed(node.chain, top - count, top) // count)


def _elapsed(chain: Blockchain, bottom: int, top: int) -> int:
    return chain.meta(top).timestamp - chain.meta(bottom).timestamp


def height_by_timestamp(request: Request) -> Height:
    """The height of the last block that is not younger than a time."""
    node = node_of(request)
    chain, timestamp = node.chain, request.integer("timestamp")
    if timestamp > node.clock():
        raise errors.invalid_request("Indicated timestamp belongs to the future")
    if timestamp < chain.meta(_GENESIS).timestamp:
        raise errors.invalid_request("Indicated timestamp is before the start of the blockchain")
    heights = range(_GENESIS, chain.height + 1)
    return Height(bisect_right(heights, timestamp, key=lambda h: chain.meta(h).timestamp))


def sequence(request: Request) -> Stream:
    """The blocks from one height to another."""
    node = node_of(request)
    return json_stream(request, _blocks(request, _kept(node, _range(request, node))))


def header_sequence(request: Request) -> Stream:
    """The headers from one height to another."""
    node = node_of(request)
    return json_stream(request, _headers(node.chain, _range(request, node)))


def by_generator(request: Request) -> Stream:
    """The blocks of one generator from one height to another."""
    node = node_of(request)
    chain = node.chain
    generator = address_argument(request)
    heights = _kept(node, _range(request, node))

    def own(candidate: int) -> bool:
        if not _GENESIS <= candidate <= chain.height:
            return False
        key = chain.meta(candidate).generator
        return from_public_key(key, chain.network.chain_id) == generator

    return json_stream(request, _blocks(request, [item for item in heights if own(item)]))


def _range(request: Request, node: Node) -> range:
    start, end = request.integer("from"), request.integer("to")
    if end < start or end - start >= node.settings.rest_api.blocks_request_limit:
        raise errors.TOO_BIG_SEQUENCE.error()
    top = node.chain.height
    if start == 0 and not is_oldest(node):
        # The reference counts heights that are not positive from the end.
        return range(top, (top if end == 0 else end) + 1)
    return range(max(_GENESIS, start), min(top, end) + 1)


def _kept(node: Node, heights: range) -> range:
    """Return heights whose blocks are kept; raises ``NotKept`` before an answer begins."""
    for height in heights:
        node.chain.store.kept.need_block(height)
    return heights


async def _blocks(request: Request, heights: Iterable[int]) -> AsyncIterator[object]:
    """Rendered blocks, up to the first missing one."""
    strings = _wants_strings(request)
    for item in heights:
        try:
            found = _find(request, item, strings=strings)
        except KeyError:
            return
        yield msgspec.Raw(found if isinstance(found, bytes) else await asyncio.shield(found))


async def _headers(chain: Blockchain, heights: Iterable[int]) -> AsyncIterator[object]:
    for item in heights:
        try:
            yield header_json(chain, item)
        except KeyError:
            return


_BLOCK_ERRORS: Final = "INVALID_BLOCK_ID INVALID_SIGNATURE BLOCK_DOES_NOT_EXIST"
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

ROUTES: Final = table("blocks", f"""
from      | natural      | First height                    | 2
to        | natural      | Last height                     | 2
timestamp | natural_long | Milliseconds since 1970, UTC    | 1566817216027
count     | natural      | Number of blocks, at most 10000 | 1
signature | text         | Signature in base58             | {examples.BLOCK_ID}
rest      | text         | Anything                        | x
more      | text         | Anything                        | x
""",
    row("GET /blocks/height", height, "Height of the last block", Height, {"height": 1}),
    row("GET /blocks/last", last, "The last block", BLOCK, examples.BLOCK),
    row("GET /blocks/first family=zbs,tn", first, "The genesis block", BLOCK, examples.BLOCK),
    row("GET /blocks/at/{height}", at, "The block at a height", _BLOCK_OR_NONE, examples.BLOCK,
        "INVALID_BLOCK_ID BLOCK_DOES_NOT_EXIST"),
    row("GET /blocks/seq/{from}/{to}", sequence,
        "The blocks from one height to another, both included; at most 100", _BLOCKS,
        [examples.BLOCK], "TOO_BIG_SEQUENCE"),
    row("GET /blocks/address/{address}/{from}/{to}", by_generator,
        "The blocks of one generator from one height to another; at most 100 heights", _BLOCKS,
        [examples.BLOCK], "INVALID_ADDRESS TOO_BIG_SEQUENCE"),
    row("GET /blocks/height/finalized family=waves", finalized_height,
        "Height of the last final block", Height, {"height": 1}),
    row("GET /blocks/finalized/at/{height} family=waves", finalized_at,
        "Height of the last block that is final by the votings up to a height", Height,
        {"height": 1}, "NOT_FINALIZED"),
    row("GET /blocks/height/{id.block}", height_by_id, "Height of the block with an id", Height,
        {"height": 1}, _BLOCK_ERRORS),
    row("GET /blocks/heightByTimestamp/{timestamp} reads=chain", height_by_timestamp,
        "Height of the last block that is not younger than a time", Height, {"height": 1},
        "CUSTOM_VALIDATION_ERROR"),
    row("GET /blocks/delay/{id.block}/{count}", delay,
        "Mean time in ms between a number of blocks, the last of which has the id", Delay,
        {"delay": 0}, f"{_BLOCK_ERRORS} TOO_BIG_SEQUENCE_WITH_LIMIT CUSTOM_VALIDATION_ERROR"),
    row("GET /blocks/headers/last", last_header, "The last block's header", BLOCK_HEADER,
        examples.HEADER),
    row("GET /blocks/headers/finalized family=waves", finalized_header,
        "The last final block's header", BLOCK_HEADER, examples.HEADER),
    row("GET /blocks/headers/at/{height}", header_at, "The header of the block at a height",
        _HEADER_OR_NONE, examples.HEADER, "INVALID_BLOCK_ID BLOCK_DOES_NOT_EXIST"),
    row("GET /blocks/headers/seq/{from}/{to}", header_sequence,
        "The headers from one height to another, both included; at most 100", _HEADERS,
        [examples.HEADER], "TOO_BIG_SEQUENCE"),
    row("GET /blocks/headers/{id.block} family=waves,tn", header_by_id,
        "The header of the block with an id", BLOCK_HEADER, examples.HEADER, _BLOCK_ERRORS),
    row("GET /blocks/signature/{signature} family=zbs,tn", by_signature,
        "The block with a signature", BLOCK, examples.BLOCK, _BLOCK_ERRORS),
    row("GET /blocks/child/{signature} family=zbs", child,
        "The block after the one with a signature", _BLOCK_OR_NONE, examples.BLOCK, _BLOCK_ERRORS),
    row("GET /blocks/{id.block} family=waves,tn", by_id, "The block with an id", BLOCK,
        examples.BLOCK, _BLOCK_ERRORS),
    *(
        row(f"GET {path} family=waves,tn", no_such_path, "Paths without a route",
            {"type": "object"},
            errors.INVALID_BLOCK_ID.error(**errors.INVALID_BLOCK_ID.example).body(),
            documented=False)
        for path in _NO_PATHS
    ),
    reads="state",
)  # fmt: skip
