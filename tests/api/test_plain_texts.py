"""Texts of plain transfers: what their records say, and only of what is plain."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from soliton.api.plain_texts import plain_text
from soliton.chain.addresses import Alias, from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from tests.chain.strategies import transactions
from tests.chain.transactions.further import ethereum_transactions, further_transactions

R = ord("R")
KEY, PROOF, ASSET = b"k" * 32, b"p" * 64, b"a" * 32
TO = from_public_key(b"t" * 32, R)


def made(**given: Any) -> AnyTransaction:
    payload = Transfer(
        given.pop("to", TO), given.pop("asset", None), given.pop("amount", 5), b"a note"
    )
    envelope = {"version": 2, "fee": 100_000, "timestamp": 1, "proofs": (PROOF,), **given}
    return codec.build(
        type_by_id(4), payload, chain_id=R, sender_public_key=KEY, **envelope
    )  # fmt: skip


@given(transactions(kinds=(4,)) | transactions() | further_transactions() | ethereum_transactions())
def test_it_says_what_the_record_says(transaction: AnyTransaction) -> None:
    plain = plain_text(codec.encode_protobuf(transaction), transaction.chain_id)
    if plain is not None:
        check(plain, transaction)


def check(plain: Any, transaction: AnyTransaction) -> None:
    assert (plain.id, plain.fee) == (transaction.id, transaction.fee)
    text = msgspec.json.encode(codec.to_json(transaction)).decode()
    assert f"{plain.text}}}" == text


@pytest.mark.parametrize("version", [2, 3])
def test_it_is_used(version: int) -> None:
    transaction = made(version=version)
    plain = plain_text(codec.encode_protobuf(transaction), R)
    assert plain is not None
    check(plain, transaction)


@pytest.mark.parametrize(
    "given",
    [
        {"version": 1},
        {"to": Alias(R, "known")},
        {"asset": ASSET},
        {"fee_asset_id": ASSET},
        {"proofs": ()},
        {"proofs": (PROOF, PROOF)},
    ],
    ids=str,
)
def test_what_is_not_plain(given: dict[str, Any]) -> None:
    assert plain_text(codec.encode_protobuf(made(**given)), R) is None


def test_the_network_is_compared() -> None:
    assert plain_text(codec.encode_protobuf(made()), ord("W")) is None
