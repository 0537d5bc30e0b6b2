"""The JSON of a block's state hashes, for clients and the command line.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/DebugApiRoute.scala``.
"""

from __future__ import annotations

from soliton.crypto import base58
from soliton.ledger.hashes import SECTIONS
from soliton.node.blockchain import Blockchain
from soliton.node.versions import interface_version


def state_hash_json(chain: Blockchain, height: int) -> dict[str, str | int]:
    """Return the answer of ``/debug/stateHash/{height}``; raises ``KeyError`` for no such block."""
    meta = chain.meta(height)
    found = chain.state_hash(height)
    answer: dict[str, str | int] = {"stateHash": found.total.hex()}
    for name, value in zip(SECTIONS, found.sections, strict=False):
        answer[name] = value.hex()
    answer["snapshotHash"] = base58.encode(meta.snapshot_hash)
    answer["blockId"] = base58.encode(meta.id)
    answer["baseTarget"] = chain.header_at(height)[0].base_target
    answer["height"] = height
    answer["version"] = interface_version(chain.network.family)
    return answer
