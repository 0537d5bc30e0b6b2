"""Routes about blocks and their headers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.client import records
from soliton.client.errors import NodeBroken, NodeRefused, NotFound, StillWaiting
from soliton.client.making import Whom
from soliton.client.records import Block, BlockHeader, DelayRecord, Natural
from soliton.client.routes.accounts import address_of
from soliton.client.routes.network import is_soliton
from soliton.client.steps import Core, Pages, Pause, Request, Steps, ask, get, segment

BLOCKS_PAGE: Final = 100
"""The nodes' limit on the blocks of a page."""
LONGEST_WAIT: Final = 60
POLL_SECONDS: Final = 0.5
FINAL_DEPTH: Final = 100
"""The depth below which nodes replace no blocks, where there is no finality by votes."""
_NO_SUCH_ROUTE: Final = frozenset((400, 404, 405))
"""Statuses of older nodes, which read the last part of the path as the id of a block."""

Json = dict[str, Any]


class HeightRecord(msgspec.Struct, frozen=True):
    """A response with a height."""

    height: Natural


def height(core: Core) -> Steps[int]:
    """The height of the last block."""
    reply = yield from get(core, "/blocks/height", HeightRecord)
    return reply.height


def finalized_height(core: Core) -> Steps[int]:
    """The height of the last final block, which no fork replaces.

    Where the network has no finality by votes, or the node does not know of it, the block
    ``FINAL_DEPTH`` blocks below the last one counts as final, as it does for the nodes themselves.
    After a fork the height may be lower than before, if the new blocks have fewer votes; what was
    final is still on the chain.
    """
    try:
        reply = yield from get(core, "/blocks/height/finalized", HeightRecord)
    except NodeRefused as error:
        if error.status not in _NO_SUCH_ROUTE:
            raise
    else:
        return reply.height
    top = yield from height(core)
    return max(top - FINAL_DEPTH, 1)


def last_block(core: Core) -> Steps[Block]:
    """The last block. It grows, by microblocks, until the next one."""
    return _block(core, "/blocks/last")


def block_at(core: Core, at: int) -> Steps[Block]:
    """The block at a height; raises ``NotFound``."""
    return _block(core, f"/blocks/at/{int(at)}")


def block(core: Core, block_id: str) -> Steps[Block]:
    """The block with an id; raises ``NotFound``."""
    return _block(core, f"/blocks/{segment(block_id)}")


def last_header(core: Core) -> Steps[BlockHeader]:
    """The header of the last block."""
    return get(core, "/blocks/headers/last", BlockHeader)


def header_at(core: Core, at: int) -> Steps[BlockHeader]:
    """The header of the block at a height; raises ``NotFound``."""
    return get(core, f"/blocks/headers/at/{int(at)}", BlockHeader)


def header(core: Core, block_id: str) -> Steps[BlockHeader]:
    """The header of the block with an id; raises ``NotFound``."""
    return get(core, f"/blocks/headers/{segment(block_id)}", BlockHeader)


def blocks(core: Core, first: int, last: int) -> Pages[Block]:
    """The blocks from one height to another, both included, without a limit."""

    def page(start: int | None) -> Steps[tuple[list[Block], int | None]]:
        start, end = _range(start, first, last)
        rows = yield from get(core, f"/blocks/seq/{start}/{end}", list[Json])
        return [_record(row) for row in rows], end + 1 if end < last and rows else None

    return page


def headers(core: Core, first: int, last: int) -> Pages[BlockHeader]:
    """The headers from one height to another, both included, without a limit."""

    def page(start: int | None) -> Steps[tuple[list[BlockHeader], int | None]]:
        start, end = _range(start, first, last)
        rows = yield from get(core, f"/blocks/headers/seq/{start}/{end}", list[BlockHeader])
        return rows, end + 1 if end < last and rows else None

    return page


def blocks_by(core: Core, generator: Whom, first: int, last: int) -> Pages[Block]:
    """The blocks of one generator from one height to another, both included."""

    def page(start: int | None) -> Steps[tuple[list[Block], int | None]]:
        start, end = _range(start, first, last)
        path = f"/blocks/address/{address_of(generator)}/{start}/{end}"
        rows = yield from get(core, path, list[Json])
        return [_record(row) for row in rows], end + 1 if end < last else None

    return page


def height_of(core: Core, block_id: str) -> Steps[int]:
    """The height of the block with an id; raises ``NotFound``."""
    reply = yield from get(core, f"/blocks/height/{segment(block_id)}", HeightRecord)
    return reply.height


def height_at(core: Core, timestamp: int) -> Steps[int]:
    """The height of the last block that is not younger than a time in milliseconds."""
    reply = yield from get(core, f"/blocks/heightByTimestamp/{int(timestamp)}", HeightRecord)
    return reply.height


def block_delay(core: Core, block_id: str, count: int) -> Steps[int]:
    """The mean delay in milliseconds of ``count`` blocks, the last of which has the id."""
    reply = yield from get(core, f"/blocks/delay/{segment(block_id)}/{int(count)}", DelayRecord)
    return reply.delay


def wait_for_height(core: Core, at: int, timeout: float = 60) -> Steps[BlockHeader]:
    """Wait for the block at a height and return its header; raises ``StillWaiting`` after
    ``timeout`` seconds.
    """
    ends = core.now() + timeout
    waits = yield from is_soliton(core)
    while True:
        left = ends - core.now()
        try:
            if waits and left >= 1:
                seconds = min(int(left), LONGEST_WAIT)
                path = f"/blocks/wait/{int(at)}?timeout={seconds}"
                request = Request("GET", path, seconds=seconds + 15)
                return (yield from ask(core, request, BlockHeader))
            return (yield from header_at(core, at))
        except NotFound:
            if core.now() >= ends:
                raise StillWaiting(f"no block at height {at} in {timeout} s") from None
        if not waits or left < 1:
            yield Pause(min(POLL_SECONDS, max(0.0, ends - core.now())))


def _range(start: int | None, first: int, last: int) -> tuple[int, int]:
    start = int(first) if start is None else start
    return start, min(int(last), start + BLOCKS_PAGE - 1)


def _block(core: Core, path: str) -> Steps[Block]:
    return _record((yield from get(core, path, Json)))


def _record(row: Json) -> Block:
    try:
        return records.block(row)
    except msgspec.ValidationError as error:
        raise NodeBroken(f"invalid response from the node: {error}") from error
