"""What generators with deterministic finality do beside mining, and what nodes show of it.

What lives here: commitments and payments that never end, final heights as each node shows them
while the chain grows, endorsements that conflict. What does not: any check.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from soliton.chain.addresses import address_text
from soliton.chain.finalization import BlockEndorsement, encode_endorsement, sign_endorsement
from soliton.chain.transactions import codec
from soliton.crypto import base58, bls
from soliton.wire.connection import Connection, HandshakeReceived
from soliton.wire.handshake import Handshake
from soliton.wire.messages import EndorseBlock
from soliton.wire.versions import Version, application_name
from tests.p2p.judges.chain import CHAIN_ID, PERIOD, account, account_seed, address
from tests.p2p.judges.programs import Go, NodeProcess, NotYet

_PAUSE_SECONDS = 0.3
_AGAIN_SECONDS = 5.0


def next_period(activation: int, height: int) -> int:
    """The first height of the period after that of a height."""
    number = 0 if height <= activation + PERIOD else (height - activation - 1) // PERIOD
    return activation + (number + 1) * PERIOD + 1


def endorser_secret(node: NodeProcess) -> bytes:
    """The secret key that a node endorses with: each kind derives it in its own way."""
    if isinstance(node, Go):
        return bls.generate_key(hashlib.sha256(account_seed(node.number)).digest())
    return bls.generate_key(account(node.number).private_key)


class _Thread:
    """Something that goes on beside the test until the end."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self.problem: Exception | None = None

    def turn(self) -> None:
        raise NotYet

    def _go_on(self) -> None:
        while not self._over.is_set():
            try:
                with contextlib.suppress(NotYet):
                    self.turn()
            except Exception as problem:  # noqa: BLE001 - the test raises it
                self.problem = problem
                return
            self._over.wait(_PAUSE_SECONDS)

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
        if self.problem is not None:
            raise self.problem


class Committing(_Thread):
    """Each account commits to each period at its node, and pays now and then: a voting comes only
    in a microblock with a transaction.
    """

    def __init__(self, activation: int, *nodes: NodeProcess) -> None:
        super().__init__()
        self.activation = activation
        self.nodes = nodes
        self.stopped: set[int] = set()
        """The numbers of the nodes that are left alone."""
        self._sent: dict[int, tuple[int, str, object, float]] = {}
        self._round = 0

    def turn(self) -> None:
        self._round += 1
        for each in self.nodes:
            if each.number in self.stopped or each.process is None:
                continue
            with contextlib.suppress(NotYet, AssertionError):
                height = each.height()
                if self._round % 2 == 0:
                    each.broadcast(each.chain.transfer(each.number, self._round + 1))
                if height >= self.activation:
                    self._commit(each, next_period(self.activation, height))

    def _commit(self, node: NodeProcess, start: int) -> None:
        sent = self._sent.get(node.number)
        if sent is None or sent[0] != start:
            found = self._commitment(node, start)
            self._sent[node.number] = start, found["id"], found, time.monotonic()
            node.ask("/transactions/broadcast", found)
        elif time.monotonic() > sent[3] + _AGAIN_SECONDS and not node.has(sent[1]):
            self._sent[node.number] = (*sent[:3], time.monotonic())
            node.ask("/transactions/broadcast", sent[2])

    @staticmethod
    def _commitment(node: NodeProcess, start: int) -> Any:
        request = {
            "type": 19,
            "version": 1,
            "sender": address_text(address(node.number)),
            "generationPeriodStart": start,
        }
        if isinstance(node, Go):
            return node.ask("/transactions/sign", request)
        return codec.to_json(node.chain.commitment(node.number, start))


class Watching(_Thread):
    """What a node shows to be final while its last block is that at a height on a parent."""

    def __init__(self, node: NodeProcess) -> None:
        super().__init__()
        self.node = node
        self.final: dict[tuple[int, str], int] = {}

    def turn(self) -> None:
        if self.node.process is None:
            return
        try:
            before = self.node.ask("/blocks/headers/last")
            final = int(self.node.ask("/blocks/height/finalized")["height"])
            after = self.node.ask("/blocks/headers/last")
        except AssertionError:
            # It has been killed.
            return
        if before["reference"] == after["reference"]:
            self.final[before["height"], before["reference"]] = final


def endorsement(
    node: NodeProcess, index: int, by: NodeProcess, *, conflicts: bool = False
) -> BlockEndorsement:
    """An endorsement of a node's present parent by a generator; one that conflicts names a final
    block that is none.
    """
    last = node.ask("/blocks/headers/last")
    final = int(node.ask("/blocks/height/finalized")["height"])
    final_id = bytes(32) if conflicts else base58.decode(node.ids(final, final)[0])
    return sign_endorsement(
        endorser_secret(by), index, final_id, final, base58.decode(last["reference"])
    )


def send_endorsements(node: NodeProcess, *endorsements: BlockEndorsement) -> None:
    """Send endorsements as a peer does, in this order, and end the conversation."""
    own = Handshake(
        application_name("waves", CHAIN_ID), Version(1, 6, 0), "liar", os.getpid(), None,
        int(time.time()),
    )  # fmt: skip
    talk = Connection(own, "waves", CHAIN_ID)
    with socket.create_connection((node.host, node.peer_port), 30) as link:
        link.sendall(talk.introduce())
        while not any(isinstance(each, HandshakeReceived) for each in talk.receive(_some(link))):
            assert not talk.is_over
        for each in endorsements:
            link.sendall(talk.send(EndorseBlock(encode_endorsement(each))))
        # An end at once could overtake what has been sent.
        link.shutdown(socket.SHUT_WR)
        while _some(link):
            pass


def _some(link: socket.socket) -> bytes:
    with contextlib.suppress(OSError):
        return link.recv(65_536)
    return b""
