"""The library against a running devnet: sending, waiting, fees, refusals, reading."""

from __future__ import annotations

import threading

import pytest

from soliton import (
    Account,
    ClientError,
    FeeTooHigh,
    Node,
    NodeRefused,
    NodeUnreachable,
    NotFound,
    ScriptRefused,
    StillWaiting,
)
from soliton.errors import InputError
from tests.e2e.programs import Program
from tests.ports import free_port

pytestmark = pytest.mark.slow

DAPP = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
func half(n: Int) = n / 2
@Callable(i)
func withdraw(n: Int) = if (n > 3) then throw("too much") else [IntegerEntry("n", n)]
@Callable(i)
func mint(n: Int) = [Issue("Token", "", n, 0, true)]
@Callable(i)
func keep(a: Int, b: String, c: Boolean, d: ByteVector, e: List[Int]) = [
  IntegerEntry("a", a + e[1]), StringEntry("b", b), BooleanEntry("c", c), BinaryEntry("d", d)
]
@Callable(i)
func default() = [IntegerEntry("paid", i.payments[0].amount)]
"""
PICKY = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
true
"""
COSTLY_VERIFIER = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ACCOUNT #-}
sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)
  && sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)
"""


@pytest.fixture(scope="module")
def dapp(node: Node, accounts: list[Account]) -> Account:
    account = accounts[2]
    node.send(account.set_script(node.compile(DAPP).script)).wait()
    return account


def test_the_issues_first_hour(program: Program) -> None:
    """As the library was asked for."""
    node = Node(program.node_url)
    alice = Account.from_seed("soliton devnet account 1", node.chain_id)
    gold = node.send(alice.issue("Gold", 1_000_000, decimals=2)).wait().asset_id
    assert gold is not None
    details = node.asset(gold)
    assert (details.name, details.decimals, details.quantity) == ("Gold", 2, 1_000_000)
    assert node.balance(alice, gold) == 1_000_000
    bob = Account.from_seed("soliton devnet account 2", node.chain_id)
    found = node.send(alice.transfer(bob, "1.5", details)).wait(confirmations=0)
    assert node.balance(bob, gold) == 150
    assert node.transaction(found.id).json["amount"] == 150


def test_calls_of_a_dapp(node: Node, alice: Account, dapp: Account) -> None:
    node.send(alice.invoke(dapp, "withdraw", 3)).wait()
    assert node.data_entry(dapp, "n") == 3
    node.send(alice.invoke(dapp, "keep", 5, "text", True, b"\0\1", [1, 2])).wait()
    assert node.data(dapp, keys=["a", "b", "c", "d"]) == {
        "a": 7,
        "b": "text",
        "c": True,
        "d": b"\0\1",
    }
    node.send(alice.invoke(dapp, payments=[("0.5", None)])).wait()
    assert node.data_entry(dapp, "paid") == 50_000_000
    assert node.data_entry(dapp, "nothing") is None


def test_a_script_that_refuses(node: Node, alice: Account, dapp: Account) -> None:
    with pytest.raises(ScriptRefused) as refused:
        node.send(alice.invoke(dapp, "withdraw", 5))
    error = refused.value
    assert (error.code, error.status, error.function) == (306, 400, "withdraw")
    assert error.message == "Error while executing dApp: too much"
    assert error.trace[0]["id"] == dapp.address


def test_a_node_that_refuses(node: Node, alice: Account, bob: Account) -> None:
    with pytest.raises(NodeRefused) as refused:
        node.send(alice.transfer(bob, 10**18))
    assert refused.value.code == 112 and "negative waves balance" in refused.value.message
    with pytest.raises(NodeRefused, match="minimal value"):
        node.send(alice.transfer(bob, 1, fee=1))
    with pytest.raises(NodeRefused):
        node.send(alice.on("W").transfer(bob.on("W"), 1))
    with pytest.raises(NotFound) as missing:
        node.block_at(10**6)
    assert missing.value.code == 301


def test_fees_follow_scripts(node: Node, accounts: list[Account], dapp: Account) -> None:
    """What a call issues, a verifier, an asset with a script: each adds to the fee."""
    costly, alice = accounts[3], accounts[0]
    mint = alice.invoke(dapp, "mint", 3)
    with pytest.raises(FeeTooHigh) as dear:
        node.send(mint)
    assert (dear.value.fee, dear.value.limit) == (100_500_000, mint.max_fee)
    assert node.send(mint, max_fee="1.1").transaction.fee == 100_500_000
    script = node.compile(PICKY).script
    asset = node.send(alice.issue("Picky", 100, script=script)).wait().asset_id
    assert node.send(alice.transfer(costly, 10, asset)).transaction.fee == 500_000
    node.send(costly.set_script(node.compile(COSTLY_VERIFIER).script)).wait()
    assert node.send(costly.transfer(alice, 1)).transaction.fee == 500_000
    sent = node.send(costly.transfer(alice, 1, asset))
    assert sent.transaction.fee == 900_000
    assert sent.wait().application_status == "succeeded"
    both = node.send(costly.invoke(dapp, "mint", 1), max_fee="1.1")
    assert both.transaction.fee == 100_900_000


def test_fees_in_a_sponsored_asset(node: Node, alice: Account, bob: Account) -> None:
    paid = node.send(alice.issue("Paid", 10_000)).id
    node.wait(paid)
    node.send(alice.sponsor(paid, 7)).wait()
    node.send(alice.transfer(bob, 1_000, paid)).wait()
    with pytest.raises(FeeTooHigh, match="no limit"):
        node.send(bob.transfer(alice, 1, fee_asset=paid))
    with pytest.raises(FeeTooHigh):
        node.send(bob.transfer(alice, 1, fee_asset=paid), max_fee=6)
    sent = node.send(bob.transfer(alice, 1, fee_asset=paid), max_fee=7)
    assert (sent.transaction.fee, sent.transaction.fee_asset) == (7, paid)
    sent.wait()
    assert node.balance(bob, paid) == 993
    # The record of the asset has the sponsor's rate.
    known = bob.transfer(alice, 1, fee_asset=node.asset(paid))
    assert (known.fee, known.max_fee) == (7, 2 * 9 * 7)
    node.send(known).wait()


def test_sending_again_is_no_error(node: Node, alice: Account, bob: Account) -> None:
    payment = alice.transfer(bob, 1)
    assert node.send(payment).id == payment.id
    node.wait(payment.id)
    before = node.balance(bob)
    with pytest.raises(NodeRefused, match="already in the state"):
        node.broadcast(payment)
    assert node.balance(bob) == before


def test_waiting(node: Node, alice: Account, bob: Account) -> None:
    payment = alice.transfer(bob, 1)
    sent = node.send(payment)
    assert sent.wait().confirmations == 0
    with pytest.raises(StillWaiting):
        sent.wait(timeout=0.2, confirmations=50)
    with pytest.raises(StillWaiting):
        node.wait(alice.transfer(bob, 1).id, timeout=0.2)
    assert node.wait_for_height(node.height()).height == node.height()
    with pytest.raises(StillWaiting):
        node.wait_for_height(10**6, timeout=0.2)


def test_threads_share_a_node(node: Node, alice: Account, bob: Account) -> None:
    before, troubles = node.balance(bob), list[ClientError]()

    def pay() -> None:
        try:
            for _ in range(20):
                node.send(alice.transfer(bob, 1))
        except ClientError as error:
            troubles.append(error)

    threads = [threading.Thread(target=pay) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    last = node.send(alice.transfer(bob, 1)).wait()
    assert node.wait_for_height(last.height).height == last.height
    assert node.balance(bob) == before + 81


def test_nobody_there() -> None:
    with pytest.raises(InputError):
        Node("ftp://127.0.0.1")
    with pytest.raises(InputError):
        Node("http://user:secret@127.0.0.1")
    with (
        Node(f"http://127.0.0.1:{free_port()}", retries=1) as node,
        pytest.raises(NodeUnreachable),
    ):
        node.height()
