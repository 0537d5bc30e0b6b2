"""Patches of old chains: their figures, where they come, and what they do to state and hashes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from soliton.chain import networks
from soliton.chain.addresses import address_text, parse_address
from soliton.chain.networks import Network
from soliton.crypto import base58
from soliton.ledger import patches
from soliton.ledger.hashes import snapshot_entries
from soliton.ledger.patches import Patches
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import (
    DATA,
    LEASE_STATES,
    LEASES,
    ORDER_FILLS,
    WAVES,
    LeaseBalance,
    Overlay,
)
from soliton.ledger.transactions import apply_transaction
from tests.ledger import cases
from tests.ledger.memory import MemoryState

MAINNET = networks.load("waves-mainnet")
TURTLE = networks.load("tn-mainnet")
APPROVED_16 = {16: 1_000_000}
"""Feature 16 approved at a height: active a window of voting later."""


def patch_of(network: Network, height: int) -> Patches | None:
    return RuleBook(network, APPROVED_16).patch_at(height)


@pytest.mark.parametrize(
    ("name", "heights"),
    [
        ("waves-mainnet", [462_000, 795_000, 1_010_000, 1_060_000]),
        ("waves-testnet", [51_500]),
        ("tn-mainnet", [450_000, 457_100, 930_000]),
        ("waves-stagenet", []),
        ("zbs-mainnet", []),
        ("devnet", []),
    ],
)
def test_heights(name: str, heights: list[int]) -> None:
    network = networks.load(name)
    around = {near for height in heights for near in (height - 1, height, height + 1)}
    found = [height for height in sorted({*around, 1, 2}) if patch_of(network, height)]
    assert found == heights


def applied(network: Network, height: int) -> Overlay:
    patch = patch_of(network, height)
    assert patch is not None
    overlay = Overlay(MemoryState(), height)
    patch(overlay)
    return overlay


@pytest.mark.parametrize(
    ("height", "accounts", "ended"),
    [(462_000, 65, 99), (795_000, 2, 3), (1_060_000, 2, 0), (1_010_000, 6, 5)],
)
def test_mainnet(height: int, accounts: int, ended: int) -> None:
    changes = applied(MAINNET, height).changes
    assert len(changes[LEASES]) == accounts
    states = changes.get(LEASE_STATES, {})
    assert len(states) == ended
    assert all(not state.active and state.height == height for state in states.values())
    # Each change is hashed, and nothing else is.
    assert len(snapshot_entries(changes)) == accounts + ended


def test_leases_are_added_to_those_there_are() -> None:
    state = MemoryState()
    address = parse_address("3PE3mTBNLdMAdFZeVAMSzzRf7PwvLpu9gj6", MAINNET.chain_id)
    state.put(LEASES, address, LeaseBalance(7, 11_900_000_001))
    overlay = Overlay(state)
    patch = patch_of(MAINNET, 795_000)
    assert patch is not None
    patch(overlay)
    assert overlay.get(LEASES, address) == LeaseBalance(7, 1)


def test_turtle_network() -> None:
    changes = applied(TURTLE, 450_000).changes
    assert sum(changes[WAVES].values()) == 218_000_000
    assert sum(applied(TURTLE, 457_100).changes[WAVES].values()) == 9_593_994
    assert len(applied(TURTLE, 930_000).changes[LEASE_STATES]) == 2


def test_figures_are_those_of_the_facts(shared: Path) -> None:
    facts = json.loads((shared / "facts" / "mainnet_exceptions.json").read_text())
    for network, key, height in (
        (MAINNET, "CancelAllLeases@462000", 462_000),
        (MAINNET, "CancelLeaseOverflow@795000", 795_000),
        (networks.load("waves-testnet"), "CancelAllLeases@51500", 51_500),
    ):
        expected = facts[network.name.removeprefix("waves-")]["patches"][key]
        changes = applied(network, height).changes
        assert changes[LEASES] == {
            parse_address(text, network.chain_id): LeaseBalance(balance["in"], balance["out"])
            for text, balance in expected["balances"].items()
        }
        ids = {base58.decode(lease["id"], 44) for lease in expected["cancelledLeases"]}
        assert set(changes[LEASE_STATES]) == ids


def test_aliases_that_lead_nowhere() -> None:
    book = RuleBook(MAINNET)
    assert book.at(1_060_000).disabled_aliases == frozenset()
    assert len(book.at(1_060_001).disabled_aliases) == 59
    assert "bittrex" in book.at(5_000_000).disabled_aliases
    assert not book.at(1_059_999).alias_ids_unique
    assert book.at(1_060_000).alias_ids_unique
    assert RuleBook(TURTLE).at(2_000_000).disabled_aliases == frozenset()


def test_outcomes_that_are_fixed() -> None:
    book = RuleBook(MAINNET)
    assert not book.at(5_228_052).fixed_outcomes
    assert not book.at(5_233_109).fixed_outcomes
    outcomes = book.at(5_228_053).fixed_outcomes
    assert len(outcomes) == 33
    tables = set()
    for transaction_id, outcome in outcomes.items():
        assert len(transaction_id) == 32
        overlay = Overlay(MemoryState())
        outcome(overlay)
        tables |= set(overlay.changes)
    assert {WAVES, DATA, ORDER_FILLS} <= tables


def test_a_fixed_outcome_takes_the_place_of_the_rules() -> None:
    transaction = cases.make("transfer", {"amount": 100 * cases.COIN})
    outcome = patches.FixedOutcome("", waves=((address_text(cases.YOU), 5),), chain_id=cases.R)
    rules = msgspec.structs.replace(
        cases.rules_of("devnet"), fixed_outcomes={transaction.id: outcome}
    )
    context = cases.context_at(cases.HEIGHT, cases.TIME, cases.TIME, rules)
    changes = apply_transaction(transaction, MemoryState(), context).changes
    assert changes.get(WAVES, cases.YOU) == 5
    assert transaction.id in changes.transaction_ids


def test_lenient_heights_of_turtle_network() -> None:
    book = RuleBook(TURTLE)
    assert [book.at(height).minimum_fees_enforced for height in (674_999, 675_000)] == [False, True]
    assert [book.at(height).balances_enforced for height in (949_999, 950_000)] == [False, True]
    assert all(RuleBook(MAINNET).at(height).balances_enforced for height in (1, 1_000_000))
