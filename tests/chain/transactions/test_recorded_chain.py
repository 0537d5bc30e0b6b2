"""A recorded chain of the reference node with all types of transactions: bytes of its blocks, and
the answers of its REST interface about every transaction.

Vectors of other sources run in ``test_vectors``; those that its JSON runner leaves out as quirks
are read here from their bytes.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain import blocks
from soliton.chain.addresses import parse_address, recipient_text
from soliton.chain.errors import FormatError
from soliton.chain.ethereum_encoding import selector
from soliton.chain.function_calls import call_json
from soliton.chain.layouts import write_proofs
from soliton.chain.transactions import codec, ethereum, json_reader
from soliton.chain.transactions.ethereum import EthereumCall, EthereumTransfer
from soliton.chain.transactions.invoke_script import PAYMENTS
from soliton.chain.transactions.model import Auth
from soliton.chain.transactions.table import type_by_id
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256
from tests.vectors import load_vectors, report

R = ord("R")
OF_THE_CHAIN = {
    "height",
    "applicationStatus",
    "spentComplexity",
    "stateChanges",
    "status",
    "lease",
    "payload",
}
"""Members of an answer that do not come from the transaction."""


def recorded_blocks(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    offset = 0
    while offset < len(data):
        length = int.from_bytes(data[offset : offset + 4], "big")
        yield data[offset + 4 : offset + 4 + length]
        offset += 4 + length


def test_answers_about_transactions(shared: Path) -> None:
    golden = shared / "golden" / "waves-r"
    found = {}
    for data in recorded_blocks(golden / "blocks-2-82.bin"):
        block = blocks.decode(data, R)
        assert block.data == data
        assert blocks.transactions_root(block.transactions) == block.header.transactions_root
        for transaction in block.transactions:
            codec.validate(transaction)
            found[base58.encode(transaction.id)] = transaction
    with gzip.open(golden / "transactions-info.jsonl.gz") as lines:
        answers = [json.loads(line)["body"] for line in lines]
    seen: Counter[int] = Counter()
    for obj in answers:
        if obj["type"] == 1:
            continue
        transaction = found[obj["id"]]
        expected = {key: value for key, value in obj.items() if key not in OF_THE_CHAIN}
        assert codec.to_json(transaction) == expected
        if obj["type"] != 18:
            assert json_reader.read_signed(obj, R) == transaction
        seen[obj["type"]] += 1
    assert set(seen) == set(range(3, 19))
    report.ran("golden waves-r transactions-info", seen.total())


ABI_TYPES = {"integer": "int64", "boolean": "bool", "string": "string", "binary": "bytes"}


def test_calls_and_transfers_of_ethereum_wallets(shared: Path) -> None:
    path = shared / "golden" / "waves-r" / "transactions-info.jsonl.gz"
    with gzip.open(path) as lines:
        answers = [json.loads(line)["body"] for line in lines]
    kinds = Counter[str]()
    for obj in answers:
        if obj["type"] != 18:
            continue
        action = ethereum.from_rlp(bytes.fromhex(obj["bytes"][2:]), R).payload.action
        expected = obj["payload"]
        kinds[expected["type"]] += 1
        if isinstance(action, EthereumTransfer):
            asset = expected["asset"]
            token = None if asset is None else base58.decode(asset)[:20]
            recipient = parse_address(expected["recipient"], R)
            assert action == EthereumTransfer(token, recipient, expected["amount"])
            continue
        call = expected["call"]
        types = [ABI_TYPES[arg["type"]] for arg in call["args"]]
        assert action.data.startswith(selector(call["function"], types))
        invoke, exact = ethereum.to_invoke(action, call["function"], types)
        assert exact
        assert call_json(invoke.call) == call
        assert PAYMENTS.json.write(invoke.payments) == expected["payment"]
        assert recipient_text(invoke.d_app) == expected["dApp"]
        longer = EthereumCall(action.d_app, action.data + bytes(32))
        with pytest.raises(FormatError, match="unconsumed bytes: 32 remaining"):
            ethereum.to_invoke(longer, call["function"], types)
    assert kinds == {"transfer": 4, "invocation": 2}


def test_bodies_of_real_networks() -> None:
    """Signed bytes alone, with a proof invented for them."""
    proof = bytes(64)
    for vector in load_vectors("tx_real_network"):
        body = bytes.fromhex(vector["body_bytes"])
        form = type_by_id(vector["type"]).binary[vector["version"]]
        stored = {
            Auth.NONE: body,
            Auth.PROOFS: form.lead + body + write_proofs((proof,)),
            Auth.SIGNATURE_FIRST: body[:1] + proof + body,
            Auth.SIGNATURE_LAST: form.stored_head + body[len(form.head) :] + proof,
        }[form.auth]
        transaction = codec.decode_legacy(stored, ord(vector["scheme"]))
        assert transaction.body == body
        assert base58.encode(blake2b256(body)) == vector["body_hash"]


def test_a_call_in_bytes_of_the_reference_node() -> None:
    (vector,) = (v for v in load_vectors("tx_scala_bytes_json") if v["type"] == 16)
    transaction = codec.decode_legacy(bytes.fromhex(vector["binary"]), ord("T"))
    assert base58.encode(transaction.id) == vector["id"]
    assert codec.to_json(transaction)["call"] == vector["json"]["call"]
