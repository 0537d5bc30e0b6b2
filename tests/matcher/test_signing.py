"""Exchange transactions get their signature later, but no later than somebody needs it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import curve25519
from soliton.matcher.orders_db import OrdersDatabase, PendingRecord
from soliton.matcher.signing import ExchangeSigner
from soliton.parallel.signatures import SIGN_SECONDS, SignatureChecker
from tests.matcher.kit import CHAIN_ID, MATCHER, unsigned_transfer


def is_signed(transaction: AnyTransaction) -> bool:
    (proof,) = transaction.proofs
    return curve25519.verify(MATCHER.public_key, transaction.body, proof)


async def until_told() -> None:
    """Signatures wait a little for others, and are told behind what is under way."""
    await asyncio.sleep(3 * SIGN_SECONDS)


async def test_each_is_told_once_with_its_signature() -> None:
    done: list[AnyTransaction] = []
    signer = ExchangeSigner(MATCHER, SignatureChecker(beside=False), done.append)
    drafts = [unsigned_transfer(number) for number in range(4)]
    signer.sign(drafts[0])
    assert done == []
    await until_told()
    assert [each.id for each in done] == [drafts[0].id]
    for each in drafts[1:]:
        signer.sign(each)
    signer.finish()
    signer.finish()
    await until_told()
    assert [each.id for each in done] == [each.id for each in drafts]
    assert all(map(is_signed, done))


async def test_the_database_has_all_when_it_is_asked_or_written(tmp_path: Path) -> None:
    database = OrdersDatabase(tmp_path, "matcher", CHAIN_ID, 3, durable=False)
    checker = SignatureChecker(beside=False)
    signer = ExchangeSigner(MATCHER, checker, database.put_transaction)
    database.complete = signer.finish
    asked, listed, written = (unsigned_transfer(number) for number in range(3))
    signer.sign(asked)
    found = database.transaction(asked.id)
    assert found is not None and is_signed(found)
    signer.sign(listed)
    assert set(database.pending()) == {asked.id, listed.id}
    signer.sign(written)
    await database.flush()
    # A process that ends now leaves this behind.
    database.complete = lambda: None
    database._fresh.clear()
    assert database.pending() == {
        each.id: PendingRecord(1, fee=100_000) for each in (asked, listed, written)
    }
    found = database.transaction(written.id)
    assert found is not None and is_signed(found)
    await database.close()
