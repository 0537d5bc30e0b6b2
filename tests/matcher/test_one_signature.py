"""One signature is good for one order, whatever form it is given: while the order is on its way, in
a book, finished, and after a restart. What the chain takes is another matter, and not narrowed.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec
import pytest

from soliton.chain import orders, typed_data
from soliton.chain.addresses import from_public_key
from soliton.chain.orders import Order, PriceMode, Side
from soliton.crypto import secp256k1
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.commands import CancelSource
from soliton.matching.errors import ErrorKind, MatcherError
from tests.matcher.kit import (
    ALICE,
    BOB,
    CHAIN_ID,
    COIN,
    FEE,
    LIFETIME_MS,
    MATCHER,
    PAIR,
    USD,
    FakeNode,
    address_of,
    make_order,
    running,
    settings_in,
)
from tests.storage.rows import change_rows, read_rows

WALLET = bytes(range(1, 33))
WALLET_KEY = secp256k1.public_key(WALLET)
PRICE = 250
CURVE25519_ORDER = 2**252 + 27742317777372353535851937790883648493
DUPLICATE, NO_SIGNATURE = errors.ORDER_DUPLICATE, errors.ORDER_INVALID_SIGNATURE


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode()
    for keys in (ALICE, BOB):
        node.fund(keys)
    node.balances[from_public_key(WALLET_KEY, CHAIN_ID)] = {None: 10**6 * COIN, USD: 10**12}
    return node


def wallet_order(amount: int = COIN) -> Order:
    """As MetaMask and ethers give it: ``r``, low ``s``, and 27 or 28."""
    now = time.time_ns() // 1_000_000
    draft = Order(
        version=4,
        chain_id=CHAIN_ID,
        sender_public_key=b"",
        matcher_public_key=MATCHER.public_key,
        amount_asset=PAIR.amount_asset,
        price_asset=PAIR.price_asset,
        side=Side.SELL,
        amount=amount,
        price=PRICE,
        timestamp=now,
        expiration=now + LIFETIME_MS,
        matcher_fee=FEE,
        price_mode=PriceMode.ASSET_DECIMALS,
    )
    r, s, recovery_id = secp256k1.sign(WALLET, typed_data.order_hash(draft))
    order = with_signature(draft, packed(r, s, 27 + recovery_id))
    assert order.sender_public_key == WALLET_KEY
    return order


def packed(r: int, s: int, v: int, size: int = 32) -> bytes:
    return r.to_bytes(size, "big") + s.to_bytes(size, "big") + bytes((v,))


def with_signature(order: Order, signature: bytes) -> Order:
    return orders.build(msgspec.structs.replace(order, eip712_signature=signature))


def other_forms(order: Order) -> dict[str, Order]:
    """The same signature in all ways that the chain reads it."""
    assert order.eip712_signature is not None
    r = int.from_bytes(order.eip712_signature[:32], "big")
    s = int.from_bytes(order.eip712_signature[32:64], "big")
    v = order.eip712_signature[64]
    high = secp256k1.ORDER - s
    forms = {
        "plain recovery id": packed(r, s, v - 27),
        "EIP-155": packed(r, s, v + 8 + 2 * CHAIN_ID),
        "high s": packed(r, high, 55 - v),
        "high s, plain": packed(r, high, 28 - v),
        "129 bytes": packed(r, s, v, 64),
        "129 bytes, plain": packed(r, s, v - 27, 64),
        "s beyond the order": packed(r, s + secp256k1.ORDER, v, 64),
    }
    return {name: with_signature(order, signature) for name, signature in forms.items()}


async def refusal(matcher: Matcher, order: Order) -> ErrorKind | None:
    try:
        await matcher.placing.place(order, market=False)
    except MatcherError as error:
        return error.kind
    return None


async def test_one_canonical_form_of_a_wallets_signature_is_taken(
    tmp_path: Path, node: FakeNode
) -> None:
    order = wallet_order()
    async with running(settings_in(tmp_path), node) as matcher:
        for name, other in other_forms(order).items():
            assert other.sender_public_key == WALLET_KEY, f"the chain reads {name}"
            assert other.id != order.id
            with pytest.raises(MatcherError) as refused:
                await matcher.placing.place(other, market=False)
            assert refused.value.kind is NO_SIGNATURE
            assert "65 bytes" in refused.value.message
            assert "27 or 28" in refused.value.message
        assert await refusal(matcher, order) is None


async def test_what_was_signed_once_is_placed_once(tmp_path: Path, node: FakeNode) -> None:
    """Whoever signs the same again gives another signature of the same order."""
    settings, order = settings_in(tmp_path), wallet_order()
    again = signed_again(order)
    assert again.id != order.id and again.sender_public_key == WALLET_KEY
    async with running(settings, node) as matcher:
        first, second = await asyncio.gather(refusal(matcher, order), refusal(matcher, again))
        assert {first, second} == {None, DUPLICATE}
        assert await refusal(matcher, again) is DUPLICATE
        await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
        assert await refusal(matcher, again) is DUPLICATE
        assert await refusal(matcher, order) is DUPLICATE
    for with_snapshot in (True, False):
        if not with_snapshot:
            for path in (tmp_path / "snapshots").iterdir():
                path.unlink()
        async with running(settings, node) as matcher:
            assert await refusal(matcher, again) is DUPLICATE
            assert await refusal(matcher, order) is DUPLICATE
            assert len(matcher.database.trades(PAIR, 9)) == 1


async def test_what_was_executed_before_that_was_noted_is_known(
    tmp_path: Path, node: FakeNode
) -> None:
    """Its signature is on the chain: anybody could bring it back in another form."""
    settings, order = settings_in(tmp_path), wallet_order()
    async with running(settings, node) as matcher:
        assert await refusal(matcher, order) is None
        await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
        assert len(matcher.database.trades(PAIR, 9)) == 1
    # As an earlier version has left it, which did not note what wallets sign.
    orders = tmp_path / "orders"
    noted = [key for key in read_rows(orders) if key.startswith(b"e") or key == b"msigned"]
    change_rows(orders, dict.fromkeys(noted))
    for _ in range(2):
        async with running(settings, node) as matcher:
            assert await refusal(matcher, signed_again(order)) is DUPLICATE


def signed_again(order: Order) -> Order:
    """With another random number than that of RFC 6979."""
    digest = int.from_bytes(typed_data.order_hash(order), "big")
    nonce, key = 0xC0FFEE, int.from_bytes(WALLET, "big")
    point = secp256k1.public_key(nonce.to_bytes(32, "big"))
    r, parity = int.from_bytes(point[:32], "big"), point[63] & 1
    s = pow(nonce, -1, secp256k1.ORDER) * (digest + r * key) % secp256k1.ORDER
    if s > secp256k1.ORDER // 2:
        s, parity = secp256k1.ORDER - s, 1 - parity
    return with_signature(order, packed(r, s, 27 + parity))


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_another_form_of_a_curve_signature_is_no_other_order(
    tmp_path: Path, node: FakeNode, version: int
) -> None:
    """The id does not depend on proofs: adding the order of the curve to S, the high bits, further
    proofs, a new signature are all the same order.
    """
    order = make_order(ALICE, Side.SELL, COIN, PRICE, version=version)
    proof = order.proofs[0]
    s = int.from_bytes(proof[32:], "little")
    shifted = proof[:32] + (s + CURVE25519_ORDER).to_bytes(32, "little")
    flipped = proof[:63] + bytes((proof[63] ^ 0x60,))
    async with running(settings_in(tmp_path), node) as matcher:
        assert await refusal(matcher, order) is None
        resigned = orders.sign(msgspec.structs.replace(order, proofs=()), ALICE.private_key)
        assert resigned.id == order.id and await refusal(matcher, resigned) is DUPLICATE
        for proofs in ((shifted,), (flipped,), (proof, proof), (proof, b""), ()):
            other = msgspec.structs.replace(order, proofs=proofs)
            assert await refusal(matcher, other) in (DUPLICATE, NO_SIGNATURE), proofs
        await matcher.canceling.cancel(order.id, address_of(ALICE), CancelSource.REQUEST)
        assert await refusal(matcher, order) is DUPLICATE
