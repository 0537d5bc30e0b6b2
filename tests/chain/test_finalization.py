"""Endorsements and votings: recorded ones, their messages, what combines, damaged bytes."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain import blocks, finalization, microblocks
from soliton.chain.errors import FormatError
from soliton.chain.finalization import BlockEndorsement, FinalizationVoting
from soliton.crypto import base58, bls
from soliton.wire import frames, kinds, messages
from tests.vectors import load_document, report

R = ord("R")
VOTINGS = "finality/finalization_votings"


def test_recorded_endorsements() -> None:
    recorded = load_document("finality/endorsements")["endorsements"]
    report.ran("finality/endorsements", len(recorded))
    for vector in recorded:
        data = bytes.fromhex(vector["protobuf"])
        endorsement = finalization.decode_endorsement(data)
        assert finalization.encode_endorsement(endorsement) == data
        message = finalization.message_of(endorsement)
        assert message.hex() == vector["signedMessage"]
        assert bls.is_valid((bytes.fromhex(vector["publicKey"]),), message, endorsement.signature)
        made = finalization.sign_endorsement(
            bytes.fromhex(vector["secretKey"]),
            vector["endorserIndex"],
            base58.decode(vector["finalizedBlockId"], 100),
            vector["finalizedBlockHeight"],
            base58.decode(vector["endorsedBlockId"], 100),
        )
        assert made == endorsement
        frame = frames.encode(messages.EndorseBlock(data))
        assert frame.hex() == vector["frame"]
        assert len(data) <= kinds.BY_RECORD[messages.EndorseBlock].limit


def test_recorded_votings() -> None:
    recorded = load_document(VOTINGS)["votings"]
    report.ran(VOTINGS, len(recorded))
    for vector in recorded:
        data = bytes.fromhex(vector["protobuf"])
        assert finalization.encode_voting(finalization.decode_voting(data)) == data, vector["what"]


def test_recorded_combinations() -> None:
    recorded = load_document(VOTINGS)["combine"]
    report.ran(VOTINGS, len(recorded))

    def voting(text: str | None) -> FinalizationVoting | None:
        return None if text is None else finalization.decode_voting(bytes.fromhex(text))

    for vector in recorded:
        old, new, both = (voting(vector[name]) for name in ("old", "new", "combined"))
        assert finalization.combined(old, new) == both, vector["what"]
        if old != both:
            assert finalization.added(old, both) == new


def test_recorded_headers_and_microblocks() -> None:
    document = load_document("finality/headers")
    report.ran("finality/headers", len(document["headers"]) + len(document["microBlocks"]))
    for vector in document["headers"]:
        data = bytes.fromhex(vector["blockProtobufWithoutTransactions"])
        block = blocks.decode(data, R)
        assert block.data == data
        assert block.signed.hex() == vector["signedBytes"]
        assert base58.encode(block.id) == vector["id"]
        assert (block.header.finalization_voting is None) == (
            "finalizationVoting" not in vector["goJson"]
        )
        assert blocks.signature_is_valid(block)
        head = blocks.decode_signed_header(data, R)
        assert head.header == block.header
    for vector in document["microBlocks"]:
        data = bytes.fromhex(vector["signedMicroBlock"])
        micro = microblocks.decode(data, R)
        assert microblocks.encode(micro) == data
        assert micro.signed.hex() == vector["signedBytes"]
        assert (micro.finalization_voting is not None) == vector["hasVoting"]
        assert microblocks.signature_is_valid(micro)


ENDORSEMENT = BlockEndorsement(3, bytes(32), 7, bytes(64), bytes(96))
VOTING = FinalizationVoting((1, 2), 5, bytes(96), (ENDORSEMENT,))


@pytest.mark.parametrize(
    ("voting", "words"),
    [
        (VOTING, ""),
        (FinalizationVoting((), 0, None), ""),
        (FinalizationVoting((0,), 1, bytes(95)), "endorsement signature of 95 bytes"),
        (
            FinalizationVoting((), 1, None, (BlockEndorsement(0, b"", 1, b"", b"short"),)),
            "endorsement signature of 5 bytes",
        ),
        (FinalizationVoting((0,) * 65_536, 1, bytes(96)), "65536 endorsers are more than 65535"),
    ],
)
def test_forms_of_votings(voting: FinalizationVoting, words: str) -> None:
    data = finalization.encode_voting(voting)
    if not words:
        assert finalization.decode_voting(data) == voting
        return
    with pytest.raises(FormatError, match=words):
        finalization.decode_voting(data)


def test_an_endorsement_that_is_too_large() -> None:
    large = finalization.encode_endorsement(
        BlockEndorsement(0, bytes(32), 1, bytes(500), bytes(96))
    )
    with pytest.raises(FormatError, match="are more than an endorsement can have"):
        finalization.decode_endorsement(large)


def test_the_voting_of_a_challenged_block_is_that_of_its_original() -> None:
    recorded: list[dict[str, Any]] = load_document("finality/headers")["headers"]
    data = bytes.fromhex(recorded[1]["blockProtobufWithoutTransactions"])
    original = blocks.decode(data, R)
    header = original.header
    challenged = blocks.ChallengedHeader(
        base_target=header.base_target,
        generation_signature=header.generation_signature,
        feature_votes=header.feature_votes,
        timestamp=header.timestamp,
        generator=header.generator,
        reward_vote=header.reward_vote,
        state_hash=header.state_hash,
        header_signature=original.signature,
        finalization_voting=header.finalization_voting,
    )
    challenge = blocks.BlockHeader(
        version=5,
        chain_id=R,
        timestamp=header.timestamp + 1,
        reference=header.reference,
        base_target=header.base_target,
        generation_signature=header.generation_signature,
        generator=bytes(32),
        transactions_root=header.transactions_root,
        challenged=challenged,
    )
    assert blocks.original_header(challenge, challenged) == header
    again = blocks.decode(blocks.assemble(challenge, (), bytes(64)).data, R)
    assert again.header == challenge
