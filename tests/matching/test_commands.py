"""Commands as bytes: round trips, fixed bytes, and bytes that nobody wrote."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from soliton.chain.addresses import from_public_key
from soliton.chain.errors import ChainError, FormatError
from soliton.chain.orders import Side
from soliton.crypto.hashes import blake2b256
from soliton.matching.commands import (
    MAX_COMMAND_BYTES,
    CancelAllOrders,
    CancelOrder,
    CancelSource,
    Command,
    CorrectedSide,
    CorrectExecution,
    DeleteOrderBook,
    PlaceMarketOrder,
    PlaceOrder,
    decode,
    encode,
)
from soliton.matching.pairs import AssetPair
from tests.matching.makers import CHAIN_ID, FEE_ASSET, PAIR, PRICE_ASSET, account, make_order

OWNER = from_public_key(account("alice"), CHAIN_ID)
ORDERS = [
    make_order(
        Side.SELL,
        7,
        2**63 - 1,
        version=version,
        pair=AssetPair(None, PRICE_ASSET),
        fee_asset=FEE_ASSET if version > 2 else None,
    )
    for version in (1, 2, 3, 4)
]
BUYS = [
    make_order(Side.BUY, 7, 2**63 - 1, version=version, pair=AssetPair(None, PRICE_ASSET))
    for version in (1, 2, 3, 4)
]
COMMANDS: list[Command] = [
    *(PlaceOrder(order) for order in ORDERS),
    *(PlaceMarketOrder(order, 2**63 - 1, 0, 1) for order in ORDERS),
    *(PlaceMarketOrder(order, 7, whole_units=True) for order in ORDERS),
    PlaceOrder(ORDERS[0], 5, None),
    PlaceOrder(ORDERS[0], None, 5),
    PlaceOrder(ORDERS[0], 2**63 - 1, 3),
    *(CancelOrder(PAIR, blake2b256(b"id"), source) for source in CancelSource),
    CancelOrder(AssetPair(PRICE_ASSET, None), blake2b256(b"id"), CancelSource.REQUEST, OWNER),
    CancelAllOrders(PAIR),
    DeleteOrderBook(AssetPair(None, PRICE_ASSET)),
    *(
        CorrectExecution(
            *(2**63 - 1, 70_000, stands, 7, 2**63 - 1, 1, 2),
            CorrectedSide(sell, True, False, stands, -5, 0, 1 << 130, 1, 2),
            CorrectedSide(buy, False, True, True, 7, 3, 0, None, 2),
            last_trade,
        )
        for sell, buy in zip(ORDERS, BUYS, strict=True)
        for stands, last_trade in ((False, None), (True, (5, 6, Side.SELL)))
    ),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_round_trip(command: Command) -> None:
    data = encode(command)
    assert decode(data) == command
    assert len(data) < MAX_COMMAND_BYTES


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_cut_and_longer_bytes_are_refused(command: Command) -> None:
    data = encode(command)
    for end in range(len(data)):
        cut = data[:end]
        # A cancellation may end before its owner.
        if isinstance(command, CancelOrder) and command.owner and end == len(data) - 26:
            continue
        try:
            decoded = decode(cut)
        except ChainError:
            continue
        # A message may end between its fields: what is left is another order, never the same.
        assert isinstance(decoded, PlaceOrder | PlaceMarketOrder)
        assert decoded.order.version == 4
        assert decoded != command
    with pytest.raises(ChainError):
        decode(data + b"\0")


def test_records_keep_their_bytes() -> None:
    """What is in a journal is read by later versions."""
    pair = "01" + PAIR.amount_asset.hex() + "01" + PRICE_ASSET.hex()  # type: ignore[union-attr]
    order_id = blake2b256(b"id")
    cancel = CancelOrder(PAIR, order_id, CancelSource.EXPIRATION, OWNER)
    assert encode(cancel).hex() == "010302" + pair + order_id.hex() + OWNER.hex()
    assert encode(CancelAllOrders(PAIR)).hex() == "0104" + pair
    assert encode(DeleteOrderBook(PAIR)).hex() == "0105" + pair
    first = ORDERS[0]
    placed = encode(PlaceOrder(first, None, 5)).hex()
    assert placed == "01010200000000000000050144" + first.body.hex() + first.proofs[0].hex()
    market = encode(PlaceMarketOrder(first, 9)).hex()
    assert market == "01020000000000000000090144" + first.body.hex() + first.proofs[0].hex()
    market = encode(PlaceMarketOrder(first, 9, whole_units=True)).hex()
    assert market == "01060000000000000000090144" + first.body.hex() + first.proofs[0].hex()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1",
        b"\2\4",
        b"\1\0",
        b"\1\6",
        b"\1\3\4" + bytes(100),
        b"\1\4\2",
        b"\1\1\4",
        b"\1\1\0\5\x44",
        b"\1\2\0" + b"\xff" * 8,
        b"\1\1\1" + b"\xff" * 8,
        bytes(MAX_COMMAND_BYTES + 1),
    ],
)
def test_hostile_bytes(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode(data)


@given(st.binary(max_size=400), st.integers(1, 5))
def test_any_bytes_are_read_or_refused(data: bytes, kind: int) -> None:
    try:
        command = decode(bytes((1, kind)) + data)
    except ChainError:
        return
    assert decode(encode(command)) == command


@given(st.sampled_from(COMMANDS), st.integers(0, MAX_COMMAND_BYTES), st.integers(1, 255))
@example(PlaceOrder(ORDERS[3]), 5, 24)
def test_changed_bytes_are_read_or_refused(command: Command, place: int, change: int) -> None:
    record = bytearray(encode(command))
    record[place % len(record)] ^= change
    try:
        changed = decode(bytes(record))
    except ChainError:
        return
    # The chain id is the one of the record's head. That of the protobuf message of the order, its
    # first field, is ignored.
    head = encode(command).find(bytes((4, CHAIN_ID, 8, CHAIN_ID)))
    assert changed != command or (head > 0 and place % len(record) - head in (2, 3))
    assert decode(encode(changed)) == changed


@pytest.mark.parametrize("units", [-1, 2**63])
def test_values_that_do_not_fit(units: int) -> None:
    with pytest.raises(FormatError):
        encode(PlaceMarketOrder(ORDERS[0], units))
    with pytest.raises(FormatError):
        encode(PlaceOrder(ORDERS[0], units))
