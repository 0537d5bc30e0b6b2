"""Calls of dApps by dApps: who may call whom, payments, what fails, and what comes back."""

from __future__ import annotations

import pytest

from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import DATA, WAVES
from tests.ledger.cases import COIN, GOLD, ME, YOU
from tests.ledger.scripts.dapps import NEXT, RELEASE, apply, check, outcome_of, rows

TABLE = """
light | | ([], call("nothing")) | ok 78
light | | strict x = call("one"); if (x == 1) then [] else throw("no") | ok 81
light | | strict x = call("break"); [] | refused broken
light | | strict x = call("breakLater"); [] | failed 1159 1 broken
light | | heavy; strict x = call("break"); [] | failed 1158 1 broken
light | | strict x = call("back"); [] | refused GenericError(The invocation stack contains multiple
light | | strict x = reentrantInvoke(next, "back", [], []); [] | ok 154
light | | strict x = call("minus"); [] | refused GenericError(Negative transfer amount = -1)
light | | heavy; strict x = call("minus"); [] | failed 1160 1 GenericError(Negative transfer amount
validated | lib=5, next_lib=5 | heavy; strict x = call("minus"); [] | refused Negative transfer amou
calls | lib=5, next_lib=5 | heavy; strict x = call("minus"); [] | failed 1293 1 Negative amount
light | | strict x = call("caller"); if (x == 1) then [] else throw("no") | ok 83
light | | strict x = pay(5, unit); if (x == 1) then [] else throw("no") | ok 83
light | | strict x = pay(-5, unit); [] | refused GenericError(DApp 3MJEiEvmSM4J43NnHyDkahriCLta6kauV
light | | heavy; strict x = pay(-5, unit); [] | failed 1159 1 GenericError(DApp 3MJEiEvmSM4J43NnHyDk
validated | lib=5, next_lib=5 | heavy; strict x = pay(-5, unit); [] | refused DApp 3MJEiEvmSM4J43NnH
calls | lib=5, next_lib=5 | heavy; strict x = pay(-5, unit); [] | ok 1303
light | | strict x = pay(1100000000, unit); [] | refused AccountBalanceError(VectorMap(3MJEiEvmSM4J4
light | | strict x = pay(1001, gold); [] | refused AccountBalanceError(VectorMap(3MJEiEvmSM4J43NnHyD
calls | lib=5, next_lib=5 | strict x = pay(1001, gold); [] | BalanceErrors {'3MJEiEvmSM4J43NnHyDkahr
validated | lib=5, next_lib=5 | strict x = pay(1001, gold); [] | refused 3MJEiEvmSM4J43NnHyDkahriCLt
light | | strict x = pay(1, smart); [] | ok 83
light | smart="false" | strict x = pay(1, smart); [] | refused FailedTransactionError(code = 4, erro
light | smart="false" | heavy; strict x = pay(1, smart); [] | failed 2318 1 FailedTransactionError(c
light | smart=BREAK | heavy; strict x = pay(1, smart); [] | failed 2319 1 no
light | | strict x = pay(1, me.bytes); [] | refused GenericError(Transfer error: invalid asset ID '3
light | | strict x = call("unknown"); [] | refused @Callable function 'unknown' doesn't exist in the
light | | strict x = invoke(me, "unknown", [], []); [] | refused GenericError(The invocation stack c
light | | strict x = invoke(Address(gold), "unknown", [], []); [] | refused InvalidAddress(Wrong add
light | | strict x = invoke(Alias("known"), "empty", [], []); [] | ok 78
light | | strict x = invoke(next, "give", [5, 5], []); [] | refused function 'give takes 1 args but
light | | strict x = invoke(next, "give", [unit], []); [] | refused GenericError(All arguments of In
light | next_lib=5 | strict x = call("nothing"); [] | ok 78
light | | strict x = call("many"); strict y = call("many"); [] | refused Issue, Reissue, Burn, Spons
light | | strict x = call("spend"); [] | refused AccountBalanceError(VectorMap(3M31zwqKgR9QhhFE2ChVV
light | | strict x = call("leave"); [] | refused AccountBalanceError(VectorMap(3M31zw
"""


@pytest.mark.parametrize(("rules", "given", "body", "outcome"), rows(TABLE))
def test_calls(rules: str, given: str, body: str, outcome: str) -> None:
    check(rules, given, body, outcome)


FREED = 'strict a = invoke(this, "release", [], []); strict b = pay(500000000, unit); []'


@pytest.mark.parametrize(
    ("rules", "lib", "outcome"),
    [
        # What the caller itself did before the call does not count since the light-node feature.
        ("light", 6, "refused AccountBalanceError"),
        ("ride 6", 6, "ok "),
        ("calls", 5, "ok "),
    ],
)
def test_leases_ended_before_a_call(rules: str, lib: int, outcome: str) -> None:
    given = {"more": RELEASE, "leased": 8, "lib": lib, "next_lib": lib}
    found = outcome_of(rules, FREED, **given)
    assert found.startswith(outcome), found


@pytest.mark.parametrize(("count", "outcome"), [(50, "ok "), (101, "failed 7776 1 ScriptRuns")])
def test_calls_are_limited(count: int, outcome: str) -> None:
    calls = "; ".join(f'strict x{number} = call("nothing")' for number in range(count))
    assert outcome_of("light", f"{calls}; []").startswith(outcome)


@pytest.mark.parametrize(("count", "outcome"), [(10, "ok "), (11, "refused GenericError(Script")])
def test_payments_are_limited(count: int, outcome: str) -> None:
    payments = ", ".join(["AttachedPayment(unit, 1)"] * count)
    body = f'strict x = invoke(next, "paid", [], [{payments}]); []'
    assert outcome_of("light", body).startswith(outcome)


def test_payments_of_all_calls_are_limited() -> None:
    payments = ", ".join(["AttachedPayment(unit, 1)"] * 10)
    calls = "; ".join(
        f'strict x{number} = invoke(next, "paid", [], [{payments}])' for number in range(11)
    )
    found = outcome_of("light", f"{calls}; []")
    assert found == "failed 1086 1 GenericError(Invoke payments limit = 100 is exceeded)"


def test_changes_of_a_called_dapp_come_first() -> None:
    body = """
    strict x = call("one")
    [IntegerEntry("mine", x.exactAs[Int]), IntegerEntry("its", getIntegerValue(next, "n"))]
    """
    _, applied = apply("light", body)
    assert applied.changes.changes[DATA] == {(NEXT, "n"): 1, (YOU, "mine"): 1, (YOU, "its"): 1}


def test_a_called_dapp_changes_the_sponsorship_of_the_fee() -> None:
    """The sponsor pays by the sponsorship after the calls, though it was another one when the
    transaction was accepted: wavesplatform/Waves ``.../state/diffs/invoke/InvokeDiffsCommon.scala``
    (``processActions``, whose ``txFeeDiff`` reads the state that the calls have left).
    """
    given = {"fee_asset": GOLD, "fee": 25, "sponsored": 5}
    state, applied = apply("light", 'strict x = invoke(next, "sponsor", [1], []); []', **given)
    balances = applied.changes.changes[WAVES]
    assert balances[NEXT] - state.get(WAVES, NEXT) == -25 * 100_000
    with pytest.raises(TransactionRejected, match="is not sponsored, cannot be used to pay fees"):
        apply("light", 'strict x = invoke(next, "sponsor", [0], []); []', **given)


@pytest.mark.parametrize(("rules", "lib"), [("light", 6), ("ride 6", 6), ("calls", 5)])
def test_the_generating_balance_counts_the_states_below_a_call(rules: str, lib: int) -> None:
    """The smallest balance of the states that lie on each other, before the transaction too:
    wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/SnapshotBlockchain.scala``
    (``balanceSnapshots``), on which ``WavesEnvironment.scala`` (``callScript``) puts each call.
    """
    body = f"""
    strict x = pay({5 * COIN}, unit)
    strict y = invoke(next, "least", [], [])
    [IntegerEntry("least", y.exactAs[Int]), IntegerEntry("now", wavesBalance(next).regular)]
    """
    _, applied = apply(rules, body, lib=lib, next_lib=lib)
    assert applied.changes.changes[DATA] == {
        (YOU, "least"): 10 * COIN,
        (YOU, "now"): 15 * COIN,
    }


@pytest.mark.parametrize("rules", ["light", "ride 6", "calls"])
def test_scripts_of_assets_see_the_states_below_the_actions(rules: str) -> None:
    """The same, from the actions before: ``invoke/InvokeDiffsCommon.scala`` (``foldActions``)."""
    smart = f"""
    match tx {{
        case t: TransferTransaction =>
            wavesBalance(t.recipient).generating == {10 * COIN}
                && wavesBalance(t.recipient).regular == {11 * COIN - 500_000}
        case _ => false
    }}
    """
    body = f"[ScriptTransfer(me, {COIN}, unit), ScriptTransfer(me, 1, smart)]"
    assert outcome_of(rules, body, smart=smart, lib=5).startswith("ok ")


def test_calls_are_told() -> None:
    _, applied = apply("light", 'strict x = reentrantInvoke(next, "back", [], []); []')
    told = applied.state_changes
    assert told is not None
    (call,) = told.invokes
    assert (call.dapp, call.function) == (NEXT, "back")
    (back,) = call.changes.invokes
    assert (back.dapp, back.function) == (YOU, "empty")


def test_errors_are_told_where_they_arose() -> None:
    _, applied = apply("light", 'strict x = call("breakLater"); []')
    told = applied.state_changes
    assert told is not None
    assert told.error is not None
    (call,) = told.invokes
    assert call.changes.error == told.error
    assert ME not in applied.changes.changes.get(DATA, {})
