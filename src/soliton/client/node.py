"""A node, for those who block.

What lives here: ``Node`` and the handle of what was sent. What does not: what the methods ask
(``routes``, ``sending``), and connections (``transport``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing

from soliton.client import sending
from soliton.client.binding import Runner, blocking, iterating
from soliton.client.errors import NodeBroken, NodeTimeout, NodeUnreachable
from soliton.client.events import Event, EventStream
from soliton.client.making import Whom
from soliton.client.records import Mined
from soliton.client.routes import accounts as of_accounts
from soliton.client.routes import assets as of_assets
from soliton.client.routes import blocks as of_blocks
from soliton.client.routes import network as of_network
from soliton.client.routes import scripts as of_scripts
from soliton.client.routes import transactions as of_transactions
from soliton.client.steps import Core
from soliton.client.transaction import Transaction
from soliton.client.transport import ANSWER_SECONDS, Transport

ISSUE = 3


class Sent:
    """What a node took: it waits for a block, or is in one already."""

    __slots__ = ("_node", "transaction")

    def __init__(self, node: Node, transaction: Transaction) -> None:
        """``Node.send`` makes one."""
        self._node = node
        self.transaction = transaction
        """The transaction as it was sent, with the fee and time that the node wanted."""

    @property
    def id(self) -> str:
        """The transaction's id."""
        return self.transaction.id

    @property
    def asset_id(self) -> str | None:
        """Of an issue, the id of the new asset."""
        return self.id if self.transaction.type == ISSUE else None

    def wait(self, timeout: float = 60, confirmations: int = 0) -> Mined:
        """The transaction in a block, with that many blocks above it.

        Raises ``ScriptFailed`` if it has failed there, ``TransactionLost`` if it waits no more,
        ``StillWaiting`` when the time is up.
        """
        found = self._node.wait(self.id, timeout, confirmations)
        return mined(found, self.asset_id)

    def __repr__(self) -> str:
        return f"<Sent {self.transaction.type_name} {self.id}>"


def mined(found: Mined, asset_id: str | None) -> Mined:
    """The record, with the asset that the transaction has issued."""
    if asset_id is None:
        return found
    return Mined(
        found.id,
        found.height,
        found.confirmations,
        found.application_status,
        asset_id,
        found.spent_complexity,
    )


class Node(Runner):
    """A node of the family, ours or another one, at a URL. Any number of threads may use it.

    Questions are tried again where the network or the node is in trouble for a moment; what may
    have been accepted is not sent again before the node was asked for it.

    >>> node = Node("http://127.0.0.1:6869")  # doctest: +SKIP
    >>> node.balance("3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF")  # doctest: +SKIP
    10000000000000000
    """

    _transport: Transport

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = ANSWER_SECONDS,
        retries: int = 3,
        chain_id: int | None = None,
    ) -> None:
        """``timeout`` is how many seconds an answer may take, ``retries`` how often a question is
        tried again at most; a ``chain_id`` that is given is not asked for. The ``api_key`` goes
        with the few questions for which a node may want it. Raises ``InputError`` for a URL that
        is none; nothing is asked yet.
        """
        self._transport = Transport(url, timeout=timeout)
        self._exchange = self._transport.exchange
        self._pause = time.sleep
        self._core = Core(api_key=api_key, retries=retries, chain_id=chain_id)
        self.url = url

    @property
    def chain_id(self) -> int:
        """The number of the node's chain. It is asked once, and remembered."""
        return self._run(of_network.chain_id(self._core))

    def send(self, transaction: Transaction) -> Sent:
        """Send a transaction, and be told that the node took it.

        A fee that was not given becomes what scripts and sponsorship want, a time that was not
        given follows the node's clock: the id is that of the handle, not the one before. Raises
        ``ScriptRefused`` where a script says no, other ``NodeRefused``, or ``OutcomeUnknown`` where
        nobody can say whether it arrived.
        """
        return Sent(self, self._run(sending.send(self._core, transaction)))

    def events(
        self,
        *kinds: str,
        addresses: Iterable[Whom] = (),
        types: Iterable[int] = (),
        since: int | None = None,
        after: str | None = None,
    ) -> Iterator[Event]:
        """What happens, as it happens, without an end: blocks, microblocks and transactions, or
        those ``kinds`` alone (``unconfirmed`` is of the pool, with ``left``), and rollbacks always.

        It goes on by itself where it was when a connection is lost, and nothing of the chain is
        missed; an event's ``id`` as ``after`` goes on behind it another time. ``since`` is a height
        to begin with, at most 10,000 blocks back; ``addresses`` and ``types`` leave out other
        transactions. Nodes that are not Soliton's have no events: ``NotFound``.
        """
        stream = EventStream(kinds, addresses=addresses, types=types, since=since, after=after)
        while True:
            try:
                with closing(self._transport.stream(stream.request())) as pieces:
                    for piece in pieces:
                        if isinstance(piece, bytes):
                            yield from stream.received(piece)
                        elif (pause := stream.opened(piece)) is not None:
                            self._pause(pause)
                            break
            except (NodeUnreachable, NodeTimeout, NodeBroken):
                pass
            self._pause(stream.lost())

    def __repr__(self) -> str:
        return f"<Node {self.url}>"

    broadcast = blocking(sending.broadcast)
    wait = blocking(sending.wait)

    addresses = blocking(of_accounts.addresses)
    address_of_public_key = blocking(of_accounts.address_of_public_key)
    is_address = blocking(of_accounts.is_address)
    balance = blocking(of_accounts.balance)
    balances = blocking(of_accounts.balances)
    balance_details = blocking(of_accounts.balance_details)
    confirmed_balance = blocking(of_accounts.confirmed_balance)
    effective_balance = blocking(of_accounts.effective_balance)
    balance_history = blocking(of_accounts.balance_history)
    asset_balances = blocking(of_accounts.asset_balances)
    nfts = iterating(of_accounts.nfts)
    data = blocking(of_accounts.data)
    data_entry = blocking(of_accounts.data_entry)
    script = blocking(of_accounts.script)
    functions = blocking(of_accounts.functions)
    aliases = blocking(of_accounts.aliases)
    address_by_alias = blocking(of_accounts.address_by_alias)
    active_leases = blocking(of_accounts.active_leases)
    lease = blocking(of_accounts.lease)
    leases = blocking(of_accounts.leases)

    asset = blocking(of_assets.asset)
    assets = blocking(of_assets.assets)
    asset_distribution = iterating(of_assets.asset_distribution)
    assets_of_ethereum = blocking(of_assets.assets_of_ethereum)
    ethereum_abi = blocking(of_assets.ethereum_abi)

    height = blocking(of_blocks.height)
    last_block = blocking(of_blocks.last_block)
    block_at = blocking(of_blocks.block_at)
    block = blocking(of_blocks.block)
    blocks = iterating(of_blocks.blocks)
    last_header = blocking(of_blocks.last_header)
    header_at = blocking(of_blocks.header_at)
    header = blocking(of_blocks.header)
    headers = iterating(of_blocks.headers)
    blocks_by = iterating(of_blocks.blocks_by)
    height_of = blocking(of_blocks.height_of)
    height_at = blocking(of_blocks.height_at)
    block_delay = blocking(of_blocks.block_delay)
    wait_for_height = blocking(of_blocks.wait_for_height)

    transaction = blocking(of_transactions.transaction)
    transactions = blocking(of_transactions.transactions)
    status = blocking(of_transactions.status)
    statuses = blocking(of_transactions.statuses)
    history = iterating(of_transactions.history)
    unconfirmed = blocking(of_transactions.unconfirmed)
    unconfirmed_size = blocking(of_transactions.unconfirmed_size)
    unconfirmed_transaction = blocking(of_transactions.unconfirmed_transaction)
    merkle_proofs = blocking(of_transactions.merkle_proofs)
    snapshot = blocking(of_transactions.snapshot)
    least_fee = blocking(of_transactions.least_fee)
    validate = blocking(of_transactions.validate)
    simulate = blocking(of_transactions.simulate)

    compile = blocking(of_scripts.compile)
    decompile = blocking(of_scripts.decompile)
    estimate = blocking(of_scripts.estimate)
    evaluate = blocking(of_scripts.evaluate)
    evaluate_call = blocking(of_scripts.evaluate_call)

    is_soliton = blocking(of_network.is_soliton)
    node_version = blocking(of_network.node_version)
    node_status = blocking(of_network.node_status)
    time = blocking(of_network.time)
    features = blocking(of_network.features)
    reward = blocking(of_network.reward)
    peers = blocking(of_network.peers)
    state_hash = blocking(of_network.state_hash)
