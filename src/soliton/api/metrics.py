"""The metrics of ``/metrics``: name, meaning, and how each is read.

What lives here: the list, and the page ``docs/reference/metrics.md`` generated from it (run this
module to write it). What does not: the text form (``soliton.web.prometheus``), counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from soliton import __version__
from soliton.api.context import ApiContext
from soliton.api.traffic import Resource
from soliton.node.node import Node
from soliton.node.peering import NetworkFigures, Peering
from soliton.web.prometheus import COUNTER, GAUGE, Figure, Sample

_MS: Final = 1_000
_MICRO: Final = 1_000_000

Read = Callable[[ApiContext, Node], Iterable[Sample]]


class Metric(NamedTuple):
    """A metric of a node and how it is read."""

    name: str
    kind: str
    help: str
    read: Read
    labels: tuple[str, ...] = ()


def figures(context: ApiContext, node: Node) -> Iterator[Figure]:
    """The current values of all metrics."""
    for metric in METRICS:
        yield Figure(metric.name, metric.kind, metric.help, metric.read(context, node))


def _of(read: Callable[[Node], float]) -> Read:
    return lambda _context, node: (Sample(read(node)),)


def _of_api(read: Callable[[ApiContext], float]) -> Read:
    return lambda context, _node: (Sample(read(context)),)


def _of_processes(resource: Resource, unit: int = 1) -> Read:
    def read(context: ApiContext, _node: Node) -> Iterable[Sample]:
        used = context.traffic.used(resource)
        if used is not None:
            yield Sample(used / unit if unit > 1 else used)

    return read


def _build(_context: ApiContext, node: Node) -> Iterable[Sample]:
    labels = {"version": __version__, "network": node.network.name, "interface": node.agent}
    yield Sample(1, labels)


def _departures(_context: ApiContext, node: Node) -> Iterable[Sample]:
    yield Sample(node.counters.mined, {"why": "mined"})
    yield Sample(node.counters.invalid, {"why": "invalid"})


def _requests(context: ApiContext, _node: Node) -> Iterable[Sample]:
    """Requests of the routes that have been called at least once."""
    for methods, path, calls in context.traffic.called():
        yield Sample(calls, {"methods": methods, "route": path})


def _errors(context: ApiContext, _node: Node) -> Iterable[Sample]:
    for status, count in context.traffic.errors():
        yield Sample(count, {"status": str(status)})


def _peers(_context: ApiContext, node: Node) -> Iterable[Sample]:
    peers = [] if node.peering is None else node.peering.connected()
    inbound = sum(peer.inbound for peer in peers)
    yield Sample(inbound, {"direction": "in"})
    yield Sample(len(peers) - inbound, {"direction": "out"})


def _scores(_context: ApiContext, node: Node) -> Iterable[Sample]:
    own = int.from_bytes(node.chain.meta(node.chain.height).score, "big")
    yield Sample(own, {"whose": "own"})
    if node.peering is not None:
        yield Sample(node.peering.best_score(), {"whose": "best peer"})


def _heights(_context: ApiContext, node: Node) -> Iterable[Sample]:
    yield Sample(node.chain.height, {"whose": "own"})
    if node.peering is not None:
        yield Sample(node.chain.height + node.peering.lag(), {"whose": "best peer"})


def _of_peering(read: Callable[[Peering], float]) -> Read:
    """A value of a node with a network."""
    return lambda _context, node: () if node.peering is None else (Sample(read(node.peering)),)


def _of_network(read: Callable[[NetworkFigures], Iterable[Sample]]) -> Read:
    """Figures of a node with a network."""
    return lambda _context, node: () if node.peering is None else read(node.peering.figures())


def _each(label: str, counts: Mapping[Any, int], **labels: str) -> Iterator[Sample]:
    for value, count in sorted(counts.items()):
        yield Sample(count, {**labels, label: str(value)})


def _messages(figures: NetworkFigures) -> Iterator[Sample]:
    yield from _each("kind", figures.messages_in, direction="in")
    yield from _each("kind", figures.messages_out, direction="out")


def _message_bytes(figures: NetworkFigures) -> Iterator[Sample]:
    yield from _each("kind", figures.bytes_in, direction="in")
    yield from _each("kind", figures.bytes_out, direction="out")


METRICS: Final = (
    Metric("soliton_build_info", GAUGE, "Always 1; the labels are the version", _build,
           ("version", "network", "interface")),
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
    Metric("soliton_http_requests_total", COUNTER, "Requests, by route", _requests,
           ("methods", "route")),
    Metric("soliton_http_errors_total", COUNTER, "Requests that got an error with a code",
           _errors, ("status",)),
    Metric("soliton_event_streams", GAUGE, "Clients of /events",
           _of_api(lambda context: context.event_streams.open)),
    Metric("soliton_event_streams_dropped_total", COUNTER, "Slow clients of /events, disconnected",
           _of_api(lambda context: context.event_streams.dropped)),
    Metric("soliton_waiting_requests", GAUGE, "Requests that wait for a transaction or a block",
           _of_api(lambda context: context.waiting.count)),
    Metric("process_cpu_seconds_total", COUNTER, "CPU time of the process, user and system",
           _of_processes(Resource.CPU_MICROSECONDS, _MICRO)),
    Metric("process_resident_memory_bytes", GAUGE, "Memory in use, pages of the store included",
           _of_processes(Resource.RESIDENT_BYTES)),
    Metric("process_open_fds", GAUGE, "Open files and connections",
           _of_processes(Resource.OPEN_FILES)),
    Metric("process_max_fds", GAUGE, "Limit on open files", _of_processes(Resource.FILE_LIMIT)),
)  # fmt: skip
"""In the order of ``/metrics``."""


def metrics_reference() -> str:
    """The text of ``docs/reference/metrics.md``."""
    lines = [
        "# Metrics",
        "",
        "`GET /metrics` exports metrics of the running node in the text format of Prometheus.",
        "Counters start at 0 with the node. Metrics of the process exist where the system reports",
        "them. With `rest-api.workers` all metrics are totals of the node and its workers,",
        "whichever answers; pages of the store are in the memory of each of them.",
        "This page is generated from `soliton.api.metrics`.",
        "",
        "| name | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    lines += [
        "",
        "`/livez` tells whether the process answers, `/readyz` whether it is ready for requests:",
        "see [the routes](rest.md).",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    from pathlib import Path

    Path("docs/reference/metrics.md").write_text(metrics_reference(), encoding="utf-8")
