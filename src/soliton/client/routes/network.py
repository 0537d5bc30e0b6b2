"""The node itself and its network."""

from __future__ import annotations

from typing import Any, Final

from soliton.client.records import (
    BlockHeader,
    Feature,
    FeatureList,
    NodeStatus,
    Peer,
    PeerList,
    Reward,
)
from soliton.client.steps import Core, Request, Steps, ask, call, get, key_headers
from soliton.crypto import base58

_CHAIN_ID_PLACE: Final = 1
"""Of the chain id in the bytes of an address."""
_ALIVE: Final = b'{"status":"alive"}'

Json = dict[str, Any]


def chain_id(core: Core) -> Steps[int]:
    """The number of the node's chain. It is asked once, and remembered."""
    if core.chain_id is None:
        header = yield from get(core, "/blocks/headers/last", BlockHeader)
        core.chain_id = base58.decode(header.generator)[_CHAIN_ID_PLACE]
    return core.chain_id


def is_soliton(core: Core) -> Steps[bool]:
    """Whether the node is one of ours, and has our routes too. It is asked once, and remembered."""
    if core.is_soliton is None:
        answer = yield from call(core, Request("GET", "/livez"))
        core.is_soliton = answer.status == 200 and answer.body == _ALIVE
    return core.is_soliton


def node_version(core: Core) -> Steps[str]:
    """Name and version of the interface that the node speaks."""
    told = yield from get(core, "/node/version", Json)
    return str(told["version"])


def node_status(core: Core) -> Steps[NodeStatus]:
    """Height and time of the last block."""
    return get(core, "/node/status", NodeStatus)


def time(core: Core) -> Steps[int]:
    """The time of the node's clock, in milliseconds."""
    told = yield from get(core, "/utils/time", Json)
    return int(told["NTP"])


def features(core: Core) -> Steps[list[Feature]]:
    """The changes of rules, and where the vote on each stands."""
    told = yield from get(core, "/activation/status", FeatureList)
    return told.features


def reward(core: Core, height: int | None = None) -> Steps[Reward]:
    """The block reward, now or at a height."""
    path = "/blockchain/rewards" if height is None else f"/blockchain/rewards/{int(height)}"
    return get(core, path, Reward)


def peers(core: Core) -> Steps[list[Peer]]:
    """The peers that the node is talking to."""
    told = yield from get(core, "/peers/connected", PeerList)
    return told.peers


def state_hash(core: Core, height: int | None = None) -> Steps[Json]:
    """The hashes of the state after the block at a height, or of the one below the last. Some nodes
    want the API key for this.
    """
    path = f"/debug/stateHash/{'last' if height is None else int(height)}"
    return ask(core, Request("GET", path, headers=key_headers(core)), Json)
