"""Waiting for final blocks, at nodes with and without votes, and headers with votings."""

from __future__ import annotations

import msgspec
import pytest

from soliton.client import records
from soliton.client.errors import NodeRefused, StillWaiting
from soliton.client.records import ConflictEndorsement
from soliton.client.routes import blocks
from soliton.client.sending import wait
from soliton.crypto import base58
from soliton.errors import InputError
from tests.client.scripted import Scripted, told

NAME = base58.encode(bytes(32))
NO_BLOCK = told({"error": 301, "message": "block does not exist"}, 404)
NO_ID = told({"error": 4002, "message": "Invalid block id"}, 400)


def mined(height: int) -> dict[str, object]:
    return {"id": NAME, "status": "confirmed", "height": height, "confirmations": 5}


def test_a_reference_node() -> None:
    client = Scripted(
        told({"height": 9}),
        told([mined(10)]),
        told({"height": 10}),
        told([mined(10)]),
    )
    assert client.run(wait, NAME, confirmations="finalized").height == 10
    assert client.paths == ["GET /blocks/height/finalized", "POST /transactions/status"] * 2


@pytest.mark.parametrize("refusal", [NO_BLOCK, NO_ID])
def test_a_node_that_knows_of_no_finality(refusal: object) -> None:
    client = Scripted(refusal, told({"height": 109}), told([mined(10)]))  # type: ignore[arg-type]
    with pytest.raises(StillWaiting):
        client.run(wait, NAME, 0, confirmations="finalized")
    client = Scripted(refusal, told({"height": 110}), told([mined(10)]))  # type: ignore[arg-type]
    assert client.run(wait, NAME, 0, confirmations="finalized").height == 10
    assert client.paths[1] == "GET /blocks/height"


def test_a_node_of_this_kind() -> None:
    client = Scripted(told(mined(10) | {"finalized": False}), told(mined(10) | {"finalized": True}))
    client.core.is_soliton = True
    assert client.run(wait, NAME, confirmations="finalized").height == 10
    assert client.paths[0] == f"GET /transactions/wait/{NAME}?timeout=60&confirmations=finalized"


def test_a_young_chain_and_a_node_in_trouble() -> None:
    assert Scripted(NO_BLOCK, told({"height": 5})).run(blocks.finalized_height) == 1
    with pytest.raises(NodeRefused):
        Scripted(told({"error": 0, "message": "no"}, 500)).run(blocks.finalized_height)


@pytest.mark.parametrize("wrong", ["final", "1", -1, 1.5, None, b"finalized"])
def test_confirmations_that_are_none(wrong: object) -> None:
    client = Scripted()
    with pytest.raises(InputError, match="confirmations"):
        client.run(wait, NAME, confirmations=wrong)
    assert client.asked == []


def test_the_voting_of_a_header() -> None:
    header = {
        "version": 5,
        "timestamp": 1,
        "reference": NAME,
        "generator": NAME,
        "signature": NAME,
        "nxt-consensus": {"base-target": 1, "generation-signature": NAME},
    }
    assert msgspec.convert(header, records.BlockHeader).finalization_voting is None
    conflict = {
        "endorserIndex": 2,
        "finalizedBlockId": NAME,
        "finalizedHeight": 3,
        "endorsedBlockId": NAME,
        "signature": NAME,
    }
    voting = {
        "endorserIndexes": [0, 1],
        "aggregatedEndorsementSignature": NAME,
        "finalizedHeight": 4,
        "conflictEndorsements": [conflict],
    }
    found = msgspec.convert(header | {"finalizationVoting": voting}, records.BlockHeader)
    assert found.finalization_voting is not None
    assert found.finalization_voting.endorser_indexes == (0, 1)
    assert found.finalization_voting.finalized_height == 4
    assert found.finalization_voting.conflict_endorsements == (
        ConflictEndorsement(2, NAME, 3, NAME, NAME),
    )
    empty = msgspec.convert(header | {"finalizationVoting": {}}, records.BlockHeader)
    assert empty.finalization_voting == records.FinalizationVoting()
