"""Errors of the inner rings as errors of the API: codes and texts, by generation."""

from __future__ import annotations

import pytest

from soliton.api.errors import ApiError
from soliton.api.translate import refusal, state_refusal
from soliton.chain import errors as chain_errors
from soliton.chain.addresses import parse_address
from soliton.chain.transactions.codec import ProofsError, build
from soliton.chain.transactions.genesis import TYPE, Genesis
from soliton.errors import EnvironmentProblem, InvariantBroken, SolitonError
from soliton.ledger import errors as ledger_errors
from soliton.ledger.scripts import InvocationRejected, NotAllowedByScript, ScriptExecutionError
from soliton.node.peering import NotEnoughPeers
from soliton.node.pool import PoolFull
from tests.api.chain import RICH_ADDRESS

# Error, code and message on new networks, code and message on the oldest.
CASES: list[tuple[SolitonError, int, str, int, str]] = [
    (chain_errors.AddressError("x"), 102, "invalid address", 102, "invalid address"),
    (chain_errors.AliasError("x"), 199, "x", 199, "x"),
    (chain_errors.PublicKeyError("x"), 102, "invalid address", 102, "invalid address"),
    (chain_errors.NegativeAmount(-1, "waves"), 111, "negative amount: -1 of waves",
     111, "negative amount: -1 of zbs"),
    (chain_errors.NonPositiveAmount(0, "abc"), 115, "non-positive amount: 0 of abc",
     111, "negative amount: 0 of abc"),
    (chain_errors.InsufficientFee(), 112, "insufficient fee", 112, "insufficient fee"),
    (chain_errors.AmountOverflow(), 113, "overflow error", 113, "overflow error"),
    (chain_errors.TooBigInBytes("x"), 107, "x", 10, "Too big sequence requested"),
    (chain_errors.TooBigCount(5), 10, "Too big sequence requested",
     10, "Too big sequence requested"),
    (chain_errors.WrongChainId(87, 84), 404, "Wrong chain-id. Expected - 87, provided - 84",
     404, "Wrong chain-id. Expected - 87, provided - 84"),
    (chain_errors.UnsupportedTransaction(2, 1), 312, "transaction type not supported",
     199, "Bad transaction type (2) and version (1)"),
    (chain_errors.UnsupportedTransaction(99, 1), 199, "Bad transaction type (99) and version (1)",
     199, "Bad transaction type (99) and version (1)"),
    (chain_errors.InvalidName(), 111, "invalid name", 111, "invalid name"),
    (chain_errors.InvalidDecimals(9), 117,
     "invalid decimals value: 9, decimals should be in interval [0; 8]",
     117, "invalid decimals value: 9, decimals should be in interval [0; 8]"),
    (chain_errors.NegativeMinFee(-1, "abc"), 114, "negative fee per: -1 per abc",
     114, "negative fee per: -1 per abc"),
    (chain_errors.ToSelf(), 114, "Transaction to yourself", 114, "Transaction to yourself"),
    (chain_errors.OrderInvalid(None, "price should be > 0"), 403,
     "Order validation error: price should be > 0",
     403, "Order validation error: price should be > 0"),
    (ScriptExecutionError("why"), 306, "Error while executing account-script: why",
     306, "Error while executing account-script: why"),
    (ScriptExecutionError("why", bytes(32)), 306, "Error while executing token-script: why",
     306, "Error while executing token-script: why"),
    (InvocationRejected("why"), 306, "Error while executing dApp: why",
     306, "Error while executing dApp: why"),
    (NotAllowedByScript(), 307, "Transaction is not allowed by account-script",
     307, "Transaction is not allowed by account-script"),
    (NotAllowedByScript(bytes(32)), 308, "Transaction is not allowed by token-script",
     308, "Transaction is not allowed by token-script"),
    (ProofsError("x"), 405, "x", 199, "x"),
    (chain_errors.ValueRuleError("x"), 199, "x", 199, "x"),
    (ledger_errors.Mistiming("x"), 303, "x", 303, "x"),
    (ledger_errors.ActivationError("x"), 199, "ActivationError(x)", 199, "ActivationError(x)"),
    (ledger_errors.AlreadyInState("a", 3), 400,
     "Transaction a is already in the state on a height of 3",
     199, "Transaction a is already in the state on a height of 3"),
    (ledger_errors.AliasDoesNotExist("alias:R:nobody"), 302, "alias 'alias:R:nobody' doesn't exist",
     302, "alias 'alias:R:nobody' doesn't exist"),
    (ledger_errors.BalanceErrors({"a": "x", "b": "y"}), 402, "Accounts balance errors",
     199, "x, y"),
    (ledger_errors.TransactionRejected("x"), 199, "x", 199, "x"),
    (PoolFull("x"), 199, "x", 199, "x"),
    (NotEnoughPeers("x"), 199, "x", 199, "x"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case[0]).__name__)
def test_table(case: tuple[SolitonError, int, str, int, str]) -> None:
    error, *expected = case
    found = [refusal(error, family) for family in ("waves", "zbs")]
    assert [part for each in found for part in (each.kind.code, each.message)] == expected


TRANSACTION = build(
    TYPE,
    Genesis(parse_address(RICH_ADDRESS, ord("R")), 1),
    version=1,
    chain_id=ord("R"),
    sender_public_key=b"",
    fee=0,
    timestamp=1,
)


def wrapped(error: SolitonError, family: str) -> dict[str, object]:
    return state_refusal(error, TRANSACTION, family).body()


def test_the_ledger_speaks_within_error_112() -> None:
    balances = ledger_errors.BalanceErrors({"a": "x"})
    found = wrapped(balances, "waves")
    assert found["error"] == 112 and found["details"] == {"a": "x"}
    assert found["message"] == "State check failed. Reason: Accounts balance errors"
    assert isinstance(found["transaction"], dict)
    old = wrapped(balances, "zbs")
    assert set(old) == {"error", "message", "tx"}
    assert old["message"] == "State check failed. Reason: x"


@pytest.mark.parametrize("family", ["waves", "tn", "zbs"])
def test_times_and_a_full_pool_speak_for_themselves(family: str) -> None:
    assert wrapped(ledger_errors.Mistiming("x"), family) == {"error": 303, "message": "x"}
    assert wrapped(PoolFull("x"), family) == {"error": 199, "message": "x"}


@pytest.mark.parametrize("error", [InvariantBroken("x"), EnvironmentProblem("x")])
def test_what_is_nobodys_input_stays_what_it_is(error: SolitonError) -> None:
    with pytest.raises(type(error)):
        refusal(error, "waves")


def test_an_error_of_the_api_stays_too() -> None:
    error = refusal(ledger_errors.Mistiming("x"), "waves")
    assert isinstance(error, ApiError)
    assert refusal(error, "zbs") is error
