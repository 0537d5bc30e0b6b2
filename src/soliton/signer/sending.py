"""Broadcasting what was signed, and waiting until it is in a block.

What lives here: the order of a package, and patience. What does not: signing (``desk``), and the
node's answers (``node_client``).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from soliton.signer.errors import (
    NOT_CONFIRMED,
    WRONG_SHAPE,
    NodeRefused,
    NodeTrouble,
    RequestRefused,
)
from soliton.signer.measures import Kind
from soliton.signer.node_client import NodeClient
from soliton.signer.wanted import Wanted

PAUSE_SECONDS: Final = 0.5
"""How often the node is asked whether a transaction is in a block."""


def check_can_be_sent(wanted: Wanted) -> None:
    """Raise ``RequestRefused`` unless all of it are transactions."""
    for item in wanted.items:
        if item.kind is not Kind.TRANSACTION:
            message = f"{item.kind.value} is for others than a node: POST /sign signs it"
            raise RequestRefused(WRONG_SHAPE, message, item.kind.value)


async def send(node: NodeClient, answers: list[dict[str, Any]]) -> None:
    """Send transactions in their order, each when the one before it is accepted. What is raised
    (``NodeRefused``, ``NodeTrouble``) has the id of the one that was not, and what was signed: it
    can be sent again.
    """
    for index, each in enumerate(answers):
        try:
            await node.broadcast(each)
        except (NodeRefused, NodeTrouble) as error:
            more = {"id": each["id"], "signed": answers, "accepted": index}
            error.answer.more.update(more)
            raise


async def wait(
    node: NodeClient, answers: list[dict[str, Any]], confirmations: int, seconds: int
) -> list[dict[str, Any]]:
    """Wait until each transaction is in a block, with so many blocks from that one on; what became
    of each. Raises ``RequestRefused`` when the time is over.
    """
    ids = [str(each["id"]) for each in answers]
    found: dict[str, dict[str, Any]] = {}
    try:
        async with asyncio.timeout(seconds):
            while len(found) < len(ids):
                for each in ids:
                    if each not in found and (it := await _state(node, each, confirmations)):
                        found[each] = it
                if len(found) < len(ids):
                    await asyncio.sleep(PAUSE_SECONDS)
    except TimeoutError:
        missing = [each for each in ids if each not in found]
        message = f"{len(missing)} of {len(ids)} have not {confirmations} confirmations yet"
        raise RequestRefused(NOT_CONFIRMED, message, signed=answers, missing=missing) from None
    return [found[each] for each in ids]


async def _state(node: NodeClient, id_: str, confirmations: int) -> dict[str, Any] | None:
    try:
        at = await node.height_of(id_)
        if at is None:
            return None
        height, status = at
        count = await node.height() - height + 1
    except NodeTrouble:
        # It may be back before the time is over.
        return None
    if count < confirmations:
        return None
    return {"id": id_, "height": height, "confirmations": count, "applicationStatus": status}
