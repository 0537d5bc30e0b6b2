"""Accounts with keys of Ethereum's: what they make is taken by a node, read back, and refused in
the same words as everything else. That the bytes are those of Ethereum's own libraries is for
``tests/clients/test_web3``.
"""

from __future__ import annotations

import json

import pytest

from soliton import Account, AsyncNode, EthereumAccount, Node, NodeRefused, Transaction
from soliton.errors import InputError
from tests.e2e.programs import Program

KEY = "0x" + "05" * 32
ASSET = "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"
COIN = 10**8
FEE, CALL_FEE = 100_000, 500_000
DAPP = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func keep(key: String, numbers: List[Int], flag: Boolean, bytes: ByteVector) = [
  IntegerEntry(key, numbers[1]), BooleanEntry("flag", flag), BinaryEntry("bytes", bytes),
  IntegerEntry("paid", i.payments[0].amount), BinaryEntry("caller", i.caller.bytes)
]
@Callable(i)
func default() = throw("not like this")
"""


@pytest.fixture(scope="module")
def wallet(node: Node, accounts: list[Account]) -> EthereumAccount:
    wallet = EthereumAccount(KEY, node.chain_id)
    node.send(accounts[0].transfer(wallet, 10 * COIN)).wait()
    return wallet


@pytest.mark.slow
def test_coins_and_assets(node: Node, wallet: EthereumAccount, accounts: list[Account]) -> None:
    alice, bob = accounts[:2]
    before, own = node.balance(bob), node.balance(wallet)
    sent = node.send(wallet.transfer(bob, "1.5"))
    assert sent.wait().application_status == "succeeded"
    assert node.balance(bob) - before == 3 * COIN // 2
    assert own - node.balance(wallet) == 3 * COIN // 2 + FEE
    found = node.transaction(sent.id)
    assert (found.type, found.sender) == (18, wallet.address)
    gold = node.send(alice.issue("Gold", 1_000, decimals=2)).wait().asset_id
    assert gold is not None
    node.send(alice.transfer(wallet, 700, gold)).wait()
    node.send(wallet.transfer(EthereumAccount("06" * 32, "R").ethereum_address, 300, gold)).wait()
    assert node.balance(EthereumAccount(b"\6" * 32, "R"), gold) == 300
    assert node.balance(wallet, gold) == 400


@pytest.mark.slow
def test_calls(node: Node, wallet: EthereumAccount, accounts: list[Account]) -> None:
    dapp = accounts[2]
    node.send(dapp.set_script(node.compile(DAPP).script)).wait()
    call = wallet.invoke(dapp, "keep", "n", [1, -2], True, b"\1\2", payments=[("0.1", None)])
    mined = node.send(call).wait()
    assert mined.application_status == "succeeded"
    assert node.data(dapp) == {
        "n": -2,
        "flag": True,
        "bytes": b"\1\2",
        "paid": COIN // 10,
        "caller": wallet.address_bytes,
    }
    with pytest.raises(NodeRefused, match="not like this"):
        node.send(wallet.invoke(dapp))
    with pytest.raises(NodeRefused, match="balance"):
        node.send(wallet.transfer(dapp, 1_000 * COIN))


@pytest.mark.slow
def test_a_fee_and_a_time_are_found_out(
    node: Node, wallet: EthereumAccount, accounts: list[Account]
) -> None:
    made = wallet.transfer(accounts[0], 1)
    early = made.renewed(timestamp=made.timestamp - 10**9, is_choice=True)
    low = early.renewed(fee=1, is_choice=True)
    assert low.can_be_renewed and low.id != made.id
    sent = node.send(low)
    assert sent.transaction.fee == FEE
    sent.wait()
    with pytest.raises(NodeRefused, match="minimal value"):
        node.send(wallet.transfer(accounts[0], 1, fee=1))
    with pytest.raises(NodeRefused, match="already in the state"):
        node.send(Transaction.from_json(sent.transaction.to_json(), "R"))


@pytest.mark.slow
async def test_the_same_for_who_awaits(
    program: Program, wallet: EthereumAccount, accounts: list[Account]
) -> None:
    async with AsyncNode(program.node_url) as node:
        sent = await node.send(wallet.transfer(accounts[0], 2))
        assert (await sent.wait()).application_status == "succeeded"


def test_all_forms() -> None:
    wallet = EthereumAccount(KEY, "R")
    made = wallet.transfer(wallet, 7, timestamp=1_600_000_000_000)
    assert (made.type, made.type_name, made.fee, made.is_signed) == (18, "ethereum", FEE, True)
    assert made.sender == wallet.address and made.sender_public_key == wallet.public_key
    assert Transaction.from_json(json.dumps(made.to_json()), "R") == made
    assert Transaction.from_protobuf(made.to_protobuf(), "R") == made
    assert Transaction.from_bytes(made.to_bytes(), "R") == made
    assert wallet.invoke(wallet, fee="0.01").fee == COIN // 100
    assert wallet.invoke(wallet).fee == CALL_FEE
    assert KEY[2:] not in repr(wallet) + str(wallet)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda _: EthereumAccount("0x12", "R"), "not a private key"),
        (lambda _: EthereumAccount("zz" * 32, "R"), "not a private key"),
        (lambda _: EthereumAccount(bytes(32), "R"), "not a private key"),
        (lambda it: it.transfer("0x12", 1), "not an Ethereum address"),
        (lambda it: it.transfer("alias:R:bobby", 1), "do not support aliases"),
        (lambda it: it.transfer("3P274YB5qseSE9DTTL3bpSjosZrYBPDpJ8k", 1), "other network"),
        (lambda it: it.transfer(it, 0), "cancellation is not supported"),
        (lambda it: it.transfer(it, -1), "negative"),
        (lambda it: it.transfer(it, -1, ASSET), "negative"),
        (lambda it: it.transfer(it, 1, fee=-1), "negative"),
        (lambda it: it.invoke(it, timestamp=-1), "negative"),
        (lambda it: it.invoke(it, "f", []), "give types"),
        (lambda it: it.invoke(it, "f", 1, types=()), "0 types of 1"),
        (lambda it: it.invoke(it, "f", "a", types=("int64",)), "str is no int64"),
        (lambda it: it.invoke(it, "f", 2**63), "int is no int64"),
        (lambda _: Transaction.from_json({"type": 18, "bytes": "0xzz"}, "R"), "no bytes"),
    ],
)
def test_what_is_none(wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong(EthereumAccount(KEY, "R"))  # type: ignore[operator]
