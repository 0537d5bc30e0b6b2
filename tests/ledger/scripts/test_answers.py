"""What dApps may answer, and what their answers cost: action by action, limit by limit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from soliton.ledger.script_results import Reader, read_result
from soliton.ledger.state import ASSET_BALANCES, ASSETS, DATA, ERC20, WAVES, Status
from soliton.ledger.state_changes import to_json
from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.values import NIL, UNIT, Value, case_object, ride_list
from tests.ledger.cases import COIN, GOLD, ME, OTHER, SPONSOR, YOU
from tests.ledger.scripts.dapps import HALVES, NEXT, apply, check, rows

TABLE = r"""
light | | [] | ok 1
light | | [IntegerEntry("k", 1), BooleanEntry("b", true)] | ok 4
light | | [IntegerEntry("", 1)] | refused Data entry key should not be empty
light | | heavy; [IntegerEntry("", 1)] | failed 1083 1 Data entry key should not be empty
calls | lib=5 | [IntegerEntry("", 1)] | failed 2 1 Data entry key should not be empty
dapps | lib=3 | WriteSet([DataEntry("", 1)]) | ok 3
v5 | lib=3, version=2 | WriteSet([DataEntry("", 1)]) | failed 3 1 Empty keys aren't allowed in tx ve
light | more=KEY | [IntegerEntry(key(401), 1)] | refused Data entry key size = 401 bytes must be les
light | more=KEY | [IntegerEntry(key(400), 1)] | ok 38
light | more=KEY | [StringEntry("k", key(5120))] | refused WriteSet size can't exceed 5120 bytes, ac
light | more=KEY | [StringEntry("k", key(5119))] | ok 38
light | more=HALVES | [IntegerEntry("k", size(much(halves)))] | ok
light | more=HALVES | [IntegerEntry("k", size(much(halves + halves)))] | refused String size = 32768
light | more=HALVES | [IntegerEntry("k", size(much("😀")))] | refused String size = 32768
light | more=HALVES | if (halves == "😀") then throw(halves) else [] | refused 😀
light | more=HALVES | if ([halves] == ["😀"]) then throw("same") else [] | refused same
light | more=HALVES | [StringEntry(halves, halves), DeleteEntry(halves + "b")] | ok
light | more=HALVES | [ScriptTransfer(Alias(halves), 1, unit)] | failed 52000 1 Alias '😀' length sh
light | more=HALVES, fee=100_500_000 | [Issue(halves + halves, "", 2, 0, false, unit, 0)] | ok
light | | [ScriptTransfer(me, 1, unit)] | ok 3
light | | [ScriptTransfer(me, 0, gold)] | ok 3
light | | [ScriptTransfer(me, 1100000000, unit)] | refused AccountBalanceError(VectorMap(3MJEiEvmSM4
light | | heavy; [ScriptTransfer(me, 1100000000, unit)] | failed 1084 1 AccountBalanceError(VectorMa
light | | heavy; [ScriptTransfer(me, 1001, gold)] | failed 1084 1 AccountBalanceError(VectorMap(3MJE
calls | lib=5 | [ScriptTransfer(me, 1100000000, unit)] | BalanceErrors {'3MJEiEvmSM4J43NnHyDkahriCLt
calls | lib=5 | heavy; [ScriptTransfer(me, 1100000000, unit)] | failed 1214 1 AccountBalanceError(Ve
light | | heavy; [ScriptTransfer(you, 1, unit)] | failed 1084 1 DApp self-transfer is forbidden sinc
dapps | lib=3 | TransferSet([ScriptTransfer(you, 1, unit)]) | ok 5
light | | heavy; [ScriptTransfer(me, -1, unit)] | failed 1084 1 GenericError(Negative transfer amoun
calls | lib=5 | [ScriptTransfer(me, -1, unit)] | failed 4 1 Negative amount
validated | lib=5 | [ScriptTransfer(me, -1, unit)] | refused Negative transfer amount = -1
validated | lib=5 | heavy; [ScriptTransfer(me, -1, unit)] | refused Negative transfer amount = -1
light | | [ScriptTransfer(Alias("known"), 1, unit)] | refused DApp self-transfer is forbidden since
light | | [ScriptTransfer(Alias("unknown"), 1, unit)] | refused Alias 'alias:R:unknown' does not exi
light | | [ScriptTransfer(Alias("?"), 1, unit)] | failed 52000 1 Alias '?' length should be between
light | | [ScriptTransfer(Address(gold), 1, unit)] | refused Wrong addressBytes length: expected: 26
light | | [ScriptTransfer(me, 1, me.bytes)] | refused Transfer error: invalid asset ID '3MQ7afH3Zwxg
light | | [ScriptTransfer(me, 1, base58'')] | refused Transfer error: invalid asset ID '' length = 0
v5 | lib=4 | [ScriptTransfer(me, 0, me.bytes)] | ok 5
light | | [Issue("name", "", 1, 0, false, unit, 0)] | ok 2
light | | [Issue("name", "", 2, 0, false, unit, 0)] | refused Fee in WAVES for InvokeScriptTransacti
light | fee=100_500_000 | [Issue("name", "", 2, 0, false, unit, 0)] | ok 2
light | | heavy; [Issue("name", "", 2, 0, false, unit, 0)] | failed 1083 2 Fee in WAVES for InvokeSc
light | | heavy; [Issue("nam", "", 1, 0, false, unit, 0)] | failed 1083 1 GenericError(Invalid asset
light | | [Issue("name", "", 1, 9, false, unit, 0)] | refused Invalid decimals 9
light | | let a = Issue("name", "", 1, 0, false, unit, 0); [a, a] | refused Asset 8ArnwizGx9zo7tQAci
light | | [Reissue(own, 5, true)] | ok 2
light | | [Reissue(own, 9223372036854775807, true)] | refused Asset total value overflow
calls | lib=5 | [Reissue(own, -5, true)] | failed 3 1 Asset total value overflow
light | | heavy; [Reissue(gold, 5, true)] | failed 1083 1 Asset was issued by other address
light | | [Burn(gold, 1)] | ok 2
light | | [Burn(own, 1001)] | refused AccountBalanceError(VectorMap(3MJEiEvmSM4J43NnHyDkahriCLta6kau
light | | [Burn(smart, 1)] | ok 2
light | smart="false" | [Burn(smart, 1)] | ScriptExecutionError Error while executing token-script:
light | smart="false" | heavy; [Burn(smart, 1)] | failed 1083 3 Transaction is not allowed by script
light | smart=BREAK | heavy; [Burn(smart, 1)] | failed 1084 3 Transaction is not allowed by script o
calls | smart="false", lib=5 | [Burn(smart, 1)] | failed 3 3 Transaction is not allowed by script of
light | | [SponsorFee(own, 5), SponsorFee(own, unit)] | ok 4
light | | [SponsorFee(gold, 5)] | refused SponsorFee assetId=7xeSk1y3uibLNKmGvmbdyAVa9MfjNYiTZ2eb19c
light | | [SponsorFee(own, 0)] | refused NegativeMinFee(0,asset)
light | | [SponsorFee(own, -1)] | refused GenericError(Negative sponsor amount = -1)
light | | [Lease(me, 100)] | ok 3
light | | [Lease(you, 100)] | refused Cannot lease to self
light | | [Lease(me, 0)] | refused NonPositiveAmount(0,waves)
light | | [Lease(me, 1100000000)] | refused Cannot lease more than own: Balance: 1000000000, already
light | | [Lease(Alias("unknown"), 1)] | refused Alias 'alias:R:unknown' does not exist.
light | | let l = Lease(me, 1); [l, LeaseCancel(calculateLeaseId(l))] | ok 6
light | | [LeaseCancel(base58'')] | refused Lease id= has invalid length = 0 byte(s) while expecting
light | | [LeaseCancel(gold)] | refused Lease with id=7xeSk1y3uibLNKmGvmbdyAVa9MfjNYiTZ2eb19chxKDp n
light | | [LeaseCancel(gold), LeaseCancel(gold)] | refused Duplicate LeaseCancel id(s): 7xeSk1y3uibL
dapps | lib=3 | WriteSet([DataEntry("k", 1)]) | ok 3
dapps | lib=3 | TransferSet([ScriptTransfer(me, 5, unit)]) | ok 5
dapps | lib=3 | if (true) then throw("no") else WriteSet([]) | refused no
dapps | lib=3 | TransferSet([ScriptTransfer(me, 5, smart)]) | refused Fee in WAVES for InvokeScriptT
dapps | lib=3, fee=900_000 | TransferSet([ScriptTransfer(me, 5, smart)]) | ok 6
light | | if (true) then throw("no") else [] | refused no
light | | heavy; if (h == 0) then throw("no") else [] | failed 1083 1 no
light | function="other" | [] | refused @Callable function 'other' doesn't exist in the script
light | function="call" | [] | refused function 'call exists in the script but is not marked as @Cal
light | args=(1,) | [] | refused function 'default takes 0 args but 1 were(was) given
light | args=((1, (2,)),) | [] | TransactionRejected All arguments of InvokeScript must be one of th
dapps | lib=3, args=((1,),) | WriteSet([]) | TransactionRejected All arguments of InvokeScript must
light | pays=((5, None), (5, GOLD)) | [] | ok 1
light | pays=((5, SMART),) | [] | ok 1
light | pays=((5, SMART),), smart="false" | [] | ScriptExecutionError Error while executing token-sc
light | pays=((5, SMART),), smart="false" | heavy; [] | failed 1082 4 Transaction is not allowed by
v5 | lib=4, pays=((5, None),) * 2 | [] | ok 1
v5 | lib=4, pays=((5, None),) * 3 | [] | TransactionRejected Script payment amount=3 should not exce
v5 | lib=3, pays=((5, None),) * 2 | WriteSet([]) | TransactionRejected DApp version 3 < 4 doesn't su
dapps | lib=3, pays=((5, None),) * 2 | WriteSet([]) | TransactionRejected Multiple payments isn't al
approved | lib=3, pays=((5, None),) * 2 | WriteSet([]) | TransactionRejected DApp version 3 < 4 does
dapps | lib=3 | TransferSet([ScriptTransfer(Alias("known"), 1, unit)]) | refused CallableFunction ne
approved | lib=3 | TransferSet([ScriptTransfer(Alias("known"), 1, unit)]) | ok 4
light | pays=((5, None),) | if (mine() == 1000000005) then [] else throw("") | ok 11
v5 | lib=4, pays=((5, None),) | if (mine() == 1000000000) then [] else throw("") | ok 15
light | | if (height == 10 && isDataStorageUntouched(this)) then [] else throw("") | ok 11
"""


@pytest.mark.parametrize(("rules", "given", "body", "outcome"), rows(TABLE))
def test_answers(rules: str, given: str, body: str, outcome: str) -> None:
    check(rules, given, body, outcome)


def test_strings_of_halves_are_rendered() -> None:
    """Where strings leave a run, they are plain ones, which JSON encoders know."""
    body = """
        strict x = invoke(next, "same", [halves], [])
        strict y = if (x == "😀") then halves + halves else throw("another string")
        ([StringEntry(y, y), Issue(y, y, 1, 0, false, unit, 0)], y)
    """
    _, applied = apply("light", body, more=HALVES, next_lib=6)
    assert not applied.status
    assert applied.changes.changes[DATA] == {(NEXT, "😀"): "😀", (YOU, "😀😀"): "😀😀"}
    told = applied.state_changes
    assert told is not None
    shown = msgspec.json.encode(to_json(told, lambda lease: {})).decode()
    assert shown.count("😀") == 11
    for entries in applied.changes.changes[DATA].items():
        assert type(entries[0][1]) is type(entries[1]) is str


def test_what_is_written() -> None:
    body = '[IntegerEntry("k", 1), DeleteEntry("d"), ScriptTransfer(me, 7, unit)]'
    _, applied = apply("light", body)
    changes = applied.changes.changes
    assert changes[DATA] == {(YOU, "k"): 1, (YOU, "d"): None}
    assert changes[WAVES] == {ME: 10 * COIN - 500_000 + 7, YOU: 10 * COIN - 7}
    assert applied.state_changes is not None
    assert len(applied.state_changes.actions) == 3


def test_what_comes_back_is_still_touched() -> None:
    _, applied = apply("light", "[ScriptTransfer(me, 5, unit)]", pays=((5, None),))
    assert applied.changes.changes[WAVES] == {ME: 10 * COIN - 500_000, YOU: 10 * COIN}


def test_new_assets_belong_to_the_dapp() -> None:
    _, applied = apply("light", '[Issue("name", "text", 1, 0, false, unit, 0)]')
    changes = applied.changes.changes
    ((asset_id, info),) = changes[ASSETS].items()
    assert info.issuer == OTHER.public_key
    assert info.nft
    assert changes[ASSET_BALANCES] == {(YOU, asset_id): 1}
    assert changes[ERC20] == {asset_id[:20]: asset_id}


ADDRESS = case_object("Address", {"bytes": ME})
LACKING: list[tuple[int, Value]] = [
    (3, case_object("WriteSet", {})),
    (3, case_object("TransferSet", {})),
    (3, case_object("ScriptResult", {"writeSet": case_object("WriteSet", {"data": NIL})})),
    (4, ride_list([case_object("ScriptTransfer", {"recipient": ADDRESS, "amount": 1})])),
    (5, ride_list([case_object("ScriptTransfer", {"recipient": ADDRESS, "asset": UNIT})])),
    (6, ride_list([case_object("ScriptTransfer", {})])),
    (
        6,
        ride_list(
            [
                case_object("Lease", {"recipient": each, "amount": 1, "nonce": 0})
                for each in (case_object("Address", {}), case_object("Alias", {}))
            ]
        ),
    ),
]


@pytest.mark.parametrize(("version", "answer"), LACKING)
def test_answers_without_a_field_are_crashes(version: int, answer: Value) -> None:
    """They use up all complexity, so that the transaction fails and is not refused: wavesplatform/
    Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ScriptResult.scala``
    (``fields(...)``, not ``fields.get``). Code that no compiler made calls constructors with too
    few arguments (``EvaluatorV2.scala``, ``evaluateConstructor``).
    """
    environment: Any = None
    with pytest.raises(NativeCrash, match="key not found"):
        read_result(answer, Reader(version, environment, b"", aliases=True))


ACTIONS = "BinaryEntry|BooleanEntry|Burn|DeleteEntry|IntegerEntry|Issue|{}Reissue|ScriptTransfer|"
LIST_V4 = f"List[{ACTIONS.format('')}SponsorFee|StringEntry]"
LIST = f"List[{ACTIONS.format('Lease|LeaseCancel|')}SponsorFee|StringEntry]"
V3, V4, V5 = "ScriptResult|TransferSet|WriteSet", LIST_V4, f"({LIST}, Any)|{LIST}"
ENTRY = case_object("IntegerEntry", {"key": "k", "value": "text"})
BURN = case_object("Burn", {"quantity": 5})
TWO = case_object("ScriptTransfer", {"recipient": ADDRESS, "amount": 1, "asset": 2})
WRONG: list[tuple[int, Value, str]] = [
    (3, 7, f"{V3}, but got '(7,V3)'"),
    (3, UNIT, f"{V3}, but got 'Unit'"),
    (3, case_object("WriteSet", {"data": 7}), f"{V3}, but got '7' instead of List(data)"),
    (4, UNIT, f"{V4}, but got '(Unit,V4)'"),
    (6, "text", f"{V5}, but got '(text,V6)'"),
    (6, UNIT, f"{V5}, but got 'Unit'"),
    (5, ride_list([7]), f"{V5}, but got '7'"),
    (4, ride_list([BURN]), f"{V4}, but got '(None,Some(5))' instead of Burn"),
    (
        5,
        ride_list([ENTRY]),
        f"{V5}, but got 'can't reconstruct IntegerEntry from Map(key -> k, value -> text)'",
    ),
    (5, ride_list([TWO]), f"{V5}, but got 'can't reconstruct token from 2'"),
]


@pytest.mark.parametrize(("version", "answer", "words"), WRONG)
def test_words_of_wrong_answers(version: int, answer: Value, words: str) -> None:
    """As wavesplatform/Waves ``.../lang/v1/evaluator/ScriptResult.scala`` (``err``) prints them."""
    environment: Any = None
    with pytest.raises(EvaluationError) as caught:
        read_result(answer, Reader(version, environment, b"", aliases=True))
    assert caught.value.message == f"CallableFunction needs to return {words}"


def test_a_crash_of_the_second_set_comes_before_an_error_of_the_first() -> None:
    """Both are read: ``processActionV3`` of the same file."""
    environment: Any = None
    reader = Reader(3, environment, b"", aliases=True)
    writes = case_object("WriteSet", {"data": ride_list([7])})
    for transfers, crashes in ((case_object("TransferSet", {}), True), (UNIT, False)):
        answer = case_object("ScriptResult", {"writeSet": writes, "transferSet": transfers})
        with pytest.raises(EvaluationError) as caught:
            read_result(answer, reader)
        assert isinstance(caught.value, NativeCrash) is crashes


def test_failed_calls_cost_their_fee() -> None:
    _, applied = apply("light", "strict h = heavy(); [ScriptTransfer(me, -1, unit)]")
    assert applied.status is Status.FAILED
    assert applied.changes.changes == {WAVES: {ME: 10 * COIN - 500_000}}


def test_fees_in_a_sponsored_asset() -> None:
    body = "heavy; [ScriptTransfer(me, -1, unit)]".replace("heavy;", "strict h = heavy();")
    for what in ("[ScriptTransfer(me, 5, unit)]", body):
        _, applied = apply("light", what, fee_asset=GOLD, sponsored=1, fee=5)
        changes, sent = applied.changes.changes, 0 if applied.status else 5
        assert changes[WAVES].get(ME, 10 * COIN) == 10 * COIN + sent
        assert changes[WAVES][SPONSOR] == 10 * COIN - 500_000
        assert changes[ASSET_BALANCES] == {(ME, GOLD): 995, (SPONSOR, GOLD): 5}
