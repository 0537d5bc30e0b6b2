"""Deterministic finality in the answers of the REST API: votings of headers, signing, balances."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from soliton.api.json_blocks import header_json
from soliton.chain import blocks
from soliton.chain.addresses import parse_address
from soliton.chain.transactions.commit_to_generation import commitment
from soliton.chain.transactions.json_reader import read_signed
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.keys import KeyPair
from soliton.node.chain_writer import ChainWriter
from soliton.node.mining import next_turn
from soliton.node.remote_keys import RemoteKey, RemoteSigner
from soliton.node.wallet import Wallet
from soliton.storage.store import Store
from tests.api.chain import OTHER_ADDRESS, RICH, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.api.client import Answer
from tests.node import recorded
from tests.node.chains import DEVNET
from tests.vectors import report


def test_votings_of_recorded_headers(shared: Path, tmp_path: Path) -> None:
    folder = shared / "golden" / "finality-r"
    network = recorded.configured_network(folder / "network.conf")
    chain = ChainWriter(network, Store(tmp_path, network.name, durable=False))
    count = 0
    for row in recorded.lines(folder / "heights.jsonl.gz"):
        height = row["height"]
        if height == 1:
            continue
        chain.append(blocks.decode(base64.b64decode(row["block"]), network.chain_id))
        shown = msgspec.json.decode(msgspec.json.encode(header_json(chain, height)))
        expected = row["goBlockJson"].get("finalizationVoting")
        assert shown.get("finalizationVoting") == expected
        count += expected is not None
    assert count == 39
    report.ran("golden/finality-r", count)
    chain.store.close()


SIGN, BROADCAST = "/transactions/sign", "/transactions/broadcast"
FINALITY: dict[str, object] = {
    "pre_activated_features": {**DEVNET.functionality.pre_activated_features, 24: 0, 25: 3},
    "generation_period_length": 4,
    "max_valid_endorsers": 2,
}
UNSIGNED = {"type": 19, "sender": RICH_ADDRESS}


@pytest.fixture
def private(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path, functionality=FINALITY)
    yield made
    made.node.close()


async def signed(private: PrivateChain, **members: object) -> Any:
    answer = await private.post(SIGN, UNSIGNED | members, WITH_KEY)
    assert answer.status == 200, answer.body
    return answer.json()


async def answered(private: PrivateChain, target: str) -> Any:
    return (await private.get(target)).json()


async def balances(private: PrivateChain) -> Any:
    return await answered(private, f"/addresses/balance/details/{RICH_ADDRESS}")


def message_of(answer: Answer) -> str:
    body: Any = answer.json()
    return str(body["message"])


async def test_a_wallet_commits_without_being_told_how(private: PrivateChain) -> None:
    early = await private.post(SIGN, UNSIGNED, WITH_KEY)
    assert "DeterministicFinality is not yet activated" in message_of(early)
    private.mine()
    made = await signed(private)
    own = commitment(RICH.private_key, 8)
    assert made["generationPeriodStart"] == 8
    assert made["fee"] == 10_000_000
    assert made["endorserPublicKey"] == base58.encode(own.endorser_public_key)
    assert made["commitmentSignature"] == base58.encode(own.commitment_signature)
    transaction = read_signed(made, private.node.network.chain_id)
    assert verify(RICH.public_key, transaction.body, transaction.proofs[0])
    answer = await private.post(BROADCAST, made)
    assert answer.status == 200, answer.body
    before = await balances(private)
    private.mine()
    after = await balances(private)
    assert before["available"] == before["regular"] == before["effective"]
    assert after["available"] == after["effective"] == after["regular"] - 10_000_000_000
    assert after["generating"] <= after["effective"]
    snapshot = await answered(private, f"/transactions/snapshot/{made['id']}")
    assert snapshot["nextCommittedGenerators"] == [
        {
            "publicKey": base58.encode(RICH.public_key),
            "blsPublicKey": made["endorserPublicKey"],
        }
    ]
    again = await private.post(BROADCAST, await signed(private))
    assert again.status == 400
    assert message_of(again).endswith(f"{RICH_ADDRESS} is already committed")


async def test_the_key_of_an_account_for_endorsements(private: PrivateChain) -> None:
    own = commitment(RICH.private_key, 8)
    answer = await private.get(f"/addresses/bls/{RICH_ADDRESS}")
    assert answer.json() == {"blsPublicKey": base58.encode(own.endorser_public_key)}
    missing = await private.get(f"/addresses/bls/{OTHER_ADDRESS}")
    assert (missing.status, missing.json()) == (
        400,
        {"error": 115, "message": "no private key for sender address in wallet"},
    )
    wrong = await private.get("/addresses/bls/abc")
    assert (wrong.status, message_of(wrong)) == (400, "invalid address")


async def test_members_that_a_client_states_are_taken(private: PrivateChain) -> None:
    private.mine()
    other = commitment(b"k" * 32, 12)
    stated = {
        "generationPeriodStart": 12,
        "endorserPublicKey": base58.encode(other.endorser_public_key),
        "commitmentSignature": base58.encode(other.commitment_signature),
        "fee": 20_000_000,
        "timestamp": 5,
        "version": 1,
    }
    made = await signed(private, **stated)
    assert {name: made[name] for name in stated} == stated
    # What is missing of the two follows from the wallet's key all the same.
    half = await signed(private, endorserPublicKey=stated["endorserPublicKey"])
    assert half["endorserPublicKey"] == stated["endorserPublicKey"]
    own = commitment(RICH.private_key, 8)
    assert half["commitmentSignature"] == base58.encode(own.commitment_signature)


async def test_the_key_for_endorsements_is_that_of_the_signer(private: PrivateChain) -> None:
    private.mine()
    wallet = private.node.wallet
    added: Any = (await private.post("/addresses", b"", WITH_KEY)).json()
    address = added["address"]
    key = wallet.key(parse_address(address, private.node.network.chain_id))
    assert isinstance(key, KeyPair)
    answer = await private.post(f"{SIGN}/{address}", UNSIGNED, WITH_KEY)
    made: Any = answer.json()
    own = commitment(key.private_key, 8)
    assert made["endorserPublicKey"] == base58.encode(own.endorser_public_key)
    assert made["senderPublicKey"] == base58.encode(RICH.public_key)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"generationPeriodStart": "8"}, "generationPeriodStart"),
        ({"generationPeriodStart": -1}, "no height: -1"),
        ({"generationPeriodStart": 2**31}, "no height: 2147483648"),
        ({"endorserPublicKey": "1"}, "Unexpected BLS public key length: 1, expected 48"),
        ({"commitmentSignature": "1"}, "Unexpected BLS signature length: 1, expected 96"),
        ({"fee": 0}, "insufficient fee"),
        ({"version": 2}, "Bad transaction type (19) and version (2)"),
    ],
)
async def test_what_is_not_signed(
    private: PrivateChain, members: dict[str, object], words: str
) -> None:
    private.mine()
    answer = await private.post(SIGN, UNSIGNED | members, WITH_KEY)
    assert answer.status == 400
    assert words in answer.body.decode()


async def test_a_remote_key_needs_its_members(private: PrivateChain) -> None:
    private.mine()

    class NoSecrets:
        def key(self, _address: object) -> RemoteKey:
            return RemoteKey(RICH.public_key, cast("RemoteSigner", None))

    private.node.wallet = cast("Wallet", NoSecrets())
    assert (await private.get(f"/addresses/bls/{RICH_ADDRESS}")).status == 400
    answer = await private.post(SIGN, UNSIGNED, WITH_KEY)
    assert answer.status == 400
    assert "state endorserPublicKey and commitmentSignature" in message_of(answer)


async def test_who_may_mine_in_a_period(tmp_path: Path) -> None:
    # Fifty blocks instead of a thousand make a balance old enough.
    start, old = 60, {"generation_balance_depth_from_50_to_1000_after_height": 1_000}
    features = {**DEVNET.functionality.pre_activated_features, 24: 0, 25: start}
    private = PrivateChain(
        tmp_path, functionality=FINALITY | old | {"pre_activated_features": features}
    )
    added: Any = (await private.post("/addresses", b"", WITH_KEY)).json()
    other = added["address"]
    private.send(private.transfer(to=other, amount=200_000 * 10**8))
    while private.node.chain.height < start:
        private.mine()

    async def mining() -> list[str]:
        answer: Any = (await private.get("/debug/minerInfo", **WITH_KEY)).json()
        return sorted(each["address"] for each in answer)

    both = sorted((RICH_ADDRESS, other))
    assert await mining() == both
    answer = await private.post(BROADCAST, await signed(private))
    assert answer.status == 200, answer.body
    while private.node.chain.height < start + 4:
        assert await mining() == both
        private.mine()
    # Only one has committed to the period of the next four blocks, and nobody to that after it.
    for _ in range(4):
        assert await mining() == [RICH_ADDRESS]
        turn = next_turn(private.node)
        assert turn is not None
        assert turn.account.public_key == RICH.public_key
        private.mine()
    assert await mining() == both
    private.node.close()


async def test_what_is_final_and_who_generates(private: PrivateChain) -> None:
    before = await answered(private, "/blockchain/finality")
    assert before == {
        "height": 1,
        "finalizedHeight": 1,
        "activationHeight": 3,
        "currentGenerationPeriod": None,
        "currentGenerators": [],
        "nextGenerationPeriod": None,
        "nextGenerators": [],
    }
    assert await answered(private, "/generators/at/1") == []
    beyond = await private.get("/generators/at/2")
    assert (beyond.status, beyond.json()) == (404, [])
    private.mine()
    made = await signed(private)
    assert (await private.post(BROADCAST, made)).status == 200
    while private.node.chain.height < 9:
        private.mine()
    now = await answered(private, "/blockchain/finality")
    (generator,) = now["currentGenerators"]
    assert generator["address"] == RICH_ADDRESS
    assert generator["transactionId"] == made["id"]
    assert generator["conflictHeight"] is None
    assert generator["balance"] > 0
    assert now["currentGenerationPeriod"] == {"start": 8, "end": 11}
    assert now["nextGenerationPeriod"] == {"start": 12, "end": 15}
    assert now["nextGenerators"] == []
    # A generator that is alone makes final what is below its block.
    assert now["finalizedHeight"] == 7
    assert await answered(private, "/blocks/height/finalized") == {"height": 7}
    at = [await answered(private, f"/blocks/finalized/at/{height}") for height in (1, 7, 8)]
    assert at == [{"height": 1}, {"height": 1}, {"height": 7}]
    for height in (9, 10, 2**31 - 1):
        beyond = await private.get(f"/blocks/finalized/at/{height}")
        assert (beyond.status, beyond.json()) == (404, {"error": 406, "message": "Not finalized"})
    header = await answered(private, "/blocks/headers/finalized")
    assert header == await answered(private, "/blocks/headers/at/7")
    (at,) = await answered(private, "/generators/at/9")
    assert at == {name: generator[name] for name in ("address", "balance", "transactionId")}
    strings: Any = await private.get(
        "/generators/at/9", accept="application/json;large-significand-format=string"
    )
    assert strings.json()[0]["balance"] == str(at["balance"])
    assert await answered(private, "/generators/at/7") == []
