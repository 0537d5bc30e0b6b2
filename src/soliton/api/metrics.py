"""The metrics of ``/metrics``: name, meaning, and how each is read.

What lives here: the list. What does not: the metrics that every service has
(``soliton.web.monitoring``), the text form (``soliton.web.prometheus``), counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from soliton import __version__
from soliton.api.context import ApiContext
from soliton.node.node import Node
from soliton.node.peering import NetworkFigures, Peering
from soliton.web.monitoring import HTTP_METRICS, PROCESS_METRICS, Metric, figures
from soliton.web.prometheus import COUNTER, GAUGE, Figure, Sample

_MS: Final = 1_000


class Subject(NamedTuple):
    """What is read: an API, and its node."""

    context: ApiContext
    node: Node


def all_figures(context: ApiContext, node: Node) -> Iterator[Figure]:
    """The current values of all metrics."""
    yield from figures(METRICS, Subject(context, node))
    yield from figures(HTTP_METRICS, context.traffic)
    yield from figures(PROCESS_METRICS, context.traffic)


Read = Callable[[Subject], Iterable[Sample]]


def _of(read: Callable[[Node], float]) -> Read:
    return lambda it: (Sample(read(it.node)),)


def _of_api(read: Callable[[ApiContext], float]) -> Read:
    return lambda it: (Sample(read(it.context)),)


def _build(it: Subject) -> Iterable[Sample]:
    network, agent = it.node.network.name, it.node.agent
    labels = {"version": __version__, "service": "node", "network": network, "interface": agent}
    yield Sample(1, labels)


def _departures(it: Subject) -> Iterable[Sample]:
    yield Sample(it.node.counters.mined, {"why": "mined"})
    yield Sample(it.node.counters.invalid, {"why": "invalid"})


def _peers(it: Subject) -> Iterable[Sample]:
    node = it.node
    peers = [] if node.peering is None else node.peering.connected()
    inbound = sum(peer.inbound for peer in peers)
    yield Sample(inbound, {"direction": "in"})
    yield Sample(len(peers) - inbound, {"direction": "out"})


def _scores(it: Subject) -> Iterable[Sample]:
    node = it.node
    own = int.from_bytes(node.chain.meta(node.chain.height).score, "big")
    yield Sample(own, {"whose": "own"})
    if node.peering is not None:
        yield Sample(node.peering.best_score(), {"whose": "best peer"})


def _heights(it: Subject) -> Iterable[Sample]:
    node = it.node
    yield Sample(node.chain.height, {"whose": "own"})
    if node.peering is not None:
        yield Sample(node.chain.height + node.peering.lag(), {"whose": "best peer"})


def _of_peering(read: Callable[[Peering], float]) -> Read:
    """A value of a node with a network."""
    return lambda it: () if it.node.peering is None else (Sample(read(it.node.peering)),)


def _of_network(read: Callable[[NetworkFigures], Iterable[Sample]]) -> Read:
    """Figures of a node with a network."""
    return lambda it: () if it.node.peering is None else read(it.node.peering.figures())


def _each(label: str, counts: Mapping[Any, int], **labels: str) -> Iterator[Sample]:
    for value, count in sorted(counts.items()):
        yield Sample(count, {**labels, label: str(value)})


def _messages(figures: NetworkFigures) -> Iterator[Sample]:
    yield from _each("kind", figures.messages_in, direction="in")
    yield from _each("kind", figures.messages_out, direction="out")


def _message_bytes(figures: NetworkFigures) -> Iterator[Sample]:
    yield from _each("kind", figures.bytes_in, direction="in")
    yield from _each("kind", figures.bytes_out, direction="out")


METRICS: Final[tuple[Metric[Subject], ...]] = (
    Metric("soliton_build_info", GAUGE, "Always 1; the labels are the version", _build,
           ("version", "service", "network", "interface")),
    Metric("soliton_start_time_seconds", GAUGE, "Start time of the node, seconds since 1970",
           _of(lambda node: node.started_at / _MS)),
    Metric("soliton_clock_offset_seconds", GAUGE,
           "What the node adds to the machine's clock, according to the time server",
           _of(lambda node: node.clock_offset_ms / 1_000)),
    Metric("soliton_chain_height", GAUGE, "Height of the last block",
           _of(lambda node: node.chain.height)),
    Metric("soliton_chain_last_block_timestamp_seconds", GAUGE, "Time of the last block",
           _of(lambda node: node.chain.last_block.header.timestamp / _MS)),
    Metric("soliton_chain_base_target", GAUGE, "Base target of the last block",
           _of(lambda node: node.chain.last_block.header.base_target)),
    Metric("soliton_chain_blocks_total", COUNTER, "Blocks appended to the chain",
           _of(lambda node: node.counters.blocks)),
    Metric("soliton_chain_microblocks_total", COUNTER, "Microblocks added to the last block",
           _of(lambda node: node.counters.microblocks)),
    Metric("soliton_chain_transactions_total", COUNTER, "Transactions in blocks and microblocks",
           _of(lambda node: node.counters.transactions)),
    Metric("soliton_chain_rollbacks_total", COUNTER, "Rollbacks of blocks or microblocks",
           _of(lambda node: node.counters.rollbacks)),
    Metric("soliton_pool_transactions", GAUGE, "Transactions in the pool",
           _of(lambda node: len(node.pool))),
    Metric("soliton_pool_bytes", GAUGE, "Signed bytes of the transactions in the pool",
           _of(lambda node: node.pool.size)),
    Metric("soliton_pool_accepted_total", COUNTER, "Transactions that entered the pool",
           _of(lambda node: node.counters.accepted)),
    Metric("soliton_pool_left_total", COUNTER, "Transactions that left the pool", _departures,
           ("why",)),
    Metric("soliton_store_bytes", GAUGE, "Used bytes of the database file",
           _of(lambda node: node.store.database.used_bytes())),
    Metric("soliton_store_writable", GAUGE, "1, or 0 while the disk cannot be written",
           _of(lambda node: int(node.disk.problem is None))),
    Metric("soliton_store_write_failures_total", COUNTER, "Failed writes",
           _of(lambda node: node.disk.failures_total)),
    Metric("soliton_snapshots", GAUGE,
           "Requests of the node's own process that use a snapshot of the chain",
           _of(lambda node: len(node.store.database.snapshots))),
    Metric("soliton_p2p_peers", GAUGE, "Connected peers, by direction of the connection", _peers,
           ("direction",)),
    Metric("soliton_p2p_score", GAUGE, "Score of the chain, and the best score of a peer",
           _scores, ("whose",)),
    Metric("soliton_p2p_height", GAUGE,
           "Height, and the approximate height of the best peer, from scores",
           _heights, ("whose",)),
    Metric("soliton_p2p_lag_blocks", GAUGE,
           "Approximate number of blocks by which the best peer is ahead",
           _of_peering(lambda peering: peering.lag())),
    Metric("soliton_p2p_faulty_forks", GAUGE,
           "Peers with a higher score whose chain has an invalid block",
           _of_peering(lambda peering: len(peering.faulty_forks))),
    Metric("soliton_p2p_sync_blocks_per_second", GAUGE,
           "Blocks of peers appended to the chain, in the last 30 seconds",
           _of_network(lambda figures: (Sample(figures.blocks_per_second),))),
    Metric("soliton_p2p_messages_total", COUNTER, "Messages from and to peers",
           _of_network(_messages), ("direction", "kind")),
    Metric("soliton_p2p_bytes_total", COUNTER, "Bytes of messages from and to peers",
           _of_network(_message_bytes), ("direction", "kind")),
    Metric("soliton_p2p_blocks_received_total", COUNTER, "Blocks of peers appended to the chain",
           _of_network(lambda figures: (Sample(figures.blocks_received),))),
    Metric("soliton_p2p_forks_total", COUNTER, "Switches to another fork, by rolled back blocks",
           _of_network(lambda figures: _each("depth", figures.forks)), ("depth",)),
    Metric("soliton_p2p_blames_total", COUNTER, "Misbehaving peers, by consequence",
           _of_network(lambda figures: _each("verdict", figures.blames)), ("verdict",)),
    Metric("soliton_event_streams", GAUGE, "Clients of /events",
           _of_api(lambda context: context.event_streams.open)),
    Metric("soliton_event_streams_dropped_total", COUNTER, "Slow clients of /events, disconnected",
           _of_api(lambda context: context.event_streams.dropped)),
    Metric("soliton_waiting_requests", GAUGE, "Requests that wait for a transaction or a block",
           _of_api(lambda context: context.waiting.count)),
)  # fmt: skip
"""In the order of ``/metrics``."""
