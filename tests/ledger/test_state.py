"""Overlays: writes above a state that are readable at once and belong to it only when merged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.addresses import Address
from soliton.ledger.hashes import EMPTY_HASH, legacy_hash, next_snapshot_hash, snapshot_entries
from soliton.ledger.state import (
    ALIASES,
    DATA,
    LEASES,
    MISSING,
    NO_LEASES,
    WAVES,
    LeaseBalance,
    Overlay,
    effective_balance,
)
from tests.ledger.memory import MemoryState

ANN, BOB = (Address(bytes((1, 82)) + bytes((number,)) * 24) for number in range(2))
writes = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([ANN, BOB]), st.integers(0, 9)))


def test_defaults_shine_through() -> None:
    overlay = Overlay(Overlay(MemoryState()))
    assert overlay.get(WAVES, ANN) == 0
    assert overlay.get(LEASES, ANN) == NO_LEASES
    assert overlay.get(DATA, (ANN, "key")) is MISSING
    assert overlay.get(ALIASES, "name") is None
    assert overlay.transaction_height(b"id") is None


def test_writing_nothing_is_writing() -> None:
    """A deleted entry hides the one below; so does a zero."""
    state = MemoryState()
    state.put(DATA, (ANN, "key"), 5)
    state.put(WAVES, ANN, 5)
    overlay = Overlay(state)
    overlay.put(DATA, (ANN, "key"), None)
    overlay.put(WAVES, ANN, 0)
    assert overlay.get(DATA, (ANN, "key")) is None
    assert overlay.get(WAVES, ANN) == 0
    assert state.get(WAVES, ANN) == 5


@given(writes)
def test_layers_read_like_one_state(items: list[tuple[int, Address, int]]) -> None:
    """Writes in random layers, read from the top, are the same as in one state, merged or not."""
    state = MemoryState()
    layers = [Overlay(state)]
    layers += [Overlay(layers[-1])]
    layers += [Overlay(layers[-1])]
    model: dict[Address, tuple[int, int]] = {}
    for layer, address, value in items:
        if layer == 0:
            state.put(WAVES, address, value)
        else:
            layers[layer - 1].put(WAVES, address, value)
        if layer >= model.get(address, (0, 0))[0]:
            model[address] = (layer, value)
    expected = {address: model.get(address, (0, 0))[1] for address in (ANN, BOB)}
    top = {address: layers[2].get(WAVES, address) for address in (ANN, BOB)}
    assert top == expected
    layers[1].merge(layers[2])
    layers[0].merge(layers[1])
    assert {address: layers[0].get(WAVES, address) for address in (ANN, BOB)} == expected


def test_transactions_are_recorded_with_the_height() -> None:
    below = Overlay(MemoryState(), 7)
    below.record_transaction(b"one")
    above = Overlay(below, 7)
    above.record_transaction(b"two")
    assert above.transaction_height(b"one") == above.transaction_height(b"two") == 7
    assert below.transaction_height(b"two") is None
    below.merge(above)
    assert below.transaction_height(b"two") == 7


def test_effective_balance() -> None:
    assert effective_balance(100, LeaseBalance(30, 50), 0) == 80
    assert effective_balance(100, LeaseBalance(30, 50), 10) == 70


def test_hash_of_no_changes() -> None:
    assert snapshot_entries({}) == set()
    assert legacy_hash(b"", {}, {}).sections == (EMPTY_HASH,) * 9


@given(st.permutations([(ANN, 5), (BOB, 6)]))
def test_hashes_do_not_depend_on_the_order_of_writes(order: list[tuple[Address, int]]) -> None:
    changes = {WAVES: dict(order)}
    sorted_changes = {WAVES: dict(sorted(order))}
    assert next_snapshot_hash(EMPTY_HASH, changes) == next_snapshot_hash(EMPTY_HASH, sorted_changes)
    assert legacy_hash(b"", {}, changes) == legacy_hash(b"", {}, sorted_changes)


def test_a_failed_transaction_has_another_hash() -> None:
    changes = {WAVES: {ANN: 5}}
    plain = next_snapshot_hash(EMPTY_HASH, changes)
    assert plain != next_snapshot_hash(EMPTY_HASH, changes, b"id" + b"\1")
