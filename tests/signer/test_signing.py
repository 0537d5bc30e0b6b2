"""The transaction that the signer makes: id, proof, fee, and the published example."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.chain import networks
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.data import TYPE, Data
from soliton.chain.values import DataEntry, DataValue
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.hashes import blake2b256
from soliton.crypto.keys import key_pair
from soliton.signer.errors import RequestRefused
from soliton.signer.request import SigningRequest
from soliton.signer.signing import data_fee, sign_data, to_json
from tests.amounts import examples

ZBS = networks.load("zbs-testnet")
WAVES = networks.load("waves-mainnet")
ACCOUNT = key_pair("any words will do")
NOW = 1_700_000_000_000

# 0bsnetwork/developer.0bsnetwork.com docs/signer.md: the values of its example transaction.
PUBLISHED_KEY = "3np4zRL2mjYSFcpTzbGtQzUePAEByxEADgQCPJB7Dguq"
PUBLISHED_ID = "EDoej1N3zEWXs9XGNwBjJHPyQECA577dQfBe2LN5Pvh2"
PUBLISHED_PROOF = (
    "3tXuGRUGbV7xVWTGN79cRtkyrq4XWoN6wGH9KFiFn14P4EJR51LDenfvrP34YUZnXvAg4i7iUa728h1LdVVsjSdd"
)
PUBLISHED_TIME = 1_574_975_434_582
PUBLISHED_ENTRIES = (
    DataEntry("integerVal", 1),
    DataEntry("booleanVal", True),
    DataEntry("stringVal", "hello"),
    DataEntry("binaryVal", bytes([1, 2, 3, 4])),
)


def test_the_published_example_is_reproduced() -> None:
    example = codec.build(
        TYPE,
        Data(PUBLISHED_ENTRIES),
        version=1,
        chain_id=ZBS.chain_id,
        sender_public_key=base58.decode(PUBLISHED_KEY, 44),
        fee=data_fee(ZBS, 124),
        timestamp=PUBLISHED_TIME,
        proofs=(base58.decode(PUBLISHED_PROOF, 88),),
    )
    answer = to_json(example)
    assert len(example.body) == 124
    assert verify(example.sender_public_key, example.body, example.proofs[0])
    assert (answer["id"], answer["fee"]) == (PUBLISHED_ID, 3_000_000)
    assert answer["proofs"] == [PUBLISHED_PROOF]
    members = ["type", "version", "senderPublicKey", "fee", "timestamp", "proofs", "id", "data"]
    assert list(answer) == members
    assert answer["data"] == [
        {"type": "integer", "key": "integerVal", "value": 1},
        {"type": "boolean", "key": "booleanVal", "value": True},
        {"type": "string", "key": "stringVal", "value": "hello"},
        {"type": "binary", "key": "binaryVal", "value": "base64:AQIDBA=="},
    ]


@pytest.mark.parametrize(
    ("network", "length", "fee"),
    [
        ("zbs-testnet", 1, 3_000_000),
        ("zbs-testnet", 1024, 3_000_000),
        ("zbs-mainnet", 1025, 6_000_000),
        ("zbs-mainnet", 2049, 9_000_000),
        ("waves-mainnet", 1024, 100_000),
        ("waves-mainnet", 1025, 200_000),
        ("devnet", 1025, 200_000),
        ("tn-mainnet", 1025, 4_000_000),
    ],
)
def test_fee_is_paid_by_the_started_kib(network: str, length: int, fee: int) -> None:
    assert data_fee(networks.load(network), length) == fee


KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
VALUES: st.SearchStrategy[DataValue] = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=2_000),
    st.binary(max_size=3_000),
)


@settings(max_examples=examples(50))
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=8), st.sampled_from([ZBS, WAVES]))
def test_signed_transactions_hold(values: dict[str, DataValue], network: networks.Network) -> None:
    entries = tuple(DataEntry(key, value) for key, value in values.items())
    transaction = sign_data(SigningRequest(ACCOUNT, entries), network, NOW)
    assert transaction.id == blake2b256(transaction.body)
    assert verify(ACCOUNT.public_key, transaction.body, transaction.proofs[0])
    assert transaction.fee == data_fee(network, len(transaction.body))
    answer = to_json(transaction)
    assert [list(entry) for entry in answer["data"]] == [  # type: ignore[attr-defined]
        ["type", "key", "value"]
    ] * len(entries)
    # What is broadcast is read back as the same transaction.
    assert json_reader.read_signed(answer, network.chain_id) == transaction


@pytest.mark.parametrize(
    ("entries", "path"),
    [
        ([DataEntry("", 1)], "data[0].key"),
        ([DataEntry("a", 1), DataEntry("k" * 401, 1)], "data[1].key"),
        ([DataEntry("k" * 70_000, 1)], "data[0].key"),
        ([DataEntry("a", "v" * 32_768)], "data[0].value"),
        ([DataEntry("a", b"v" * 70_000)], "data[0].value"),
        ([DataEntry("a", 1), DataEntry("a", 2)], "data"),
        ([DataEntry("a", None)], "data"),
    ],
)
def test_rules_of_data_transactions(entries: list[DataEntry], path: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        sign_data(SigningRequest(ACCOUNT, tuple(entries)), ZBS, NOW)
    assert caught.value.answer.status == 422
    assert caught.value.answer.more == {"path": path}
