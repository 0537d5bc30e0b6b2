"""Routes under ``/consensus``, which the newest generation of the interface does not have.

Source: 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/consensus/nxt/api/http/
NxtConsensusApiRoute.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import address_argument, block_id, is_oldest, node_of
from soliton.api.rest import examples
from soliton.api.route_table import row, table
from soliton.chain.addresses import address_text
from soliton.chain.blocks import BlockHeader
from soliton.consensus import pos
from soliton.crypto import base58


class Algorithm(msgspec.Struct, frozen=True, rename="camel"):
    """The consensus algorithm."""

    consensus_algo: str


class BaseTarget(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A block's base target; for the last block, also the ``score`` of the chain."""

    base_target: int
    score: str | None = None


class GenerationSignature(msgspec.Struct, frozen=True, rename="camel"):
    """A block's generation signature."""

    generation_signature: str


class GeneratingBalance(msgspec.Struct, frozen=True):
    """An account's generating balance."""

    address: str
    balance: int


def algorithm(request: Request) -> Algorithm:
    """The consensus algorithm."""
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
    if height is None:
        raise errors.BLOCK_DOES_NOT_EXIST.error()
    return node.chain.header_at(height)[0]


def generating_balance(request: Request) -> GeneratingBalance:
    """An account's generating balance."""
    address = address_argument(request)
    balance = node_of(request).chain.generating_balance(address)
    return GeneratingBalance(address_text(address), balance)


_ERRORS: Final = "INVALID_BLOCK_ID INVALID_SIGNATURE BLOCK_DOES_NOT_EXIST"

ROUTES: Final = table("consensus", f"""
blockId | text | Id of a block in base58 | {examples.BLOCK_ID}
""",
    row("GET /consensus/algo", algorithm, "The consensus algorithm", Algorithm,
        {"consensusAlgo": "Fair Proof-of-Stake (FairPoS)"}),
    row("GET /consensus/basetarget", base_target, "The last block's base target", BaseTarget,
        {"baseTarget": 948, "score": "19458"}),
    row("GET /consensus/basetarget/{blockId}", base_target_of, "A block's base target", BaseTarget,
        {"baseTarget": 948}, _ERRORS),
    row("GET /consensus/generationsignature family=zbs", generation_signature,
        "The last block's generation signature", GenerationSignature,
        {"generationSignature": "11111111111111111111111111111111"}),
    row("GET /consensus/generationsignature/{blockId} family=zbs", generation_signature_of,
        "A block's generation signature", GenerationSignature,
        {"generationSignature": "11111111111111111111111111111111"}, _ERRORS),
    row("GET /consensus/generatingbalance/{address}", generating_balance,
        "An account's generating balance", GeneratingBalance,
        {"address": examples.ADDRESS, "balance": examples.AMOUNT}, "INVALID_ADDRESS"),
    reads="state", family="zbs,tn",
)  # fmt: skip
