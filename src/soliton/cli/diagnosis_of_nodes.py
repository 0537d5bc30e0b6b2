"""Diagnoses of a running node: readiness, peers, features that it lacks, forks.

What lives here: checks over HTTP and of peers' ports. What does not: checks of the machine
(``diagnosis``), the comparison of chains (``comparing``).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from soliton.chain.features import DESCRIPTIONS, IMPLEMENTED
from soliton.cli.comparing import BlockName, NodeSide, Side, compare
from soliton.cli.diagnosis import FAULT, NOTE, OK, WARNING, Finding
from soliton.client.errors import ClientError
from soliton.client.node import Node
from soliton.client.records import Feature, FeatureList
from soliton.crypto import base58
from soliton.errors import EnvironmentProblem, SolitonError
from soliton.node.blockchain import Blockchain
from soliton.node.known_features import LAST_DATE_MS, NOTABLE_SHARE
from soliton.node.network_settings import HostPort
from soliton.node.settings import Settings
from soliton.node.state_hash_json import state_hash_json
from soliton.storage.directories import stored_network
from soliton.storage.store import Store

MAX_DIALS: Final = 20
"""Limit on the known peers that are dialled."""
DIAL_SECONDS: Final = 3.0
_ALONE: Final = "set network.known-peers, unless the chain is private"
FAR_BEHIND: Final = 10
"""Blocks behind another node from which a node is not up to date."""
_MS: Final = 1_000


class StoreSide:
    """The chain in a node's data directory."""

    def __init__(self, chain: Blockchain, name: str) -> None:
        self.name = name
        self._chain = chain

    def height(self) -> int:
        """See ``Side``."""
        return self._chain.height

    def block(self, height: int) -> BlockName | None:
        """See ``Side``."""
        if not 1 <= height <= self._chain.height:
            return None
        header, _ = self._chain.header_at(height)
        encode = base58.encode
        key = header.timestamp, encode(header.reference), encode(header.generation_signature)
        name = encode(self._chain.meta(height).id)
        return BlockName(name, key, encode(header.generator), header.timestamp)

    def state_hash(self, height: int) -> str | None:
        """See ``Side``."""
        return str(state_hash_json(self._chain, height)["stateHash"])


@contextmanager
def stored_side(settings: Settings) -> Iterator[StoreSide | None]:
    """Open the chain of the settings, ``None`` if there is none."""
    directory, network = settings.data_directory, settings.network
    if stored_network(directory) != network.name:
        yield None
        return
    store = Store(directory, network.name, exclusive=False)
    try:
        yield StoreSide(Blockchain(network, store), str(directory))
    finally:
        store.close()


def readiness(node: Node, chain_id: int | None) -> Iterator[Finding]:
    """Describe a running node, and why it is not ready. ``chain_id`` is that of the settings,
    ``None`` if nobody has chosen them.
    """
    text = f"{node.url}: {node.node_version()}, height {node.height()}"
    if chain_id not in (None, node.chain_id):
        wrong = f"{text}: its chain is {chr(node.chain_id)}, not {chr(chain_id or 0)}"
        yield Finding("node", FAULT, wrong, "name the node of these settings with --node")
        return
    if not node.is_soliton():
        yield Finding("node", OK, text)
        return
    ready = node.readiness()
    if ready.status == "ready":
        yield Finding("node", OK, f"{text}, ready")
        return
    for reason in ready.reasons or ("it does not say why",):
        advice = "see the node's log"
        if "old" in reason or "ahead" in reason:
            advice = "wait until it has caught up; if it does not, check its peers and its chain"
        elif "disk" in reason:
            advice = "make room on its disk"
        yield Finding("node", FAULT, f"{text}: {reason}", advice)


def peers_of(node: Node, own: str, known: Sequence[HostPort]) -> Iterator[Finding]:
    """Check the peers of a running node; ``own`` is the interface's version of this program."""
    found = node.peers()
    if not found and not known:
        yield Finding("peers", NOTE, "none is connected, and none is known", _ALONE)
        return
    if not found:
        yield Finding(
            "peers", FAULT, "none is connected",
            "check network.known-peers, the firewall for outgoing connections, and the log",
        )  # fmt: skip
        return
    count = Counter(each.application_version or "unknown" for each in found)
    shown = ", ".join(f"{version}: {number}" for version, number in count.most_common(5))
    yield Finding("peers", OK, f"{len(found)} are connected; versions {shown}; own {own}")


def dial_known(peers: Sequence[HostPort]) -> Iterator[Finding]:
    """Check whether the known peers can be reached."""
    chosen = peers[:MAX_DIALS]
    if not chosen:
        yield Finding("peers", NOTE, "none is known", _ALONE)
        return
    reached = sum(asyncio.run(_dial_all(chosen)))
    text = f"{reached} of {len(chosen)} known peers can be reached"
    if not reached:
        advice = "check the firewall for outgoing connections, name resolution, and known-peers"
        yield Finding("peers", FAULT, text, advice)
    else:
        yield Finding("peers", OK if 2 * reached >= len(chosen) else WARNING, text)


async def _dial_all(peers: Sequence[HostPort]) -> list[bool]:
    return list(await asyncio.gather(*map(_dial, peers)))


async def _dial(peer: HostPort) -> bool:
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            _, writer = await asyncio.open_connection(peer.host, peer.port)
    except (OSError, TimeoutError, UnicodeError):
        return False
    writer.close()
    return True


# --- features -------------------------------------------------------------------------------------


def features(node: Node, block_ms: int) -> Iterator[Finding]:
    """Check which features of the network this version lacks; ``block_ms`` is the mean time between
    its blocks.
    """
    voting = node.voting()
    lacking = [each for each in voting.features if each.id not in IMPLEMENTED]
    findings = [found for each in lacking if (found := _feature(each, voting, block_ms))]
    yield from findings
    if not findings:
        yield Finding("features", OK, "none that this version lacks is active or voted for")


def _feature(feature: Feature, voting: FeatureList, block_ms: int) -> Finding | None:
    name = f"feature {feature.id} ({DESCRIPTIONS.get(feature.id, feature.description[:80])})"
    update = "update the node before"
    if feature.blockchain_status == "ACTIVATED":
        text = f"{name} is active since height {feature.activation_height}: this version lacks it"
        return Finding("features", FAULT, text, "update the node")
    if feature.blockchain_status == "APPROVED":
        start = feature.activation_height or voting.next_check + voting.voting_interval
        text = f"{name}, which this version lacks, is approved, active from {start} on"
        return Finding("features", FAULT, f"{text}, about {_date(voting, start, block_ms)}", update)
    votes = feature.supporting_blocks or 0
    blocks = voting.height - (voting.next_check - voting.voting_interval)
    if votes <= 0 or blocks <= 0 or voting.voting_interval <= 0:
        return None
    start = voting.next_check + voting.voting_interval
    text = (
        f"{name}, which this version lacks: {100 * votes // blocks} % of {blocks} blocks vote for "
        f"it, {100 * voting.voting_threshold // voting.voting_interval} % approve it by height "
        f"{voting.next_check}; active from {start} on then, about {_date(voting, start, block_ms)}"
    )
    notable = votes * NOTABLE_SHARE >= blocks
    return Finding("features", WARNING if notable else NOTE, text, update)


def _date(voting: FeatureList, height: int, block_ms: int) -> str:
    moment = int(time.time() * _MS) + (height - voting.height) * block_ms
    return f"{datetime.fromtimestamp(min(max(moment, 0), LAST_DATE_MS) / _MS, UTC):%Y-%m-%d}"


# --- forks ----------------------------------------------------------------------------------------


def fork(own: Side, other: Node, third: Node | None) -> Iterator[Finding]:
    """Compare the own chain with that of another node; a third one tells who is right."""
    name = f"chain against {other.url}"
    try:
        found = compare(own, NodeSide(other), None if third is None else NodeSide(third))
    except (ClientError, EnvironmentProblem) as error:
        yield Finding(name, WARNING, str(error), "name another node, or try again")
        return
    difference = found.difference
    if difference is not None:
        text = f"the {difference.kind} at height {difference.height} differs"
        advice = (
            f"soliton compare {own.name} {other.url} shows more; roll back below and sync again"
        )
        if difference.right is not None and difference.right != own.name:
            text += ": a third node agrees with the other"
        elif difference.right is not None:
            text, advice = f"{text}: a third node agrees with the own", "name another node"
        yield Finding(name, FAULT, text, advice)
        return
    behind = found.second_height - found.first_height
    if behind > FAR_BEHIND:
        advice = "wait until it has caught up; if it does not, check peers and log"
        yield Finding(name, WARNING, f"the same, {behind} blocks behind", advice)
    else:
        yield Finding(name, OK, f"the same up to height {found.common_height}")


def clock_against(node: Node) -> Iterator[Finding]:
    """Compare the machine's clock with a node's."""
    started = time.time()
    theirs = node.time() / _MS
    took = time.time() - started
    offset = theirs - started - took / 2
    text = f"the clock differs by {offset:.1f} s from {node.url} (± {took / 2:.1f} s)"
    if abs(offset) > took / 2 + 1:
        yield Finding("clock", WARNING, text, "let the system keep its time")
    else:
        yield Finding("clock", OK, text)


def attempt(check: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings; an error of a node is one, too."""
    try:
        yield from findings
    except SolitonError as error:
        yield Finding(check, WARNING, str(error), "check the URL, and what answers there")
