"""Every type in every version: made by the library, taken by a chain in this process, and its
signature and bytes judged by the ecosystem's JavaScript library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import pytest

from soliton import Account, Node, Order, Transaction
from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import codec, genesis, payment
from soliton.client.records import transaction_info
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.errors import InputError
from soliton.testing.kit import Kit
from tests.clients.scripts import NEEDS_NODE, run_script

ACCOUNT_SCRIPT = """{-# STDLIB_VERSION 5 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func default() = [IntegerEntry("called", 1)]
@Callable(i)
func with(a: Int, b: List[String]) = [IntegerEntry("a", a)]
"""
ASSET_SCRIPT = """{-# STDLIB_VERSION 5 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
true
"""


class Maker:
    """Makes one of each; what the next ones need is sent before they are made."""

    def __init__(self, node: Node, accounts: Sequence[Account]) -> None:
        self.node = node
        self.alice, self.bob, self.dapp = accounts[4:7]
        self.asset_script = node.compile(ASSET_SCRIPT).script
        self.account_script = node.compile(ACCOUNT_SCRIPT).script

    def issued(self, **options: object) -> str:
        issue = self.alice.issue("Name", 1_000, 2, reissuable=True, **options)  # type: ignore[arg-type]
        found = self.node.send(issue).wait().asset_id
        assert found is not None
        return found

    def orders(self, version: int, asset: str) -> tuple[Order, Order]:
        mode = "assetDecimals" if version == 4 else None
        made = [
            account.order(
                side,
                5,
                asset,
                10**14,
                matcher=self.alice.public_key,
                version=version,
                price_mode=mode,
            )
            for account, side in ((self.bob, "buy"), (self.alice, "sell"))
        ]
        return made[0], made[1]

    def exchange(self, version: int, order_version: int, asset: str, price: int) -> Transaction:
        buy, sell = self.orders(order_version, asset)
        return self.alice.exchange(
            buy, sell, 5, price, buy_matcher_fee=300_000, sell_matcher_fee=300_000, version=version
        )

    def all(self) -> Iterator[Transaction]:
        """In an order in which a node takes them."""
        alice, bob = self.alice, self.bob
        asset, smart = self.issued(), self.issued(script=self.asset_script)
        for version in (1, 2, 3):
            yield alice.issue("Other", 100, 1, "words", reissuable=True, version=version)
            yield alice.transfer(bob, 5, asset, attachment=b"hi", version=version)
            yield alice.reissue(asset, 50, version=version)
            yield alice.burn(asset, 5, version=version)
            yield alice.alias(f"name-{version}", version=version)
            lease = alice.lease(bob, 5, version=version)
            yield lease
            yield alice.cancel_lease(lease.id, version=version)
            yield self.exchange(version, version, asset, 10**8 if version == 3 else 10**14)
        yield self.exchange(3, 4, asset, 10**8)
        for version in (1, 2):
            yield alice.mass_transfer({bob.address: 1, self.dapp.address: 2}, version=version)
            yield alice.data({"a": 1, "b": True, "c": b"x", "d": "text"}, version=version)
            yield alice.sponsor(asset, 5, version=version)
            yield alice.sponsor(asset, None, version=version)
            yield alice.set_asset_script(smart, self.asset_script, version=version)
            yield self.dapp.set_script(self.account_script, version=version)
            yield alice.invoke(self.dapp, version=version)
            yield alice.invoke(
                self.dapp, "with", 5, ["x"], payments=[("0.1", None), (1, asset)], version=version
            )
            yield self.dapp.set_script(None, version=version)
        yield alice.data({"a": None})
        yield alice.update_asset_info(asset, "Another", "name")


@pytest.fixture(scope="module")
def node(soliton_kit: Kit) -> Node:
    return soliton_kit.node


@pytest.fixture(scope="module")
def accounts(soliton_kit: Kit) -> Sequence[Account]:
    return soliton_kit.accounts


def needs_the_library(test: Callable[..., None]) -> Callable[..., None]:
    """All of the marks of tests with that library."""
    for mark in NEEDS_NODE:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def made(node: Node, accounts: Sequence[Account]) -> list[Transaction]:
    """All of them, as the node took them, each in a block."""
    found = []
    for transaction in Maker(node, accounts).all():
        sent = node.send(transaction)
        assert sent.wait().application_status == "succeeded", transaction
        found.append(sent.transaction)
    return found


def test_a_node_takes_all(made: list[Transaction], node: Node) -> None:
    seen = {(each.type, each.version) for each in made}
    assert {number for number, _ in seen} == {*range(3, 18)}
    assert len(seen) == 8 * 3 + 6 * 2 + 1
    for each in made:
        shown = node.transaction(each.id)
        assert shown.transaction("R").proofs == each.proofs
        assert Transaction.from_json(each.to_json(), "R") == each
        assert Transaction.from_bytes(each.to_bytes(), "R") == each
        assert Transaction.from_protobuf(each.to_protobuf(), "R") == each


@needs_the_library
def test_the_javascript_library_agrees(made: list[Transaction]) -> None:
    # That library knows no first version of the types that came before proofs, cannot write that a
    # sponsorship ends in its first version, wants the chain id where nodes do not show it, and
    # takes the name of the default function for a call by name.
    known = [
        each
        for each in made
        if (each.version > 1 or each.type > 10)
        and not (each.type == 14 and each.version == 1 and each.data.min_fee is None)
    ]
    lines = []
    for each in known:
        fields = {"chainId": ord("R"), **each.to_json()}
        if each.type == 16 and each.data.call is None:
            del fields["call"]
        lines.append(json.dumps(fields))
    told = run_script("verify.js", given="\n".join(lines))
    assert len(told) == len(known) > 30
    for number, each in enumerate(known):
        verdict = told[str(number)]
        assert verdict["valid"], each
        if not (each.type == 10 and each.version < 3):  # whose id is that of the name
            assert verdict["id"] == each.id


def signed_payment() -> Transaction:
    """A payment (type 2) as the first blocks of the network have them."""
    keys = key_pair("soliton devnet account 1")
    draft = codec.build(
        payment.TYPE,
        payment.Payment(from_public_key(keys.public_key, ord("R")), 5),
        version=1,
        chain_id=ord("R"),
        sender_public_key=keys.public_key,
        fee=100_000,
        timestamp=1_465_742_577_614,
    )
    return Transaction(codec.sign(draft, keys.private_key))


def test_types_that_nobody_sends_any_more_are_read_from_json() -> None:
    sent = signed_payment()
    read = Transaction.from_json(sent.to_json(), "R")
    assert read == sent and read.id == sent.id == base58.encode(sent.proofs[0])
    assert Transaction.from_bytes(read.to_bytes(), "R") == sent
    assert (read.type_name, read.data.amount, read.fee) == ("payment", 5, 100_000)
    info = transaction_info({**sent.to_json(), "height": 3})
    assert info.transaction("R") == sent
    first = Transaction(
        codec.build(
            genesis.TYPE,
            genesis.Genesis(sent.data.recipient, 7),
            version=1,
            chain_id=ord("R"),
            sender_public_key=b"",
            fee=0,
            timestamp=1,
        )
    )
    again = Transaction.from_json(first.to_json(), "R")
    assert (again, again.id, again.proofs) == (first, first.id, ())
    for change in ({"recipient": "x"}, {"amount": "5"}, {"senderPublicKey": None}, {"type": 0}):
        with pytest.raises(InputError):
            Transaction.from_json({**sent.to_json(), **change}, "R")
