"""The node's end of the channel to the gRPC process.

It answers requests that only the node can answer, and keeps a bounded list of short notes about the
chain's events for the process to read. The events themselves are in the store; the node never waits
for readers.

What lives here: responses and notes. What does not: the requests (``link``), starting the process
(``soliton.cli.grpc_server``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from soliton.api.errors import UNKNOWN, ApiError
from soliton.api.rest import broadcasting
from soliton.api.translate import refusal
from soliton.chain.addresses import Address
from soliton.chain.blocks import Block
from soliton.chain.finalization import encoded_voting
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError
from soliton.grpc_api.link import (
    APPENDED,
    EXTENDED,
    ROLLED_BACK,
    SPEC,
    AwaitNotes,
    AwaitPoolNotes,
    FindSteps,
    FindUnconfirmed,
    Form,
    NodeRequest,
    NodeResponse,
    Note,
    Notes,
    Send,
    Sent,
    Unconfirmed,
)
from soliton.grpc_api.pool_notes import PoolSide
from soliton.ledger.errors import BalanceErrors
from soliton.node.events import BlockAppended, BlockExtended, NodeEvent, RolledBack
from soliton.node.node import Node
from soliton.node.signatures import signed_messages
from soliton.node.turns import Turn
from soliton.web.channel import ChannelServer

MAX_NOTES: Final = 20_000
"""Limit on the notes, of about 300 bytes each; a reader further behind restarts."""

_log = logging.getLogger(__name__)


class NodeSide:
    """The responses and notes of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._notes: deque[Note] = deque(maxlen=MAX_NOTES)
        self._last = 0
        self._forms = [
            _form(each) for each in map(node.chain.liquid_form, node.chain.liquid_ids()) if each
        ]
        self._more = asyncio.Event()
        self._pool = PoolSide(node)
        node.events.subscribe(self._on_event)

    def server(self) -> ChannelServer[NodeRequest, NodeResponse]:
        """Return the server of the channel."""
        return ChannelServer(SPEC, self.respond)

    def close(self) -> None:
        """Stop taking notes."""
        self._pool.close()
        self._node.events.unsubscribe(self._on_event)

    def respond(self, request: NodeRequest) -> NodeResponse | Coroutine[Any, Any, NodeResponse]:
        """Return the response to a request, or a coroutine for it."""
        match request:
            case Send():
                return self._send(request)
            case FindUnconfirmed():
                return self._waiting(request)
            case AwaitNotes(after=after):
                return self._happened(after)
            case AwaitPoolNotes(after=after):
                return self._pool.happened(after)
            case FindSteps(ids=ids):
                return self._pool.steps(ids)

    # --- the pool ---------------------------------------------------------------------------------

    def _send(self, request: Send) -> Sent | Coroutine[Any, Any, Sent]:
        node = self._node
        try:
            transaction = codec.decode_protobuf(request.data, node.network.chain_id)
        except SolitonError as error:
            refused = refusal(error, node.network.family)
            return Sent(refused.kind.code, refused.message)
        verified = signed_messages(transaction) if request.verified else ()
        turn = node.turns.begin(partial(broadcasting.submit, node, transaction, verified=verified))
        if turn.is_done:
            return self._sent(transaction, turn)
        return self._sent_later(transaction, turn)

    async def _sent_later(self, transaction: AnyTransaction, turn: Turn[None]) -> Sent:
        await turn.wait()
        return self._sent(transaction, turn)

    def _sent(self, transaction: AnyTransaction, turn: Turn[None]) -> Sent:
        try:
            broadcasting.finish(self._node, transaction, turn)
        except ApiError as error:
            cause = error.__cause__
            details = cause.details.values() if isinstance(cause, BalanceErrors) else ()
            return Sent(error.kind.code, error.message, ", ".join(details))
        except Exception:  # noqa: BLE001 - a fault in one transaction must not affect others
            _log.exception("a transaction sent by gRPC failed")
            return Sent(UNKNOWN.code, UNKNOWN.message)
        return Sent(0)

    def _waiting(self, request: FindUnconfirmed) -> Unconfirmed:
        pool = self._node.pool
        if request.sender:
            return Unconfirmed(pool.sent_by(Address(request.sender)))
        if request.only_ids:
            return Unconfirmed([name for name in request.ids if name in pool])
        found = (each for name in request.ids if (each := pool.get(name)) is not None)
        return Unconfirmed([codec.encode_protobuf(each) for each in found])

    # --- the chain --------------------------------------------------------------------------------

    def _on_event(self, event: NodeEvent) -> None:
        match event:
            case BlockAppended(height=height, block=block):
                form = _form(block)
                self._forms = [form]
                self._note(Note(APPENDED, height, form))
            case BlockExtended(height=height, block=block, micro_signature=signature):
                form = _form(block, signature)
                self._forms.append(form)
                self._note(Note(EXTENDED, height, form))
            case RolledBack(height=height, block=block):
                ids = [each.id for each in self._forms]
                form = _form(block)
                at = ids.index(form.id) + 1 if form.id in ids else 0
                self._forms = self._forms[:at] or [form]
                self._note(Note(ROLLED_BACK, height, self._forms[-1]))
            case _:
                pass

    def _note(self, note: Note) -> None:
        self._notes.append(note)
        self._last += 1
        self._more.set()
        self._more = asyncio.Event()

    async def _happened(self, after: int) -> Notes:
        while after == self._last:
            await self._more.wait()
        behind = self._last - after
        if after < 0 or not 0 < behind <= len(self._notes):
            return Notes(self._last, [], True, self._node.chain.height, self._forms[:])
        skipped = len(self._notes) - behind
        return Notes(self._last, [self._notes[at] for at in range(skipped, len(self._notes))])


def _form(block: Block, micro_signature: bytes = b"") -> Form:
    header = block.header
    return Form(
        block.id,
        len(block.transactions),
        block.signature,
        header.state_hash or b"",
        micro_signature,
        encoded_voting(header.finalization_voting),
    )
