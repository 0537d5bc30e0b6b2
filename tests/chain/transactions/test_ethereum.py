"""Type 18, Ethereum: what wallets sign, what it means here, and what is refused."""

from __future__ import annotations

import msgspec
import pytest
from coincurve import PublicKey
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.addresses import from_public_key, from_public_key_hash
from soliton.chain.errors import FormatError, UnsupportedTransaction, WrongChainId
from soliton.chain.ethereum_encoding import (
    read_arguments,
    read_rlp_list,
    read_rlp_number,
    rlp_list,
    rlp_number,
    selector,
)
from soliton.chain.transactions import codec, ethereum, json_reader
from soliton.chain.transactions.ethereum import EthereumCall, EthereumTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58, secp256k1
from soliton.crypto.hashes import keccak256
from soliton.errors import SolitonError
from tests.vectors import load_vectors, report

T = ord("T")
SECRET = bytes(range(1, 33))
TO = bytes(range(20))
TOKEN_TRANSFER = ethereum.TRANSFER_SELECTOR + bytes(12) + TO + (77).to_bytes(32, "big")


def made(**members: object) -> AnyTransaction:
    """A good transfer of 5 wavelets, with members changed."""
    values = {"chain_id": T, "timestamp": 1_000, "fee": 100_000, "to": TO, "value": 5 * 10**10}
    return ethereum.sign(SECRET, **{**values, **members})  # type: ignore[arg-type]


def items(transaction: AnyTransaction) -> list[bytes]:
    return read_rlp_list(transaction.payload.encoded)


def test_a_transfer_of_the_native_coin() -> None:
    transaction = made()
    key = secp256k1.public_key(SECRET)
    assert transaction.sender_public_key == key
    assert from_public_key(key, T)[2:22] == keccak256(key)[12:]
    assert transaction.fee == 100_000
    assert transaction.timestamp == 1_000
    assert transaction.payload.action == EthereumTransfer(None, from_public_key_hash(TO, T), 5)
    assert transaction.id == keccak256(transaction.payload.encoded)
    codec.validate(transaction)
    data = codec.encode(transaction)
    assert codec.decode_protobuf(data, T) == transaction
    assert codec.merkle_leaf(transaction) == transaction.payload.encoded
    assert codec.to_json(transaction) == {
        "type": 18,
        "id": base58.encode(transaction.id),
        "fee": 100_000,
        "feeAssetId": None,
        "timestamp": 1_000,
        "version": 1,
        "chainId": T,
        "bytes": "0x" + transaction.payload.encoded.hex(),
        "sender": base58.encode(from_public_key(key, T)),
        "senderPublicKey": base58.encode(key),
    }


def test_a_transfer_of_an_asset_and_a_call() -> None:
    recipient = from_public_key_hash(TO, T)
    transfer = made(value=0, data=TOKEN_TRANSFER, to=bytes(20))
    assert transfer.payload.action == EthereumTransfer(bytes(20), recipient, 77)
    longer = made(value=0, data=TOKEN_TRANSFER + b"more", to=bytes(20))
    assert longer.payload.action == transfer.payload.action
    call = made(value=0, data=b"call")
    assert call.payload.action == EthereumCall(recipient, b"call")
    for transaction in (transfer, longer, call):
        codec.validate(transaction)


@pytest.mark.parametrize(
    ("transaction", "words"),
    [
        (made(fee=0), "InsufficientFee insufficient fee"),
        (made(value=0), "ValueRuleError Transaction cancellation is not supported"),
        (made(data=b"x"), "ValueRuleError Transaction should have either data or value"),
        (made(value=10**10 - 1), "NonPositiveAmount non-positive amount: 0 of waves"),
        (
            made(value=0, data=TOKEN_TRANSFER[:-1] + b"\0"),
            f"NonPositiveAmount non-positive amount: 0 of 0x{TO.hex()}",
        ),
        (made(value=10**10 - 1, fee=0), "InsufficientFee insufficient fee"),
    ],
)
def test_refusals(transaction: AnyTransaction, words: str) -> None:
    with pytest.raises(SolitonError) as caught:
        codec.validate(transaction)
    assert f"{type(caught.value).__name__} {caught.value}" == words


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (1, b"\1", "ValueRuleError Gas price must be 10 Gwei"),
        (6, b"\x1b", "ValueRuleError Legacy transactions are not supported"),
        (7, b"", "ValueRuleError No sender can be recovered from the signature"),
        (6, b"\x1d", "ValueRuleError No sender can be recovered from the signature"),
        (6, rlp_number(2 * 87 + 35), "WrongChainId Wrong chain-id. Expected - 84, provided - 87"),
        (0, rlp_number(2**63), "FormatError a number with more than 64 bits"),
        (2, rlp_number(2**63), "FormatError a number with more than 64 bits"),
        (4, rlp_number(2**63 * 10**10), "FormatError a number with more than 64 bits"),
        (3, b"", "FormatError an Ethereum address of 0 bytes"),
        (0, b"\0\1", "FormatError a number with leading zeros"),
        (8, b"", "ValueRuleError No sender can be recovered from the signature"),
        (8, b"\1" * 10, "FormatError half a signature of 10 bytes"),
        (8, b"\1" * 33, "FormatError half a signature of 33 bytes"),
        (8, b"\0\1", "FormatError a number with leading zeros"),
        (
            6,
            rlp_number(2**63 + 2 * T + 36),
            "WrongChainId Wrong chain-id. Expected - 84, provided - 85",
        ),
    ],
)
def test_damaged_fields(place: int, value: bytes, words: str) -> None:
    fields = items(made())
    fields[place] = value
    with pytest.raises(SolitonError) as caught:
        codec.validate(ethereum.from_rlp(rlp_list(fields), T))
    assert f"{type(caught.value).__name__} {caught.value}" == words


def test_a_signature_of_the_point_at_infinity_has_a_sender() -> None:
    """Anybody can make one, and the reference node has the account of 64 zero bytes send it."""
    good = made()
    fields, number = items(good), int.from_bytes(keccak256(good.body), "big")
    point = PublicKey.from_secret(SECRET).format()
    s = number * pow(int.from_bytes(SECRET, "big"), -1, secp256k1.ORDER) % secp256k1.ORDER
    fields[6:] = [rlp_number(2 * T + 35 + point[0] - 2), point[1:], rlp_number(s)]
    transaction = ethereum.from_rlp(rlp_list(fields), T)
    assert transaction.sender_public_key == bytes(64)
    codec.validate(transaction)


@pytest.mark.parametrize("more", [2**32, 2**40, 2**64, 2**256, 2**64 - 2**32])
def test_higher_bits_of_v_change_the_id_only(more: int) -> None:
    """As in the reference node, anybody can send a wallet's transaction again with another id."""
    good = made()
    fields = items(good)
    fields[6] = rlp_number(good.payload.v + more)
    again = ethereum.from_rlp(rlp_list(fields), T)
    assert again.sender_public_key == good.sender_public_key
    assert again.body == good.body
    assert again.id == keccak256(rlp_list(fields)) != good.id
    codec.validate(again)


def test_the_second_half_of_a_signature_may_be_zero() -> None:
    """Anybody can compute the private key, and the reference node writes it as a byte."""
    good = made()
    fields = [*items(good)[:8], b"\0"]
    transaction = ethereum.from_rlp(rlp_list(fields), T)
    number = -int.from_bytes(keccak256(good.body), "big") * pow(good.payload.r, -1, secp256k1.ORDER)
    secret = (number % secp256k1.ORDER).to_bytes(32, "big")
    assert transaction.sender_public_key == secp256k1.public_key(secret)
    assert codec.encode(transaction).endswith(b"\0")
    codec.validate(transaction)


def test_fields_beyond_and_short_of_nine() -> None:
    fields = items(made())
    for wrong in (fields[:-1], [*fields, b""], []):
        with pytest.raises(FormatError, match="fields"):
            ethereum.from_rlp(rlp_list(wrong), T)


def test_another_chain_and_json() -> None:
    with pytest.raises(WrongChainId):
        codec.decode_protobuf(codec.encode(made()), ord("W"))
    with pytest.raises(UnsupportedTransaction) as caught:
        json_reader.read_signed(codec.to_json(made()), T)
    assert (caught.value.type_id, caught.value.version) == (18, 0)


def test_amounts_of_tokens_beyond_64_bits() -> None:
    with pytest.raises(FormatError, match="64 bits"):
        made(value=0, data=TOKEN_TRANSFER[:36] + (2**63).to_bytes(32, "big"))
    with pytest.raises(FormatError, match="expected at offset"):
        made(value=0, data=TOKEN_TRANSFER[:67])


def test_recorded_transactions() -> None:
    name = "tx_ethereum"
    signed_by_wallets = 0
    for vector in load_vectors(name):
        transaction = ethereum.from_rlp(bytes.fromhex(vector["rlp"]), ord(vector["scheme"]))
        assert codec.encode(transaction).hex() == vector["protobuf_signed"]
        assert codec.merkle_leaf(transaction).hex() == vector["merkle_bytes"]
        if transaction.sender_public_key.hex() == vector["sender_pk"]:
            signed_by_wallets += 1
            assert base58.encode(transaction.id) == vector["id"]
        else:
            report.skipped(name, 0, "sender and id: the test invents a sender")
        report.ran(name, 1)
    assert signed_by_wallets == 1


def test_transactions_of_private_chains() -> None:
    name = "tx_private_chain"
    for vector in load_vectors(name):
        if vector["type"] != 18:
            continue
        data = bytes.fromhex(vector["protobuf_signed"])
        transaction = codec.decode_protobuf(data, ord(vector["scheme"]))
        assert codec.encode(transaction) == data
        assert codec.merkle_leaf(transaction).hex() == vector["rlp"]
        assert base58.encode(transaction.id) == vector["id"]
        assert transaction.sender_public_key.hex() == vector["sender_pk_hex"]
        assert codec.sender_text(transaction) == vector["sender"]
        codec.validate(transaction)
        report.ran(name, 1)


# --- RLP ------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=70), max_size=12))
def test_rlp_round_trip(values: list[bytes]) -> None:
    assert read_rlp_list(rlp_list(values)) == values


@given(st.integers(0, 2**300))
def test_rlp_numbers_round_trip(value: int) -> None:
    assert read_rlp_number(rlp_number(value)) == value


@given(st.binary(max_size=100))
def test_random_rlp(data: bytes) -> None:
    try:
        values = read_rlp_list(data)
    except FormatError:
        return
    assert rlp_list(values) == data


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", b"\xc1", b"\xc2\x81\x01", b"\xc1\xc0", b"\xf8\x01\x01", b"\xff" * 9, b"\xc0\0"],
)
def test_rlp_that_is_none(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_rlp_list(data)


@given(st.integers(0, 8 * 110 - 1))
def test_flipped_bits(place: int) -> None:
    data = bytearray(made().payload.encoded)
    data[place // 8 % len(data)] ^= 1 << place % 8
    try:
        transaction = ethereum.from_rlp(bytes(data), T)
    except SolitonError:
        return
    assert transaction.payload.encoded == bytes(data)
    assert transaction != made()


# --- ABI ------------------------------------------------------------------------------------------


def word(value: int) -> bytes:
    return value.to_bytes(32, "big", signed=True)


def test_selectors_name_function_and_types() -> None:
    signature = b"f(int64,string[],(bytes32,int64)[])"
    assert selector("f", ("int64", "string[]")) == keccak256(signature)[:4]


def test_arguments_of_all_types() -> None:
    types = ("int64", "bool", "bytes", "string", "int64[]", "(bytes32,int64)[]")
    tails = [
        word(2) + b"ab".ljust(32, b"\0"),
        word(3) + "é!".encode().ljust(32, b"\0"),
        word(2) + word(7) + word(-8),
        word(1) + bytes(32) + word(9),
    ]
    heads, place = [word(-5), word(1)], 6 * 32
    for tail in tails:
        heads.append(word(place))
        place += len(tail)
    data = b"".join(heads + tails)
    values = (-5, True, b"ab", "é!", (7, -8), ((bytes(32), 9),))
    assert read_arguments(data, types) == (values, True)
    moved = data[: 5 * 32] + word(place) + data[6 * 32 :] + tails[-1]
    assert read_arguments(moved, types) == (values, False)
    with pytest.raises(FormatError, match="unconsumed bytes: 32 remaining"):
        read_arguments(data + bytes(32), types)
    for end in range(len(data)):
        with pytest.raises(FormatError):
            read_arguments(data[:end], types)


@pytest.mark.parametrize(
    ("data", "types"),
    [
        (word(2**63), ("int64",)),
        (word(-(2**63) - 1), ("int64",)),
        (word(2), ("bool",)),
        (word(32) + word(1) + b"ab".ljust(32, b"\0"), ("bytes",)),
        (word(-1), ("bytes",)),
        (word(32) + word(-1), ("int64[]",)),
        (word(0) * 3, ("uint8",)),
        (word(32) + word(0), ("int64" + "[]" * 9 + "x",)),
        (b"".join([word(32), *[word(1), word(32)] * 12]), ("int64" + "[]" * 12,)),
    ],
)
def test_arguments_that_are_refused(data: bytes, types: tuple[str, ...]) -> None:
    with pytest.raises(FormatError):
        read_arguments(data, types)


@pytest.mark.parametrize(
    ("given", "words", "exact"),
    [
        (b"a\xffb", "a\ufffdb", True),
        (b"\xe2\x82A", "\ufffdA", True),
        (b"\xc0\x80", "\ufffd\ufffd", True),
        (b"\xf5\x90\x80\x80", "\ufffd" * 4, True),
        (b"\xed\xa0\x80.\xed\xbf.\xed\xa0", "\ufffd.\ufffd.\ufffd", True),
        (b"\xff" * 11, "\ufffd" * 11, False),
    ],
)
def test_invalid_text_is_replaced_as_on_the_jvm(given: bytes, words: str, exact: bool) -> None:
    """What the reference's library headlong made of it; it measures the text, not the data."""
    data = word(32) + word(len(given)) + given.ljust(32, b"\0")
    assert read_arguments(data, ("string",)) == ((words,), exact)


def test_the_heads_of_a_tuple_are_read_first() -> None:
    """The last value read has to end the data; nothing else has to be in order."""
    first, second = word(1) + b"a".ljust(32, b"\0"), word(1) + b"b".ljust(32, b"\0")
    types, values = ("bytes", "bytes"), (b"a", b"b")
    assert read_arguments(word(64) + word(128) + first + second, types) == (values, True)
    with pytest.raises(FormatError, match="unconsumed bytes: 64 remaining"):
        read_arguments(word(128) + word(64) + second + first, types)
    with pytest.raises(FormatError, match="unconsumed bytes: 32 remaining"):
        read_arguments(word(0) * 2, ("(bytes32,int64)[]",))


def test_an_array_of_arrays_at_one_place_is_bounded() -> None:
    """A hundred lists that all are the same list of a hundred lists …"""
    count = 100
    level = word(count) + word(count * 32) * count
    data = word(32) + level * 5
    with pytest.raises(FormatError):
        read_arguments(data, ("int64[][][][][]",))


@given(
    st.binary(max_size=400), st.sampled_from(["int64[]", "bytes", "string[]", "(bytes32,int64)[]"])
)
def test_random_calls(data: bytes, kind: str) -> None:
    try:
        values, _ = read_arguments(data, (kind,))
    except FormatError:
        return
    assert len(values) == 1


def test_payload_is_a_value() -> None:
    payload = made().payload
    assert msgspec.structs.replace(payload, v=1) != payload
