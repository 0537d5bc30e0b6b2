"""Routes under ``/consensus``, which the newest generation of the interface has no more.

Source: 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/consensus/nxt/api/http/
NxtConsensusApiRoute.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.errors import (
    BLOCK_DOES_NOT_EXIST,
    INVALID_ADDRESS,
    INVALID_BLOCK_ID,
    INVALID_SIGNATURE,
)
from soliton.api.http import Request
from soliton.api.lookup import ADDRESS, address_argument, block_id, is_oldest, node_of
from soliton.api.rest import examples
from soliton.api.routes import GET, TEXT, Parameter, Route
from soliton.chain.addresses import address_text
from soliton.chain.blocks import BlockHeader, decode_header
from soliton.consensus import pos
from soliton.crypto import base58

_TAG: Final = "consensus"


class Algorithm(msgspec.Struct, frozen=True, rename="camel"):
    """How generators are chosen."""

    consensus_algo: str


class BaseTarget(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A block's base target; ``score`` of the whole chain, where the last block is asked for."""

    base_target: int
    score: str | None = None


class GenerationSignature(msgspec.Struct, frozen=True, rename="camel"):
    """A block's generation signature."""

    generation_signature: str


class GeneratingBalance(msgspec.Struct, frozen=True):
    """What an account mines with."""

    address: str
    balance: int


def algorithm(request: Request) -> Algorithm:
    """How generators are chosen."""
    chain = node_of(request).chain
    fair = chain.rules.at(chain.height).pos is not pos.NXT
    return Algorithm("Fair Proof-of-Stake (FairPoS)" if fair else "proof-of-stake (PoS)")


def base_target(request: Request) -> BaseTarget:
    """The last block's base target."""
    node = node_of(request)
    chain = node.chain
    score = int.from_bytes(chain.meta(chain.height).score, "big")
    target = chain.last_block.header.base_target
    return BaseTarget(target, str(score) if is_oldest(node) else None)


def base_target_of(request: Request) -> BaseTarget:
    """A block's base target."""
    return BaseTarget(_header(request).base_target)


def generation_signature(request: Request) -> GenerationSignature:
    """The last block's generation signature."""
    header = node_of(request).chain.last_block.header
    return GenerationSignature(base58.encode(header.generation_signature))


def generation_signature_of(request: Request) -> GenerationSignature:
    """A block's generation signature."""
    return GenerationSignature(base58.encode(_header(request).generation_signature))


def _header(request: Request) -> BlockHeader:
    node = node_of(request)
    height = node.chain.store.height_of(block_id(request.text("blockId"), node))
    data = None if height is None else node.chain.store.block_data(height)
    if data is None:
        raise BLOCK_DOES_NOT_EXIST.error()
    return decode_header(data, node.network.chain_id)[0]


def generating_balance(request: Request) -> GeneratingBalance:
    """What an account mines with."""
    address = address_argument(request)
    balance = node_of(request).chain.generating_balance(address)
    return GeneratingBalance(address_text(address), balance)


_BLOCK: Final = Parameter("blockId", TEXT, "Id of a block in base58", examples.BLOCK_ID)
_ERRORS: Final = (INVALID_BLOCK_ID, INVALID_SIGNATURE, BLOCK_DOES_NOT_EXIST)

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/consensus/algo",
        handler=algorithm,
        tag=_TAG,
        summary="How generators are chosen",
        response=Algorithm,
        example={"consensusAlgo": "Fair Proof-of-Stake (FairPoS)"},
    ),
    Route(
        methods=GET,
        path="/consensus/basetarget",
        handler=base_target,
        tag=_TAG,
        summary="The last block's base target",
        response=BaseTarget,
        example={"baseTarget": 948, "score": "19458"},
    ),
    Route(
        methods=GET,
        path="/consensus/basetarget/{blockId}",
        handler=base_target_of,
        tag=_TAG,
        summary="A block's base target",
        parameters=(_BLOCK,),
        response=BaseTarget,
        example={"baseTarget": 948},
        errors=_ERRORS,
    ),
    Route(
        methods=GET,
        path="/consensus/generationsignature",
        handler=generation_signature,
        tag=_TAG,
        summary="The last block's generation signature",
        response=GenerationSignature,
        example={"generationSignature": "11111111111111111111111111111111"},
    ),
    Route(
        methods=GET,
        path="/consensus/generationsignature/{blockId}",
        handler=generation_signature_of,
        tag=_TAG,
        summary="A block's generation signature",
        parameters=(_BLOCK,),
        response=GenerationSignature,
        example={"generationSignature": "11111111111111111111111111111111"},
        errors=_ERRORS,
    ),
    Route(
        methods=GET,
        path="/consensus/generatingbalance/{address}",
        handler=generating_balance,
        tag=_TAG,
        summary="What an account mines with",
        parameters=(ADDRESS,),
        response=GeneratingBalance,
        example={"address": examples.ADDRESS, "balance": examples.AMOUNT},
        errors=(INVALID_ADDRESS,),
    ),
)

FAMILIES: Final = {
    route.path: ("zbs",) if "generationsignature" in route.path else ("zbs", "tn")
    for route in ROUTES
}
"""Routes that only some families of networks have."""
