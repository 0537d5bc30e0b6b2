"""The shortcut for plain transfers: it comes to what the rules come to, also to their errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.chain.addresses import Address, Alias, from_public_key
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MAX_I64
from soliton.errors import SolitonError
from soliton.ledger import transactions
from soliton.ledger.context import Context
from soliton.ledger.plain_transfers import PlainTransfer, plain_transfer
from soliton.ledger.state import ACCOUNT_SCRIPTS, WAVES, AccountScript
from tests.amounts import examples
from tests.ledger.cases import (
    COIN,
    FEE,
    GOLD,
    HEIGHT,
    ISSUER,
    ME,
    NETWORKS,
    OTHER,
    SENDER,
    TIME,
    YOU,
    R,
    context_at,
    make,
    rules_of,
    state_of,
)
from tests.ledger.memory import MemoryState

STRANGER = from_public_key(OTHER.public_key, ord("W"))
SCRIPT = AccountScript(SENDER.public_key, b"script", 10, {})
NO_SCRIPT_ANY_MORE = AccountScript(SENDER.public_key, b"", 0, {})


def prepared(
    options: dict[str, Any], transaction: AnyTransaction | None = None
) -> tuple[AnyTransaction, MemoryState, Context]:
    state = state_of(**options)
    if options.get("theirs"):
        state.put(WAVES, YOU, options["theirs"])
    if options.get("script"):
        state.put(ACCOUNT_SCRIPTS, ME, options["script"])
    if transaction is None:
        transaction = make("transfer", options)
    if options.get("seen_at"):
        state.transactions[transaction.id] = options["seen_at"]
    parent = None if options.get("first") else TIME - 1_000
    return transaction, state, context_at(HEIGHT, TIME, parent, rules_of(options["rules"]))


def outcome(options: dict[str, Any], transaction: AnyTransaction, *, verify: bool) -> object:
    """All that is left behind: changes in their order, ids, unverified signatures; or the error."""
    _, state, context = prepared(options, transaction)
    unverified: list[Any] = []
    context = Context(context.block, unverified=unverified)
    try:
        applied = transactions.apply_transaction(
            transaction, state, context, verify_signature=verify
        )
    except SolitonError as error:
        return type(error), str(error), getattr(error, "details", None)
    overlay = applied.changes
    changes = [(table.name, list(written.items())) for table, written in overlay.changes.items()]
    return changes, overlay.transaction_ids, unverified, (applied.status, applied.complexity)


OPTIONS = st.fixed_dictionaries(
    {
        "rules": st.sampled_from(sorted(NETWORKS)),
        "version": st.sampled_from((1, 2, 2, 3, 3, 4)),
        "amount": st.sampled_from((1, COIN, 10 * COIN - FEE, 10 * COIN, MAX_I64)),
        "fee": st.sampled_from((FEE, FEE, FEE - 1, 2 * FEE)),
    },
    optional={
        "waves": st.sampled_from((0, FEE, COIN + FEE, COIN + FEE - 1)),
        "lease_out": st.sampled_from((1, 9 * COIN - FEE, 9 * COIN - FEE + 1, 20 * COIN)),
        "lease_in": st.just(5 * COIN),
        "theirs": st.sampled_from((MAX_I64 - COIN, MAX_I64)),
        "later": st.sampled_from((5_400_000, 5_400_001, -7_201_000, -7_201_001)),
        "first": st.booleans(),
        "chain_id": st.just(ord("W")),
        "to": st.sampled_from((ME, YOU, STRANGER, Alias(R, "known"), Alias(R, "unknown"))),
        "asset": st.just(GOLD),
        "fee_asset": st.just(GOLD),
        "attachment": st.just(b"with love"),
        "signer": st.just(OTHER),
        "key": st.sampled_from((bytes(32), ISSUER.public_key)),
        "proofs": st.sampled_from(((), (b"",), (bytes(64),), (bytes(65),), (bytes(64),) * 9)),
        "seen_at": st.just(3),
        "script": st.sampled_from((SCRIPT, NO_SCRIPT_ANY_MORE)),
    },
)


@settings(max_examples=examples(400), deadline=None)
@given(options=OPTIONS, verify=st.booleans())
def test_the_same_with_and_without(options: dict[str, Any], verify: bool) -> None:
    try:
        transaction, *_ = prepared(options)
    except SolitonError:
        # Values that have no form: there is nothing to apply.
        return
    with_it = outcome(options, transaction, verify=verify)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "plain_transfer", lambda *_arguments: None)
        without_it = outcome(options, transaction, verify=verify)
    assert with_it == without_it


def plain(**options: Any) -> PlainTransfer | None:
    return plain_transfer(*prepared({"rules": "devnet", **options}))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_it_is_used(version: int) -> None:
    expected = PlainTransfer(ME, 9 * COIN - FEE, YOU, COIN)
    assert plain(version=version) == expected
    assert plain(version=version, script=NO_SCRIPT_ANY_MORE) == expected
    assert plain(version=version, signer=OTHER) == expected, "signatures are not its business"
    to_itself = PlainTransfer(ME, 10 * COIN - FEE, ME, 10 * COIN - FEE)
    assert plain(version=version, to=ME) == to_itself, "only the fee goes"


@pytest.mark.parametrize(
    "options",
    [
        {"waves": COIN + FEE - 1},
        {"lease_out": 9 * COIN - FEE + 1},
        {"theirs": MAX_I64},
        {"later": 5_400_001},
        {"later": -7_201_001},
        {"chain_id": ord("W")},
        {"to": ME, "waves": COIN + FEE - 1},
        {"to": ME, "lease_out": 9 * COIN - FEE + 1},
        {"to": Alias(R, "known")},
        {"asset": GOLD},
        {"fee_asset": GOLD},
        {"fee": FEE - 1},
        {"amount": 0},
        {"amount": -1},
        {"proofs": ()},
        {"proofs": (bytes(64), bytes(64))},
        {"proofs": (bytes(63),)},
        {"seen_at": 3},
        {"script": SCRIPT},
        {"version": 4},
        {"rules": "old", "version": 2},
        {"rules": "smart", "version": 3},
    ],
    ids=str,
)
def test_what_is_for_the_rules_to_say(options: dict[str, Any]) -> None:
    assert plain(**options) is None


def test_a_wrong_signature_is_refused_as_ever() -> None:
    options = {"rules": "devnet", "signer": OTHER}
    refused = outcome(options, make("transfer", options), verify=True)
    assert isinstance(refused, tuple)
    assert refused[0].__name__ == "InvalidSignature"


def test_the_state_below_stays_as_it_is() -> None:
    transaction, state, context = prepared({"rules": "devnet"})
    before = {table: dict(values) for table, values in state.tables.items()}
    applied = transactions.apply_transaction(transaction, state, context)
    assert applied.changes.get(WAVES, Address(YOU)) == COIN
    assert state.tables == before
