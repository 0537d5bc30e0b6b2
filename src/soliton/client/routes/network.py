"""Routes about the node itself and its network."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec

from soliton.chain.addresses import MAX_ADDRESS_CHARS, check_address
from soliton.chain.errors import AddressError
from soliton.client.errors import NodeBroken
from soliton.client.records import (
    BlockHeader,
    Feature,
    FeatureList,
    NodeStatus,
    Peer,
    PeerList,
    Readiness,
    Reward,
    TimeRecord,
)
from soliton.client.steps import (
    JSON,
    Core,
    Request,
    Steps,
    ask,
    call,
    decoded,
    get,
    key_headers,
    refused,
)
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

_CHAIN_ID_PLACE: Final = 1
"""The index of the chain id in the bytes of an address."""
_ALIVE: Final = b'{"status":"alive"}'

Json = dict[str, Any]


def chain_id(core: Core) -> Steps[int]:
    """The node's chain id. It is requested once and cached, unless the client was made with it."""
    if core.chain_id is None:
        header = yield from get(core, "/blocks/headers/last", BlockHeader)
        core.chain_id = chain_id_in(header.generator)
    return core.chain_id


def chain_id_in(address: str) -> int:
    """Return the chain id in an address that a server has answered with; raises ``NodeBroken``."""
    try:
        found = base58.decode(address, MAX_ADDRESS_CHARS)
        return check_address(found, found[_CHAIN_ID_PLACE])[_CHAIN_ID_PLACE]
    except (Base58Error, AddressError, LookupError) as error:
        raise NodeBroken(f"invalid response: {address[:60]!r} is no address") from error


def is_soliton(core: Core) -> Steps[bool]:
    """Whether the node is Soliton and has its own routes. It is requested once and cached."""
    if core.is_soliton is None:
        answer = yield from call(core, Request("GET", "/livez"))
        core.is_soliton = answer.status == 200 and answer.body == _ALIVE
    return core.is_soliton


def node_version(core: Core) -> Steps[str]:
    """The name and version of the node's software."""
    reply = yield from get(core, "/node/version", Json)
    return str(reply["version"])


def node_status(core: Core) -> Steps[NodeStatus]:
    """The height and time of the last block."""
    return get(core, "/node/status", NodeStatus)


def readiness(core: Core) -> Steps[Readiness]:
    """Whether the node is ready for requests. Raises ``NotFound`` for nodes other than Soliton's,
    which do not tell.
    """
    # Without retries: a node that is not ready answers with the status of a busy one.
    del core
    answer = yield Request("GET", "/readyz")
    if answer.status not in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE):
        raise refused(answer)
    return decoded(answer, Readiness)


def time(core: Core) -> Steps[int]:
    """The time of the node's clock, in milliseconds."""
    reply = yield from get(core, "/utils/time", TimeRecord)
    return reply.ntp


def features(core: Core) -> Steps[list[Feature]]:
    """The protocol features, and the state of the vote on each."""
    reply = yield from get(core, "/activation/status", FeatureList)
    return reply.features


def voting(core: Core) -> Steps[FeatureList]:
    """The protocol features with the window of the vote on them."""
    return get(core, "/activation/status", FeatureList)


def reward(core: Core, height: int | None = None) -> Steps[Reward]:
    """The block reward, at present or at a height."""
    path = "/blockchain/rewards" if height is None else f"/blockchain/rewards/{int(height)}"
    return get(core, path, Reward)


def peers(core: Core) -> Steps[list[Peer]]:
    """The connected peers of the node."""
    reply = yield from get(core, "/peers/connected", PeerList)
    return reply.peers


def state_hash(core: Core, height: int | None = None) -> Steps[Json]:
    """The state hashes after the block at a height, by default the one below the last. Some nodes
    require the API key.
    """
    path = f"/debug/stateHash/{'last' if height is None else int(height)}"
    return ask(core, Request("GET", path, headers=key_headers(core)), Json)


def get_json(core: Core, path: str) -> Steps[Any]:
    """The decoded answer to a GET of any route, with the API key if there is one. ``path`` begins
    with ``/``, and its parts are quoted. Raises ``NodeRefused``.
    """
    return ask(core, Request("GET", path, headers=key_headers(core)), Any)


def post_json(core: Core, path: str, value: object) -> Steps[Any]:
    """The same for a POST of a JSON value, which is not repeated: the node may have processed it
    when its answer is lost.
    """
    body, headers = msgspec.json.encode(value), JSON + key_headers(core)
    return ask(core, Request("POST", path, body, headers, repeatable=False), Any)
