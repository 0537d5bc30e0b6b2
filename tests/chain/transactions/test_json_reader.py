"""Transactions as clients send them: what each wrong member is answered with, and hostile JSON."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.transactions import json_reader
from soliton.errors import SolitonError
from tests.chain.strategies import texts

T = ord("T")
KEY = "FM5ojNqW7e9cZ9zhPYGkpSP1Pcd8Z3e3MNKYVS5pGJ8Z"
HERE = "3MzrGSzM8FhSJzgJtUzpCdxVEX4hpH5Mz3Z"
TRANSFER: dict[str, Any] = {
    "type": 4,
    "version": 2,
    "senderPublicKey": KEY,
    "recipient": HERE,
    "amount": 5,
    "fee": 100_000,
    "timestamp": 1,
    "proofs": ["11"],
}
DATA: dict[str, Any] = {
    "type": 12,
    "version": 1,
    "senderPublicKey": KEY,
    "data": [{"key": "k", "type": "integer", "value": 1}],
    "fee": 100_000,
    "timestamp": 1,
}
ABSENT = object()

# Member, its value (Python; `-` leaves it out), the outcome: error class and beginning of words.
TRANSFER_TABLE = """
type        | -                     | JsonFieldErrors obj.type: error.path.missing
type        | "4"                   | JsonFieldErrors obj.type: error.expected.jsnumber
type        | True                  | JsonFieldErrors obj.type: error.expected.jsnumber
type        | 4.5                   | JsonFieldErrors obj.type: error.expected.long
type        | 128                   | JsonFieldErrors obj.type: error.expected.byte
type        | 99                    | UnsupportedTransaction Bad transaction type (99)
type        | 1                     | UnsupportedTransaction Bad transaction type (1) and version
type        | 2                     | UnsupportedTransaction Bad transaction type (2) and version
version     | 0                     | ok
version     | -1                    | ok
version     | 128                   | JsonFieldErrors obj.version: error.expected.byte
version     | -                     | ok
version     | 3                     | ok
version     | 127                   | ok
chainId     | 84                    | ok
chainId     | 87                    | WrongChainId Wrong chain-id. Expected - 84, provided - 87
recipient   | -                     | JsonFieldErrors obj.recipient: error.path.missing
recipient   | None                  | JsonFieldErrors obj.recipient: error.expected.jsstring
recipient   | 5                     | JsonFieldErrors obj.recipient: error.expected.jsstring
recipient   | ""                    | AddressError Wrong addressBytes length
recipient   | "alias:T:name"        | ok
recipient   | "alias:W:name"        | ValueRuleError Address or alias from other network
amount      | -                     | JsonFieldErrors obj.amount: error.path.missing
amount      | "5"                   | JsonFieldErrors obj.amount: error.expected.jsnumber
amount      | 5.5                   | JsonFieldErrors obj.amount: error.expected.long
amount      | 5.0                   | ok
amount      | 10**18 * 1.0          | ok
amount      | 2**63                 | JsonFieldErrors obj.amount: error.expected.long
amount      | 2.0**63               | JsonFieldErrors obj.amount: error.expected.long
amount      | -(2**63) - 1          | JsonFieldErrors obj.amount: error.expected.long
amount      | math.inf              | JsonFieldErrors obj.amount: error.expected.long
amount      | math.nan              | JsonFieldErrors obj.amount: error.expected.long
amount      | 0                     | NonPositiveAmount non-positive amount: 0 of waves
amount      | -1                    | NonPositiveAmount non-positive amount: -1 of waves
amount      | 2**63 - 1             | ok
fee         | -                     | JsonFieldErrors obj.fee: error.path.missing
fee         | 0                     | InsufficientFee insufficient fee
feeAssetId  | None                  | ok
feeAssetId  | ""                    | ok
feeAssetId  | "11"                  | JsonFieldErrors obj.feeAssetId: Invalid validation. Size of
feeAssetId  | "0"                   | JsonFieldErrors obj.feeAssetId: Expected base58-encoded asset
assetId     | 7                     | JsonFieldErrors obj.assetId: Expected base58-encoded asset
attachment  | None                  | ok
attachment  | "1" * 140             | ok
attachment  | "1" * 141             | TooBigInBytes Invalid attachment. Length 141 bytes exceeds
attachment  | "1" * 192             | TooBigInBytes Invalid attachment. Length 192 bytes exceeds
attachment  | "1" * 193             | JsonFieldErrors obj.attachment: base58-encoded string length
attachment  | "base64:AA=="         | ok
attachment  | "base64:"             | ok
attachment  | "base64:!A=="         | JsonFieldErrors obj.attachment: Error parsing base64: Illegal
attachment  | "0"                   | JsonFieldErrors obj.attachment: Error parsing base58: require
attachment  | 5                     | JsonFieldErrors obj.attachment: Expected JsString
timestamp   | -                     | ok
timestamp   | "1"                   | JsonFieldErrors obj.timestamp: error.expected.jsnumber
senderPublicKey | -                 | ValueRuleError invalid.senderPublicKey
senderPublicKey | "1"               | ValueRuleError requirement failed: invalid public key
senderPublicKey | "0"               | PublicKeyError requirement failed: Wrong char
senderPublicKey | "1" * 45          | PublicKeyError Base58 string of 45 characters
senderPublicKey | 5                 | JsonFieldErrors obj.senderPublicKey: error.expected.jsstring
proofs      | None                  | ok
proofs      | "11"                  | JsonFieldErrors obj.proofs: invalid.proofs
proofs      | [5]                   | JsonFieldErrors obj.proofs: expected.string
proofs      | ["1"] * 8             | ok
proofs      | ["1"] * 9             | JsonFieldErrors obj.proofs: invalid.proofs
proofs      | ["1" * 65]            | JsonFieldErrors obj.proofs: invalid.proofs
signature   | ""                    | ok
signature   | "11"                  | ok
signature   | "12"                  | ValueRuleError Both proofs and signature are provided
"""
DATA_TABLE = """
data        | -                     | JsonFieldErrors obj.data: error.path.missing
data        | {}                    | JsonFieldErrors obj.data: error.expected.jsarray
data        | []                    | ok
data        | [5]                   | JsonFieldErrors obj.data[0]: key is missing
data        | [{"key": 5}]          | JsonFieldErrors obj.data[0]: key is missing
data        | [{"key": "a", "value": 5}] | JsonFieldErrors obj.data[0]: type is missing
data        | [{"key": "a"}]        | ValueRuleError Empty data is not allowed in V1
data        | [E("", "boolean", True)]      | ValueRuleError Empty key found
data        | [E("a", "boolean", 1)]        | JsonFieldErrors obj.data[0]: value is missing or not
data        | [E("a", "integer", True)]     | JsonFieldErrors obj.data[0]: value is missing or not
data        | [E("a", "integer", "1")]      | JsonFieldErrors obj.data[0]: value is missing or not
data        | [E("a", "integer", 2**63)]    | JsonFieldErrors obj.data[0]: error.expected.long
data        | [E("a", "integer", -(2**63))] | ok
data        | [E("a", "string", None)]      | JsonFieldErrors obj.data[0]: value is missing or not
data        | [E("a", "binary", "base64:AA==")] | ok
data        | [E("a", "binary", "AA==")]    | ok
data        | [E("a", "binary", "base64:A")] | JsonFieldErrors obj.data[0]: Input byte[] should
data        | [E("a", "number", 1)]         | JsonFieldErrors obj.data[0]: unknown type number
data        | [E("a", "integer", 1), E("a", "string", "")] | ValueRuleError Duplicate keys found
data        | [E("k" * 400, "integer", 1)]  | ok
data        | [E("k" * 401, "integer", 1)]  | TooBigCount Too big sequence requested
data        | [E("k", "string", "s" * 32767)] | ok
data        | [E("k", "string", "s" * 32768)] | TooBigCount Too big sequence requested
data        | [E(str(n), "integer", n) for n in range(100)] | ok
data        | [E(str(n), "integer", n) for n in range(101)] | TooBigCount Too big sequence requested
data        | [E(str(n), "integer", n) for n in range(10001)] | ValueRuleError more than 10000 data
"""


def entry(key: str, kind: str, value: Any) -> dict[str, Any]:
    return {"key": key, "type": kind, "value": value}


def cases(table: str) -> list[tuple[str, Any, str]]:
    rows = []
    for line in table.strip().splitlines():
        member, value, outcome = (cell.strip() for cell in line.split("|"))
        names = {"math": math, "E": entry, "str": str, "range": range}
        rows.append((member, ABSENT if value == "-" else eval(value, names), outcome))
    return rows


def check(base: dict[str, Any], member: str, value: Any, outcome: str) -> None:
    obj = {key: item for key, item in base.items() if key != member}
    if value is not ABSENT:
        obj[member] = value
    try:
        json_reader.read_signed(obj, T)
        found = "ok"
    except SolitonError as error:
        found = f"{type(error).__name__} {error}"
    assert found.startswith(outcome)


@pytest.mark.parametrize(("member", "value", "outcome"), cases(TRANSFER_TABLE))
def test_members_of_a_transfer(member: str, value: Any, outcome: str) -> None:
    check(TRANSFER, member, value, outcome)


@pytest.mark.parametrize(("member", "value", "outcome"), cases(DATA_TABLE))
def test_members_of_a_data_transaction(member: str, value: Any, outcome: str) -> None:
    check(DATA, member, value, outcome)


def test_wrong_shapes_are_reported_together_and_before_wrong_values() -> None:
    obj = TRANSFER | {"recipient": "nobody", "amount": "x", "fee": None}
    with pytest.raises(SolitonError) as caught:
        json_reader.read_signed(obj, T)
    found = getattr(caught.value, "errors", [])
    assert list(map(str, found)) == [
        "obj.fee: error.expected.jsnumber",
        "obj.amount: error.expected.jsnumber",
    ]


@pytest.mark.parametrize("member", ["recipient", "attachment", "assetId", "senderPublicKey"])
def test_text_that_is_no_unicode(member: str) -> None:
    with pytest.raises(SolitonError) as caught:
        json_reader.read_signed(TRANSFER | {member: "\ud800"}, T)
    # The message has to reach the client: it must be text that can be written.
    str(caught.value).encode()


@pytest.mark.parametrize(
    "item", [entry("\ud800", "integer", 1), entry("k", "string", "\udfff"), entry("k", "\ud800", 1)]
)
@pytest.mark.parametrize("version", [1, 2])
def test_entries_that_are_no_unicode(item: dict[str, Any], version: int) -> None:
    with pytest.raises(SolitonError) as caught:
        json_reader.read_signed(DATA | {"data": [item], "version": version}, T)
    str(caught.value).encode()


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.decimals(allow_nan=False),
    texts(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(8), inner, max_size=4),
    max_leaves=12,
)
members = sorted({*TRANSFER, *DATA, "chainId", "feeAssetId", "assetId", "attachment", "signature"})


def refuses_or_reads(obj: dict[str, Any]) -> None:
    try:
        json_reader.read_signed(obj, T)
    except SolitonError as error:
        str(error).encode()


@given(st.dictionaries(st.sampled_from(members) | texts(8), values, max_size=12))
def test_random_objects(obj: dict[str, Any]) -> None:
    refuses_or_reads(obj)


@given(
    st.sampled_from([TRANSFER, DATA]),
    st.dictionaries(st.sampled_from(members), values, min_size=1, max_size=2),
)
def test_one_or_two_random_members(base: dict[str, Any], other: dict[str, Any]) -> None:
    refuses_or_reads(base | other)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["key", "type", "value"]), values, max_size=3), max_size=3
    ),
    st.sampled_from([1, 2, 3]),
)
def test_random_entries(entries: list[dict[str, Any]], version: int) -> None:
    refuses_or_reads(DATA | {"data": entries, "version": version})


def test_deep_nesting() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    for member in members:
        refuses_or_reads(TRANSFER | {member: deep})
