"""A blocking client of a node.

What lives here: ``Node`` and its handle of a sent transaction. What does not: the requests of its
methods (``routes``, ``sending``), and connections (``transport``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing

import msgspec

from soliton.client import sending
from soliton.client.amounts import Amount, units
from soliton.client.binding import Runner, blocking, iterating
from soliton.client.errors import NodeBroken, NodeTimeout, NodeUnreachable
from soliton.client.events import Event, EventStream
from soliton.client.making import Whom
from soliton.client.payments import PaymentEvent, PaymentStream
from soliton.client.records import Confirmations, Mined
from soliton.client.routes import accounts as of_accounts
from soliton.client.routes import assets as of_assets
from soliton.client.routes import blocks as of_blocks
from soliton.client.routes import network as of_network
from soliton.client.routes import scripts as of_scripts
from soliton.client.routes import transactions as of_transactions
from soliton.client.steps import MAX_CLOCK_OFFSET, Core
from soliton.client.transaction import Transaction, chain_number
from soliton.client.transport import ANSWER_SECONDS, Transport

ISSUE = 3


class Sent:
    """A transaction that a node has accepted."""

    __slots__ = ("_node", "transaction")

    def __init__(self, node: Node, transaction: Transaction) -> None:
        """``Node.send`` makes one."""
        self._node = node
        self.transaction = transaction
        """The transaction as it was sent, with the corrected fee and timestamp."""

    @property
    def id(self) -> str:
        """The transaction's id."""
        return self.transaction.id

    @property
    def asset_id(self) -> str | None:
        """The id of the new asset, for an issue, else ``None``."""
        return self.id if self.transaction.type == ISSUE else None

    def wait(self, timeout: float = 60, confirmations: Confirmations = 0) -> Mined:
        """Wait until the transaction is in a block with ``confirmations`` blocks above it, or, with
        ``confirmations="finalized"``, in a final block.

        ``timeout`` is in seconds. Raises ``ScriptFailed`` if its script has failed in the block,
        ``TransactionLost`` if the node has dropped it, ``StillWaiting`` at the timeout.
        """
        found = self._node.wait(self.id, timeout, confirmations)
        return msgspec.structs.replace(found, asset_id=self.asset_id)

    def __repr__(self) -> str:
        return f"<Sent {self.transaction.type_name} {self.id}>"


class Node(Runner):
    """A node, Soliton's or a reference node, at a URL. Any number of threads may use it.

    Requests are retried after transient failures of the network or the node. What may have been
    accepted is not sent again before its status has been queried.

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
        chain_id: int | str | None = None,
        max_fee: Amount | None = None,
        max_clock_offset: float = MAX_CLOCK_OFFSET,
    ) -> None:
        """``timeout`` is the time limit of a response in seconds, ``retries`` the limit on repeated
        attempts. The ``api_key`` is sent on the few routes for which a node may require it.

        A node is not trusted in what is signed: with a ``chain_id``, the chain is not requested
        from it, and transactions of other chains are not sent. ``max_fee``, an amount of the coin,
        is the limit to which ``send`` raises fees, in place of each transaction's own;
        ``max_clock_offset`` that on following the node's clock, in seconds. Raises ``InputError``
        for an invalid URL. Nothing is sent yet.
        """
        self._transport = Transport(url, timeout=timeout)
        self._exchange = self._transport.exchange
        self._pause = time.sleep
        self._core = Core(
            api_key=api_key,
            retries=retries,
            chain_id=None if chain_id is None else chain_number(chain_id),
            max_fee=None if max_fee is None else units(max_fee),
            max_clock_offset=max_clock_offset,
        )
        self.url = url

    @property
    def chain_id(self) -> int:
        """The node's chain id. It is requested once and cached."""
        return self._run(of_network.chain_id(self._core))

    def send(self, transaction: Transaction, *, max_fee: Amount | None = None) -> Sent:
        """Broadcast a transaction and return once the node has accepted it.

        A default fee is raised to what scripts and sponsorship require, and a default timestamp is
        adjusted to the node's clock, so the id may differ from that of the argument. ``max_fee``,
        an amount of the fee's asset, is the limit on that; by default the client's own, or the
        transaction's (``Transaction.max_fee``). Raises ``FeeTooHigh`` or ``ClockTooFar`` if the
        node wants more, ``ScriptRefused`` if a script rejects it, another ``NodeRefused``, or
        ``OutcomeUnknown`` if it cannot be known whether it arrived.
        """
        return Sent(self, self._run(sending.send(self._core, transaction, max_fee)))

    def events(
        self,
        *kinds: str,
        addresses: Iterable[Whom] = (),
        types: Iterable[int] = (),
        since: int | None = None,
        after: str | None = None,
    ) -> Iterator[Event]:
        """Yield events as they happen, without end: blocks, microblocks and transactions, or only
        the given ``kinds`` (``unconfirmed`` includes ``left``, for the pool; ``finalized`` is the
        last block that no fork replaces), and always rollbacks.

        A lost connection is replaced without missing an event of the chain. Pass an event's ``id``
        as ``after`` to resume after it. ``since`` is a starting height, at most 10,000 blocks back;
        ``addresses`` and ``types`` filter the transactions. Raises ``NotFound`` for nodes other
        than Soliton's, which have no events.
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

    def payments(
        self,
        to: Whom | Iterable[Whom] | None = None,
        *,
        confirmations: Confirmations = 1,
        after: str | PaymentEvent | None = None,
        since: int | None = None,
        exchanges: bool = False,
    ) -> Iterator[PaymentEvent]:
        """Yield payments as they come, without end, each once, and what forks take back.

        ``to`` is an account, several, or ``None`` for all. A payment is reported once its block has
        so many blocks above it, at least one, or, with ``confirmations="finalized"``, once no fork
        can replace it; then nothing is taken back. ``exchanges`` adds the proceeds of orders. Pass
        a payment's ``cursor`` as ``after`` to resume after it, at any node; ``since`` is a starting
        height, by default the next block. Raises ``InputError`` if a cursor is none of this chain.
        """
        stream = PaymentStream(
            to, confirmations=confirmations, after=after, since=since, exchanges=exchanges
        )
        while True:
            yield from self._run(stream.batch(self._core))

    def __repr__(self) -> str:
        return f"<Node {self.url}>"

    broadcast = blocking(sending.broadcast)
    dry_run = blocking(sending.dry_run)
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
    finalized_height = blocking(of_blocks.finalized_height)
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
    readiness = blocking(of_network.readiness)
    time = blocking(of_network.time)
    features = blocking(of_network.features)
    voting = blocking(of_network.voting)
    reward = blocking(of_network.reward)
    peers = blocking(of_network.peers)
    state_hash = blocking(of_network.state_hash)
    get_json = blocking(of_network.get_json)
    post_json = blocking(of_network.post_json)
