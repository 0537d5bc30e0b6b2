"""Questions to the chain, ids, and what hostile objects do to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from soliton.chain import addresses
from soliton.chain.function_calls import FunctionCall
from soliton.chain.proto.transaction_pb2 import SignedTransaction
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto.hashes import blake2b256
from soliton.ride.environment import AssetInfo, BlockInfo, CallContext, Payment
from soliton.ride.errors import EvaluationError, NativeCrash, ThrownError
from soliton.ride.expressions import FIRST_VERSION, LAST_VERSION, Call
from soliton.ride.functions import bodies, catalogue
from soliton.ride.functions.library import implementations
from soliton.ride.values import (
    UNIT,
    BigInt,
    CaseObject,
    Value,
    case_object,
    ride_list,
    ride_tuple,
)
from tests.ride.functions.plain import call
from tests.ride.static_environment import ADDRESS as THIS
from tests.ride.static_environment import StaticEnvironment

CHAIN = ord("T")
ALICE = addresses.from_public_key(b"a" * 32, CHAIN)
ASSET = AssetInfo(b"i" * 32, "coin", "a coin", 100, 2, ALICE, b"a" * 32, True, False, None)


class Chain(StaticEnvironment):
    """One account with an alias, some data and balances."""

    def __init__(self) -> None:
        super().__init__(
            aliases={"alice": ALICE},
            entries={(ALICE, "i"): 7, (ALICE, "b"): True, (ALICE, "y"): b"y", (ALICE, "s"): "s"},
            balances={(ALICE, None): 5, (ALICE, b"i" * 32): 6},
            scripts={ALICE: b"script"},
            assets={b"i" * 32: ASSET},
            blocks={7: BlockInfo(1, 7, 2, b"g", ALICE, b"a" * 32, b"v", ((ALICE, 3),))},
        )


def run(key: int | str, *arguments: Value, version: int = 8) -> Value:
    return call(key, list(arguments), CallContext(Chain(), version))


def address(data: Value) -> CaseObject:
    return case_object("Address", {"bytes": data})


def alias(name: Value) -> CaseObject:
    return case_object("Alias", {"alias": name})


KNOWN = (address(ALICE), alias("alice"))
STRANGE = (
    address(b""),
    address(ALICE[:-1]),
    address(ALICE[:-1] + b"\0"),
    address(addresses.from_public_key(b"a" * 32, ord("W"))),
    alias("nobody"),
    alias("no"),
    alias("Alice"),
)
BROKEN = (address("text"), address(UNIT), alias(b"alice"), alias(1))


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [(1050, "i", 7), (1051, "b", True), (1052, "y", b"y"), (1053, "s", "s")],
)
def test_data(key: int, name: str, value: Value) -> None:
    for recipient in KNOWN:
        assert run(key, recipient, name) == value
        assert run(f"@extrNative({key})", recipient, name) == value
        for other in "ibys".replace(name, "x"):
            assert run(key, recipient, other) is UNIT
    for recipient in STRANGE:
        assert run(key, recipient, name) is UNIT
        with pytest.raises(EvaluationError):
            run(f"@extrNative({key})", recipient, name)
    for recipient in BROKEN:
        with pytest.raises(NativeCrash):
            run(key, recipient, name)
    with pytest.raises(EvaluationError, match="neither Address nor alias"):
        run(key, UNIT, name)
    with pytest.raises(EvaluationError, match="Can't find 'bytes'"):
        run(key, case_object("Address", {}), name)


def test_own_data() -> None:
    chain = Chain()
    chain.entries[THIS, "k"] = 9
    assert call(1055, ["k"], CallContext(chain, 5)) == 9
    assert call(1057, ["k"], CallContext(chain, 5)) is UNIT
    # As in wavesplatform/Waves ``.../ctx/impl/waves/Functions.scala`` (``getDataFromStateF``).
    assert call(1055, [address(ALICE), "i"], CallContext(chain, 5)) == 7
    chain.owner = ASSET
    with pytest.raises(EvaluationError, match="Can't apply"):
        call(1055, ["k"], CallContext(chain, 5))


def test_untouched_data() -> None:
    assert [run(1054, recipient) for recipient in KNOWN] == [False, False]
    assert all(run(1054, recipient) is True for recipient in STRANGE)


def entry(key: Value, value: Value) -> CaseObject:
    return case_object("DataEntry", {"key": key, "value": value})


def test_data_of_lists() -> None:
    entries = ride_list([entry("a", 1), entry("b", b"2"), entry("a", "3"), entry("c", True)])
    assert run(1040, entries, "a") == 1
    assert run(1043, entries, "a") is UNIT
    assert run(1042, entries, "b") == b"2"
    assert run(1041, entries, "c") is True
    assert run(1040, entries, "c") is UNIT
    assert run(1040, entries, "d") is UNIT
    assert run("getInteger", entries, 0) == 1
    assert run("getString", entries, 0) is UNIT
    assert run("@extrUser(getString)", entries, 2) == "3"
    with pytest.raises(EvaluationError, match="out of bounds"):
        run("getString", entries, 4)
    too_long = "k" * 32_768
    assert run(1043, ride_list([entry(too_long, "3")]), too_long) is UNIT
    for broken in (ride_list([1]), ride_list([UNIT]), ride_list([case_object("X", {"key": "a"})])):
        with pytest.raises(NativeCrash):
            run(1040, broken, "a")


def test_balances() -> None:
    for recipient in KNOWN:
        assert run(1003, recipient, UNIT, version=3) == 5
        assert run("wavesBalance", recipient, version=3) == 5
        assert run(1003, recipient, b"i" * 32, version=3) == 6
        assert run(1008, recipient, b"i" * 32) == 6
        details = run(1007, recipient)
        assert isinstance(details, CaseObject)
        assert list(details.fields) == ["available", "regular", "generating", "effective"]
    for recipient in STRANGE:
        for key, more in ((1008, [b"i"]), (1007, [])):
            if key == 1008 and recipient in (STRANGE[0], STRANGE[3]):
                continue
            with pytest.raises(EvaluationError) as caught:
                run(key, recipient, *more)
            assert type(caught.value) is EvaluationError
    with pytest.raises(ThrownError, match="Unexpected recipient type Unit"):
        run(1007, UNIT)


@pytest.mark.parametrize(("key", "version"), [(1003, 3), (1008, 8)])
def test_balance_of_any_bytes(key: int, version: int) -> None:
    """``AddressOrAlias.fromBytes`` of wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/account/Recipient.scala`` throws for bytes that begin
    like neither an address nor an alias, and accepts the addresses of all chains.
    """
    for data in (b"", b"\0" * 26, b"\3"):
        with pytest.raises(NativeCrash, match="Not a valid recipient"):
            run(key, address(data), b"i" * 32, version=version)
    assert run(key, STRANGE[3], b"i" * 32, version=version) == 0
    with pytest.raises(EvaluationError, match=r"^InvalidAddress\(Bad address checksum\)"):
        run(key, STRANGE[2], b"i" * 32, version=version)


def test_balance_of_the_bytes_of_an_alias() -> None:
    name = addresses.Alias(CHAIN, "alice").to_bytes()
    assert run(1008, address(name), b"i" * 32) == 6
    with pytest.raises(EvaluationError):
        run(1007, address(name))
    with pytest.raises(EvaluationError, match=r"Alias 'alias:W:alice' does not exist\."):
        run(1008, address(addresses.Alias(ord("W"), "alice").to_bytes()), b"i" * 32)


def test_script_hash() -> None:
    assert run(1009, KNOWN[0]) == blake2b256(b"script")
    assert all(run(1009, recipient) is UNIT for recipient in STRANGE)


def test_addresses() -> None:
    text = addresses.address_text(ALICE)
    assert run(1060, KNOWN[0]) == KNOWN[0]
    assert run(1060, KNOWN[1]) == KNOWN[0]
    assert run(1060, STRANGE[0]) == STRANGE[0]
    with pytest.raises(EvaluationError, match="does not exist"):
        run(1060, alias("nobody"))
    with pytest.raises(NativeCrash):
        run(1060, alias("no"))
    assert run(1061, KNOWN[0]) == text
    assert run(1062, text) == KNOWN[0]
    assert run("addressFromString", text, version=3) == KNOWN[0]
    assert run("addressFromString", "address:" + text, version=3) == KNOWN[0]
    assert run("@extrUser(addressFromString)", text, version=3) == KNOWN[0]
    foreign = addresses.address_text(addresses.from_public_key(b"a" * 32, ord("W")))
    for wrong in ("", text[:-1], foreign, "1" * 26):
        assert run(1062, wrong) is UNIT
        assert run("addressFromString", wrong, version=3) is UNIT
    # The node's ``Address.fromString`` removes the prefix in all versions.
    assert run(1062, "address:" + text) == KNOWN[0]
    for wrong in ("0", "address:", "address:" + foreign, "address:address:" + text):
        assert run(1062, wrong) is UNIT
    with pytest.raises(EvaluationError, match="Base58"):
        run("addressFromString", "0", version=3)


def test_address_of_a_key() -> None:
    for version in range(1, 6):
        assert run("addressFromPublicKey", b"a" * 32, version=version) == KNOWN[0]
        assert isinstance(run("addressFromPublicKey", b"short", version=version), CaseObject)
    assert run(1063, b"a" * 32) == KNOWN[0]
    assert run(1063, b"a" * 64) == address(addresses.from_public_key(b"a" * 64, CHAIN))
    for size in (0, 31, 33, 65):
        with pytest.raises(EvaluationError, match="length"):
            run(1063, bytes(size))


def test_assets() -> None:
    assert run(1004, b"x") is UNIT
    old, new = run(1004, b"i" * 32, version=3), run(1004, b"i" * 32)
    assert isinstance(old, CaseObject)
    assert isinstance(new, CaseObject)
    assert old.fields["sponsored"] is False
    assert new.fields["minSponsoredFee"] is UNIT
    assert new.fields["name"] == "coin"
    assert len(old.fields) == 8
    assert len(new.fields) == 10


def test_blocks() -> None:
    assert run(1005, 8) is UNIT
    sizes = {}
    for version in range(3, 9):
        block = run(1005, 7, version=version)
        assert isinstance(block, CaseObject)
        sizes[version] = len(block.fields)
        if version >= 7:
            assert block.fields["rewards"] == ride_list([ride_tuple(address(ALICE), 3)])
    assert sizes == {3: 6, 4: 7, 5: 7, 6: 7, 7: 8, 8: 8}
    assert run(1005, 2**32 + 7) == run(1005, 7)


def test_delay() -> None:
    assert run(901, address(b""), 1) == Chain().delay
    with pytest.raises(EvaluationError, match="non-positive"):
        run(901, address(ALICE), 0)
    with pytest.raises(EvaluationError, match="exceeds limit = 26"):
        run(901, address(bytes(27)), 1)
    with pytest.raises(EvaluationError, match="Can't apply"):
        run(901, alias("alice"), 1)


def test_asset_ids() -> None:
    made = run(1090, "name", "description", 5, 2, True)
    assert made == run(1091, "name", "description", 5, 2, True, UNIT, 0)
    expected = blake2b256(
        b"\0\0\0\4name\0\0\0\x0bdescription"
        + (2).to_bytes(4, "big")
        + (5).to_bytes(8, "big")
        + b"\0\1"
        + bytes(8)
        + b"t" * 32
    )
    assert run(1080, made) == expected
    for name, description in (("é" * 9, ""), ("", "é" * 501)):
        with pytest.raises(EvaluationError, match="length should not exceed"):
            run(1080, run(1090, name, description, 5, 2, True))
    assert run(1080, run(1090, "", "", 1, 2**32 + 2, False)) == run(
        1080, run(1090, "", "", 1, 2, False)
    )
    with pytest.raises(NativeCrash):
        run(1080, run(1090, b"", "", 1, 2, False))
    with pytest.raises(NativeCrash):
        run(1080, run(1090, "only a name"))
    with pytest.raises(EvaluationError, match="Can't apply"):
        run(1080, run(1092, KNOWN[0], 1))


def test_lease_ids() -> None:
    tail = b"t" * 32 + bytes(8) + (5).to_bytes(8, "big")
    assert run(1081, run(1092, KNOWN[0], 5)) == blake2b256(ALICE + tail)
    assert run(1081, run(1093, KNOWN[1], 5, 0)) == blake2b256(b"\0\0\0\5alice" + tail)
    assert run(1081, run(1092, address(b"ab"), 5)) == blake2b256(b"ab" + tail)
    for recipient in (address(bytes(27)), alias("a" * 31)):
        with pytest.raises(EvaluationError, match="exceeds limit"):
            run(1081, run(1092, recipient, 5))
    with pytest.raises(ThrownError):
        run(1081, run(1092, UNIT, 5))
    with pytest.raises(NativeCrash):
        run(1081, run(1092, 1, 5))


def a_transfer(amount: int = 5, chain_id: int = CHAIN) -> AnyTransaction:
    recipient = addresses.from_public_key(b"r" * 32, chain_id)
    unsigned = codec.build(
        TRANSFER,
        Transfer(recipient, None, amount, b"note"),
        version=3,
        chain_id=chain_id,
        sender_public_key=b"a" * 32,
        fee=100_000,
        timestamp=1,
        fee_asset_id=b"f" * 32,
    )
    return codec.with_proofs(unsigned, (b"p" * 64,))


def fields_of(value: Value) -> dict[str, Value]:
    assert isinstance(value, CaseObject)
    return value.fields


def test_transfers_from_protobuf() -> None:
    for data in (b"", b"\0", b"\xff" * 100):
        assert run(1070, data) is UNIT
    fields = fields_of(run(1070, codec.encode_protobuf(a_transfer())))
    assert fields["amount"] == 5
    assert fields["sender"] == address(ALICE)
    assert fields["feeAssetId"] == b"f" * 32
    assert fields["bodyBytes"] == a_transfer().body
    assert fields["proofs"] == ride_list([b"p" * 64] + [b""] * 7)
    assert run(1070, codec.encode_protobuf(a_transfer(chain_id=ord("W")))) is UNIT
    assert run(1070, codec.encode_protobuf(a_transfer(amount=0))) is UNIT
    too_long = codec.with_proofs(a_transfer(), (b"p" * 65,))
    assert run(1070, codec.encode_protobuf(too_long)) is UNIT


def changed(**members: Any) -> bytes:
    message = SignedTransaction.FromString(codec.encode_protobuf(a_transfer()))
    for name, value in members.items():
        setattr(message.waves_transaction, name, value)
    return message.SerializeToString()


def test_odd_transfers_from_protobuf() -> None:
    """Read less strictly than transactions of the chain: ``createVanilla`` of wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/protobuf/transaction/PBTransactions.scala``.
    """
    plain = fields_of(run(1070, changed()))
    assert fields_of(run(1070, changed(chain_id=CHAIN + 256))) == plain
    assert run(1070, changed(chain_id=0)) is UNIT
    assert fields_of(run(1070, changed(version=3 + 256))) == plain
    assert fields_of(run(1070, changed(version=200)))["version"] == -56
    for version, start in ((1, b"\4"), (2, b"\4\2")):
        fields = fields_of(run(1070, changed(version=version)))
        body = fields["bodyBytes"]
        assert isinstance(body, bytes)
        assert body.startswith(start + b"a" * 32 + b"\0\1" + b"f" * 32)
        assert body.endswith(b"\0\4note")
        assert fields["id"] == blake2b256(body)
    key = b"e" * 64
    sent = fields_of(run(1070, changed(sender_public_key=key)))
    assert sent["sender"] == address(addresses.from_public_key(key, CHAIN))
    assert run(1070, changed(sender_public_key=b"k")) is UNIT
    with pytest.raises(NativeCrash):
        run(1070, changed(sender_public_key=b""))
    message = SignedTransaction.FromString(changed())
    message.waves_transaction.transfer.amount.asset_id = b"short"
    assert fields_of(run(1070, message.SerializeToString()))["assetId"] == b"short"
    message.waves_transaction.transfer.ClearField("recipient")
    assert run(1070, message.SerializeToString()) is UNIT


def test_transactions() -> None:
    chain = Chain()
    known = a_transfer()
    chain.transactions[known.id] = (known, 17)
    for version in (1, 2):
        context = CallContext(chain, version)
        assert fields_of(call(1000, [known.id], context))["id"] == known.id
        assert call(1000, [b""], context) is UNIT
        assert call(1001, [known.id], context) == 17
    for version in range(3, 9):
        context = CallContext(chain, version)
        assert call(1001, [known.id], context) == 17
        assert call(1001, [b""], context) is UNIT
        assert "proofs" in fields_of(call(1006, [known.id], context))
        assert call(1006, [b""], context) is UNIT
    asset_context = CallContext(chain, 5, asset_script=True)
    assert "proofs" not in fields_of(call(1006, [known.id], asset_context))


def test_a_call_by_its_id() -> None:
    chain = Chain()
    with_arguments = FunctionCall("f", (7, b"x", ("a", "b")))
    seen: list[Value] = [7, b"x", ride_list(["a", "b"])]
    for called, name, arguments in ((with_arguments, "f", seen), (None, "default", [])):
        known = codec.build(
            INVOKE,
            InvokeScript(ALICE, called, ()),
            version=2,
            chain_id=CHAIN,
            sender_public_key=b"a" * 32,
            fee=500_000,
            timestamp=1,
        )
        chain.transactions[known.id] = (known, 17)
        fields = fields_of(call(1000, [known.id], CallContext(chain, 2)))
        assert fields["function"] == name
        assert fields["args"] == ride_list(arguments)
        assert fields["payment"] is UNIT


def payment(asset: Value, amount: Value) -> CaseObject:
    return case_object("AttachedPayment", {"assetId": asset, "amount": amount})


def test_calls_of_dapps() -> None:
    chain = Chain()
    seen: list[object] = []

    def answer(
        dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
        available: int,
        reentrant: bool,
    ) -> tuple[Value, int]:
        seen.append((dapp, function, arguments, payments, available, reentrant))
        return 42, available - 3

    chain.answer = answer
    context = CallContext(chain, 5, remaining=100)
    payments = ride_list([payment(UNIT, 1), payment(b"i", 2)])
    assert implementations(5)[1020]([KNOWN[0], "f", ride_list([1]), payments], context) == 42
    assert context.remaining == 97
    assert implementations(5)[1021]([KNOWN[1], UNIT, ride_list([]), ride_list([])], context) == 42
    assert context.remaining == 94
    assert seen == [
        (ALICE, "f", (1,), (Payment(None, 1), Payment(b"i", 2)), 100, False),
        (ALICE, "default", (), (), 97, True),
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], ThrownError),
        ([1, "f", ride_list([]), ride_list([])], ThrownError),
        ([address(1), "f", ride_list([]), ride_list([])], ThrownError),
        ([alias("nobody"), "f", ride_list([]), ride_list([])], ThrownError),
        ([alias("no"), "f", ride_list([]), ride_list([])], NativeCrash),
        ([KNOWN[0], 1, ride_list([]), ride_list([])], ThrownError),
        ([KNOWN[0], "f", ride_list([]), ride_list([1])], ThrownError),
        ([KNOWN[0], "f", ride_list([]), ride_list([payment(1, 1)])], ThrownError),
        ([KNOWN[0], "f", ride_list([]), ride_list([payment(UNIT, BigInt(1))])], ThrownError),
        ([KNOWN[0], "f", ride_list([]), 1], EvaluationError),
        ([KNOWN[0], "f", ride_list([])], EvaluationError),
        ([KNOWN[0], "f", 1, ride_list([])], NativeCrash),
    ],
)
def test_wrong_calls_of_dapps(arguments: Sequence[Value], error: type[EvaluationError]) -> None:
    with pytest.raises(EvaluationError) as caught:
        implementations(5)[1020](arguments, CallContext(Chain(), 5, remaining=100))
    assert type(caught.value) is error


def test_any_function_called_with_anything() -> None:
    """Compiled scripts come from strangers: nothing but the errors of this package comes out."""
    samples: list[Value] = [
        0,
        -1,
        2**63 - 1,
        True,
        "",
        "alice",
        b"",
        bytes(40_000),
        BigInt(-1),
        UNIT,
        ride_list([]),
        ride_list([1, "a", b"", UNIT]),
        KNOWN[0],
        KNOWN[1],
        BROKEN[0],
        case_object("Down", {}),
        case_object("Sha256", {}),
        case_object("Issue", {}),
        case_object("Lease", {"recipient": KNOWN[0]}),
        case_object("Tuple", {}),
    ]
    for version in range(FIRST_VERSION, LAST_VERSION + 1):
        for function in catalogue.functions(version):
            if not isinstance(function.key, int):
                continue
            for shift in range(len(samples)):
                for count in {0, 1, len(function.arguments), len(function.arguments) + 1}:
                    arguments = [
                        samples[(shift * (place + 1)) % len(samples)] for place in range(count)
                    ]
                    try:
                        call(function.key, arguments, CallContext(Chain(), version))
                    except EvaluationError as error:
                        assert str(error) or function.key == 2  # noqa: PT017 - any of them will do


def test_every_function_is_there() -> None:
    for version in range(FIRST_VERSION, LAST_VERSION + 1):
        keys = set(catalogue.costs(version))
        numbers = {key for key in keys if isinstance(key, int)}
        assert set(implementations(version)) == numbers
        assert set(bodies.named_functions(version, CHAIN)) == keys - numbers


def test_messages_of_value() -> None:
    with pytest.raises(EvaluationError, match="value\\(\\) called on unit value"):
        run("value", UNIT)
    with pytest.raises(EvaluationError, match="extract\\(\\) called on unit value"):
        run("extract", UNIT, version=3)
    assert run("valueOrElse", UNIT, 1) == 1
    assert run("valueOrElse", 2, 1) == 2
    with pytest.raises(EvaluationError, match=r"^told$"):
        run("valueOrErrorMessage", UNIT, "told")
    call_of_data = Call(1050, ())
    assert bodies.missing_value_message(call_of_data, [KNOWN[0], "k"]) == (
        f"value by key 'k' not found for the address base58'{addresses.address_text(ALICE)}' "
        "on function 'getIntegerValue' call"
    )
