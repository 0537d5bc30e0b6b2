"""Routes ``/blockchain/finality`` and ``/generators``: what is final, and who generates blocks.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/``
``{FinalityApiRoute,GeneratorsApiRoute}.scala`` and ``api/common/CommonGeneratorsApi.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.rest.examples import ADDRESS, TRANSACTION_ID
from soliton.api.route_table import row, table
from soliton.chain.addresses import address_text
from soliton.chain.features import Feature
from soliton.consensus.generation import GenerationPeriod
from soliton.crypto import base58
from soliton.ledger.generators import Committed, committed_to
from soliton.node.blockchain import Blockchain
from soliton.web.answers import Whole

_NO_BLOCK: Final = Whole(b"[]", status=404)


class Generator(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A committed generator, its generating balance in wavelets, 0 if it is not in the set of the
    block, and the id of its commitment. ``conflict_height`` is the height of the block with its
    conflicting endorsement.
    """

    address: str
    balance: int
    transaction_id: str
    conflict_height: int | None = None


class CurrentGenerator(msgspec.Struct, frozen=True, rename="camel"):
    """The same, with all members."""

    address: str
    transaction_id: str
    balance: int
    conflict_height: int | None


class NextGenerator(msgspec.Struct, frozen=True, rename="camel"):
    """A generator that has committed to the next period, and the id of its commitment."""

    address: str
    transaction_id: str


class Period(msgspec.Struct, frozen=True):
    """The first and the last height of a generation period."""

    start: int
    end: int


class FinalityStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The last final block, and the generators of this period and the next one."""

    height: int
    finalized_height: int
    activation_height: int | None
    current_generation_period: Period | None
    current_generators: list[CurrentGenerator]
    next_generation_period: Period | None
    next_generators: list[NextGenerator]


def status(request: Request) -> FinalityStatus:
    """Describe what is final, and who generates."""
    chain = node_of(request).chain
    height = chain.height
    period = chain.rules.period_at(height)
    following = None if period is None else period.next
    return FinalityStatus(
        height,
        chain.finalized_height,
        chain.rules.activations().get(Feature.DETERMINISTIC_FINALITY),
        _period(period),
        [
            CurrentGenerator(each.address, each.transaction_id, each.balance, each.conflict_height)
            for each in _generators(chain, height)
        ],
        _period(following),
        []
        if following is None
        else [
            NextGenerator(address_text(each.address), base58.encode(each.transaction_id))
            for each in committed_to(chain.state, following, chain.network.chain_id)
        ],
    )


def generators_at(request: Request) -> object:
    """The generators of the block at a height."""
    chain = node_of(request).chain
    height = request.integer("height")
    if height > chain.height:
        return _NO_BLOCK
    return [] if height < 1 else _generators(chain, height)


def _generators(chain: Blockchain, height: int) -> list[Generator]:
    found = chain.generators_at(height)
    if found is None:
        return []
    balances = {each.index: each.balance for each in found.members}
    return [_generator(each, balances.get(index, 0)) for index, each in enumerate(found.committed)]


def _generator(committed: Committed, balance: int) -> Generator:
    return Generator(
        address_text(committed.address),
        balance,
        base58.encode(committed.transaction_id),
        committed.conflict_height or None,
    )


def _period(period: GenerationPeriod | None) -> Period | None:
    return None if period is None else Period(period.start, period.end)


_GENERATOR_EXAMPLE: Final = {
    "address": ADDRESS,
    "balance": 2749989990000000,
    "transactionId": TRANSACTION_ID,
}
_STATUS_EXAMPLE: Final = {
    "height": 27,
    "finalizedHeight": 25,
    "activationHeight": 15,
    "currentGenerationPeriod": {"start": 26, "end": 35},
    "currentGenerators": [{**_GENERATOR_EXAMPLE, "conflictHeight": None}],
    "nextGenerationPeriod": {"start": 36, "end": 45},
    "nextGenerators": [{"address": ADDRESS, "transactionId": TRANSACTION_ID}],
}

ROUTES: Final = table("finality", "",
    row("GET /blockchain/finality[/] family=waves", status,
        "The last final block, and the generators of this period and the next one",
        FinalityStatus, _STATUS_EXAMPLE),
    row("GET /generators/at/{height} family=waves", generators_at,
        "The generators of the block at a height, in the order of their indexes",
        list[Generator], [_GENERATOR_EXAMPLE],
        statuses=((404, "An empty list: there is no such block yet"),)),
    reads="state",
)  # fmt: skip
