"""Signatures that were verified before: the pool does not verify these again, but all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger import rules
from soliton.ledger.errors import InvalidSignature
from soliton.node.chain_writer import ChainWriter
from soliton.node.pool import UtxPool
from soliton.node.signatures import signed_messages, verified_messages
from tests.node.chains import mine, now
from tests.node.pools import refresh
from tests.node.scenario import ALL_VERSIONS, Scenario

EXCHANGE = 7
FROM_WALLET = 18


@pytest.fixture
def pool(chain: ChainWriter) -> UtxPool:
    return UtxPool(chain, lambda: now(chain), 1_000, 10_000_000)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[SignedMessage]:
    """What is verified, in order."""
    calls: list[SignedMessage] = []
    usual = curve25519.verify

    def verify(*message: bytes) -> bool:
        calls.append(message)  # type: ignore[arg-type]
        return usual(*message)

    monkeypatch.setattr(curve25519, "verify", verify)
    return calls


def each_of(chain: ChainWriter, pool: UtxPool) -> Iterator[AnyTransaction]:
    """Transactions of all types and versions, each on top of those before it."""
    for batch in Scenario(chain, ALL_VERSIONS, 0).batches():
        for transaction in batch:
            if transaction.type_id != FROM_WALLET:
                yield transaction
        mine(chain, batch)
        refresh(pool, (each.id for each in batch))


def test_all_types_are_verified_once(
    chain: ChainWriter, pool: UtxPool, verified: list[SignedMessage]
) -> None:
    seen: dict[int, set[int]] = {}
    for transaction in each_of(chain, pool):
        messages = signed_messages(transaction)
        assert messages[0][1] == transaction.body
        assert verified_messages(transaction) == messages
        verified.clear()
        pool.add(transaction, verified=messages)
        assert verified == []
        seen.setdefault(transaction.type_id, set()).add(len(messages))
        refresh(pool)
    # An order that a wallet has signed tells who made it: nothing is left to be verified.
    assert seen.pop(EXCHANGE) == {2, 3}
    assert len(seen) >= 12
    assert all(counts == {1} for counts in seen.values())


def exchange(chain: ChainWriter, pool: UtxPool) -> AnyTransaction:
    return next(each for each in each_of(chain, pool) if each.type_id == EXCHANGE)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_what_was_not_verified_before_is_verified(
    chain: ChainWriter, pool: UtxPool, verified: list[SignedMessage], known: int
) -> None:
    transaction = exchange(chain, pool)
    messages = signed_messages(transaction)
    pool.add(transaction, verified=messages[:known])
    assert set(messages[known:]) <= set(verified)


@pytest.mark.parametrize("place", [0, 1])
def test_a_bad_signature_besides_verified_ones(
    chain: ChainWriter, pool: UtxPool, place: int
) -> None:
    transaction = exchange(chain, pool)
    both = list(transaction.payload.orders)
    both[place] = msgspec.structs.replace(both[place], proofs=(bytes(64),))
    names = ("order1", "order2")
    payload = msgspec.structs.replace(transaction.payload, **dict(zip(names, both, strict=True)))
    bad = msgspec.structs.replace(transaction, payload=payload)
    good = tuple(each for each in signed_messages(bad) if curve25519.verify(*each))
    assert len(good) == 2
    assert verified_messages(bad) == ()
    with pytest.raises(InvalidSignature):
        pool.add(bad, verified=good)


def test_other_proofs_are_left_to_the_rules(chain: ChainWriter, pool: UtxPool) -> None:
    transaction = exchange(chain, pool)
    assert signed_messages(codec.with_proofs(transaction, ())) == ()
    assert signed_messages(codec.with_proofs(transaction, transaction.proofs * 2)) == ()
    order = msgspec.structs.replace(transaction.payload.order1, proofs=())
    payload = msgspec.structs.replace(transaction.payload, order1=order)
    assert signed_messages(msgspec.structs.replace(transaction, payload=payload)) == ()


def test_a_type_that_does_not_tell_is_left_to_the_rules(
    chain: ChainWriter, pool: UtxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = exchange(chain, pool)
    silent: Any = msgspec.structs.replace(rules.rules_of(EXCHANGE), signed=None)
    monkeypatch.setitem(rules._RULES, EXCHANGE, silent)
    assert signed_messages(transaction) == ()
