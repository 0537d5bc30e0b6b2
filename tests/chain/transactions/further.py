"""Random transactions of the types beyond the first four, orders and calls, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from soliton.chain import orders
from soliton.chain.function_calls import DEFAULT_CALL, Argument, FunctionCall
from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.transactions import codec, ethereum
from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.commit_to_generation import CommitToGeneration
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.reissue import Reissue
from soliton.chain.transactions.set_asset_script import SetAssetScript
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.sponsor_fee import SponsorFee
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
from soliton.chain.values import MAX_I64
from tests.chain.strategies import (
    aliases_of,
    amounts,
    chain_ids,
    digests,
    longs,
    recipients_of,
    signatures,
    timestamps,
    unicode_texts,
)

VERSIONS = {
    3: (1, 2, 3),
    5: (1, 2, 3),
    6: (1, 2, 3),
    7: (1, 2, 3),
    8: (1, 2, 3),
    9: (1, 2, 3),
    10: (1, 2, 3),
    11: (1, 2),
    13: (1, 2),
    14: (1, 2),
    15: (1, 2),
    16: (1, 2),
    17: (1,),
    19: (1,),
}

assets = st.none() | digests
scripts = st.binary(min_size=1, max_size=60)
proof_lists = st.lists(st.binary(max_size=64), max_size=8).map(tuple)
names = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=4, max_size=16)
prices = st.integers(1, orders.MAX_AMOUNT)


def arguments(depth: int = 1) -> SearchStrategy[Argument]:
    plain: SearchStrategy[Argument] = st.one_of(
        longs, st.booleans(), st.binary(max_size=20), unicode_texts(20)
    )
    if depth == 0:
        return plain
    lists: SearchStrategy[Argument] = st.lists(arguments(depth - 1), max_size=3).map(tuple)
    return plain | lists


def calls(depth: int = 1) -> SearchStrategy[FunctionCall]:
    args = st.lists(arguments(depth), max_size=5).map(tuple)
    made = st.builds(FunctionCall, unicode_texts(20), args)
    return made.filter(lambda call: call != DEFAULT_CALL)


@st.composite
def order_values(
    draw: DrawFn, chain_id: int, version: int | None = None, side: Side | None = None
) -> Order:
    """A well-formed order; in version 4 perhaps of a wallet, whose signature is random."""
    version = draw(st.integers(1, 4)) if version is None else version
    wallet = version == 4 and draw(st.booleans())
    return orders.build(
        Order(
            version=version,
            chain_id=chain_id,
            sender_public_key=b"" if wallet else draw(digests),
            matcher_public_key=draw(digests),
            amount_asset=draw(assets),
            price_asset=draw(assets),
            side=draw(st.sampled_from(Side)) if side is None else side,
            amount=draw(prices),
            price=draw(st.integers(1, MAX_I64)),
            timestamp=draw(timestamps),
            expiration=draw(timestamps),
            matcher_fee=draw(st.integers(1, orders.MAX_AMOUNT - 1)),
            matcher_fee_asset=draw(assets) if version >= 3 else None,
            price_mode=draw(st.sampled_from(PriceMode)) if version >= 4 else PriceMode.DEFAULT,
            attachment=draw(st.none() | st.binary(min_size=1, max_size=50))
            if version >= 4
            else None,
            proofs=(draw(signatures),) if version == 1 else () if wallet else draw(proof_lists),
            eip712_signature=draw(st.binary(min_size=65, max_size=65)) if wallet else None,
        )
    )


@st.composite
def exchanges(draw: DrawFn, version: int, chain_id: int) -> Exchange:
    first, second = (
        draw(order_values(chain_id, draw(st.integers(1, min(4, 2 * version - 1))), side))
        for side in (Side.BUY, Side.SELL)
    )
    return Exchange(first, second, draw(prices), draw(prices), draw(longs), draw(longs))


def payloads(type_id: int, version: int, chain_id: int) -> SearchStrategy[Any]:
    recipients = recipients_of(chain_id)
    text = names.map(str.encode)
    description = unicode_texts(60).map(str.encode)
    items = st.builds(TransferItem, recipients, st.integers(0, 2**50))
    payments = st.builds(Payment, amounts, assets)
    by_type: dict[int, SearchStrategy[Any]] = {
        3: st.builds(
            Issue,
            text,
            description,
            amounts,
            st.integers(0, 8),
            st.booleans(),
            st.none() if version == 1 else st.none() | scripts,
        ),
        5: st.builds(Reissue, digests, amounts, st.booleans()),
        6: st.builds(Burn, digests, st.integers(0, MAX_I64)),
        7: exchanges(version, chain_id),
        8: st.builds(Lease, recipients, st.integers(1, MAX_I64 // 2)),
        9: st.builds(LeaseCancel, digests),
        10: st.builds(CreateAlias, aliases_of(chain_id)),
        11: st.builds(
            MassTransfer,
            assets,
            st.lists(items, max_size=5).map(tuple),
            st.binary(max_size=140),
        ),
        13: st.builds(SetScript, st.none() | scripts),
        14: st.builds(SponsorFee, digests, st.none() | amounts),
        15: st.builds(SetAssetScript, digests, scripts),
        16: st.builds(
            InvokeScript,
            recipients,
            st.none() | calls(),
            st.lists(payments, max_size=3).map(tuple),
        ),
        17: st.builds(UpdateAssetInfo, digests, text, description),
        19: st.builds(
            CommitToGeneration,
            st.integers(0, 2**31 - 1),
            st.binary(min_size=48, max_size=48),
            st.binary(min_size=96, max_size=96),
        ),
    }
    return by_type[type_id]


@st.composite
def further_transactions(
    draw: DrawFn, kinds: tuple[int, ...] = tuple(VERSIONS), chain_id: int | None = None
) -> AnyTransaction:
    """A well-formed transaction of one of these types, with random proofs."""
    chain_id = draw(chain_ids) if chain_id is None else chain_id
    type_id = draw(st.sampled_from(kinds))
    version = draw(st.sampled_from(VERSIONS[type_id]))
    kind = type_by_id(type_id)
    one_signature = version in kind.signature_versions
    return codec.build(
        kind,
        draw(payloads(type_id, version, chain_id)),
        version=version,
        chain_id=chain_id,
        sender_public_key=draw(digests),
        fee=draw(st.integers(1, orders.MAX_AMOUNT)),
        fee_asset_id=draw(assets) if kind.fee_in_asset else None,
        timestamp=draw(timestamps),
        proofs=(draw(signatures),) if one_signature else draw(proof_lists),
    )


@st.composite
def ethereum_transactions(draw: DrawFn) -> AnyTransaction:
    """A transaction that a wallet signed: a transfer or a call."""
    data = draw(st.binary(max_size=80).filter(lambda d: d[:4] != ethereum.TRANSFER_SELECTOR))
    return ethereum.sign(
        draw(st.integers(1, 2**200)).to_bytes(32, "big"),
        chain_id=draw(chain_ids),
        timestamp=draw(timestamps),
        fee=draw(amounts),
        to=draw(st.binary(min_size=20, max_size=20)),
        value=0 if data else draw(amounts) * ethereum.WEI_PER_WAVELET,
        data=data,
    )
