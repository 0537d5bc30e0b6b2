"""Broadcasting signed transactions, and waiting for confirmations.

What lives here: the order of a package, and polling. What does not: signing (``pipeline``), and the
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
from soliton.signer.sign_request import FINALIZED, SignRequest

PAUSE_SECONDS: Final = 0.5
"""The polling interval while waiting for confirmations."""


def check_can_be_sent(request: SignRequest) -> None:
    """Raise ``RequestRefused`` unless all items are transactions."""
    for item in request.items:
        if item.kind is not Kind.TRANSACTION:
            message = f"{item.kind.value} is for others than a node: POST /sign signs it"
            raise RequestRefused(WRONG_SHAPE, message, item.kind.value)


async def send(node: NodeClient, answers: list[dict[str, Any]]) -> None:
    """Broadcast transactions in order, each after the previous one was accepted. The error
    (``NodeRefused``, ``NodeTrouble``) has the id of the transaction that failed, and all that was
    signed, so that the client can send it again.
    """
    for index, each in enumerate(answers):
        try:
            await node.broadcast(each)
        except (NodeRefused, NodeTrouble) as error:
            more = {"id": each["id"], "signed": answers, "accepted": index}
            error.answer.more.update(more)
            raise


async def wait(
    node: NodeClient, answers: list[dict[str, Any]], confirmations: int | str, seconds: int
) -> list[dict[str, Any]]:
    """Wait until each transaction has so many confirmations, or with ``FINALIZED`` until its block
    is final, and return their states. Raises ``RequestRefused`` on timeout.
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
        lack = (
            "are not final"
            if confirmations == FINALIZED
            else f"have not {confirmations} confirmations"
        )
        message = f"{len(missing)} of {len(ids)} {lack} yet"
        raise RequestRefused(NOT_CONFIRMED, message, signed=answers, missing=missing) from None
    return [found[each] for each in ids]


async def _state(node: NodeClient, id_: str, confirmations: int | str) -> dict[str, Any] | None:
    try:
        # In this order: what is final stays where it is.
        final = await node.finalized_height() if confirmations == FINALIZED else 0
        at = await node.height_of(id_)
        if at is None:
            return None
        height, status = at
        count = await node.height() - height + 1
    except NodeTrouble:
        # The node may be back before the timeout.
        return None
    state = {"id": id_, "height": height, "confirmations": count, "applicationStatus": status}
    if isinstance(confirmations, int):
        return state if count >= confirmations else None
    return {**state, "finalized": True} if height <= final else None
