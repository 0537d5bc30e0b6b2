"""Calls of dApps that Ethereum wallets signed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from soliton.chain.addresses import from_public_key, public_key_hash
from soliton.chain.ethereum_encoding import selector
from soliton.chain.transactions import ethereum
from soliton.errors import SolitonError
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import ACCOUNT_SCRIPTS, ASSET_BALANCES, DATA, WAVES, AccountScript
from soliton.ledger.transactions import Applied, apply_transaction
from soliton.ride.expressions import DApp
from soliton.ride.meta import Meta, write_meta
from soliton.ride.script import parse_script
from soliton.ride.serialization import write_script
from tests.ledger.cases import COIN, HEIGHT, OTHER, TIME, YOU, R, context_at
from tests.ledger.scripts.dapps import NETWORKS, SMART, dapp_of, state_of

KEY = b"k" * 32
NUMBER = '@Callable(i)\nfunc number(n: Int) = [IntegerEntry("n", n)]\n'
WAVES_ID = bytes(32)


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def call(function: str, numbers: tuple[int, ...], payments: tuple[tuple[bytes, int], ...]) -> bytes:
    """The call of a function of integers."""
    head = b"".join(map(word, numbers)) + word(32 * (len(numbers) + 1))
    tail = word(len(payments)) + b"".join(asset + word(amount) for asset, amount in payments)
    return selector(function, ("int64",) * len(numbers)) + head + tail


WITH_A_GAP = selector("default", ()) + word(33) + b"\0" + word(0)


def apply(rules: str, body: str, data: bytes, **given: Any) -> Applied:
    network = NETWORKS[rules]
    transaction = ethereum.sign(
        KEY, chain_id=R, timestamp=TIME, fee=500_000, to=public_key_hash(YOU), data=data
    )
    state = state_of(body, {"more": NUMBER, **given})
    sender = from_public_key(transaction.sender_public_key, R)
    if "script" in given:
        state.put(ACCOUNT_SCRIPTS, YOU, AccountScript(OTHER.public_key, given["script"], 0, {}))
    state.put(WAVES, sender, 10 * COIN)
    state.put(ASSET_BALANCES, (sender, SMART), 1_000)
    in_force = RuleBook(network).at(HEIGHT)
    context = context_at(HEIGHT, TIME, TIME - 1_000, in_force)
    return apply_transaction(transaction, state, context)


def test_arguments_and_payments() -> None:
    data = call("number", (7,), ((WAVES_ID, 5), (SMART, 2)))
    applied = apply("light", "[]", data)
    changes = applied.changes.changes
    assert changes[DATA] == {(YOU, "n"): 7}
    assert changes[WAVES][YOU] == 10 * COIN + 5
    assert changes[ASSET_BALANCES][(YOU, SMART)] == 1_002
    assert applied.status == 0


@pytest.mark.parametrize(
    ("rules", "data", "given", "words"),
    [
        ("light", b"\1\2\3\4", {}, "Function not defined: 01020304"),
        ("light", call("default", (), ()) + b"\0", {}, "unconsumed bytes: 1 remaining"),
        ("ride 6", call("default", (), ()) + b"\0", {}, "unconsumed bytes: 1 remaining"),
        ("light", WITH_A_GAP, {}, "Redundant bytes were found in Ethereum"),
        ("light", call("default", (), ((b"?" * 32, 1),)), {}, "Transfer error: asset '"),
        ("light", call("default", (), ((SMART, 0),)), {}, "non-positive amount: 0 of"),
        ("light", call("default", (), ((SMART, 1),)), {"smart": "false"}, "Error while executing"),
        ("light", call("default", (), ((SMART, 1_001),)), {}, "Accounts balance errors"),
    ],
)
def test_refusals(rules: str, data: bytes, given: dict[str, Any], words: str) -> None:
    with pytest.raises(SolitonError, match="^" + words.replace("?", r"\?")):
        apply(rules, "[]", data, **given)


def test_scripts_of_paid_assets_see_the_state_before_the_call() -> None:
    asked = """match tx {
        case call: InvokeScriptTransaction => wavesBalance(call.sender).regular == 1000000000
        case _ => false
    }"""
    data = call("default", (), ((WAVES_ID, 5), (SMART, 1)))
    assert apply("light", "[]", data, smart=asked).status == 0


def test_longer_data_was_allowed_once() -> None:
    assert apply("ride 6", "[]", WITH_A_GAP).status == 0


@pytest.mark.parametrize(
    ("signatures", "data", "words"),
    [
        ((b"\1\x08", b""), call("number", (7,), ()), None),
        ((b"\1\x03", b""), call("number", (7,), ()), None),
        ((b"", b""), call("number", (7,), ()), "Function not defined: "),
        ((b"", b""), call("number", (), ()), "takes 1 args but 0 were"),
        ((b"\1",), call("default", (), ()), "Function not defined: "),
        ((b"\1", b"", b"", b"", b"\1"), call("number", (7,), ()), None),
        ((b"\1", b"\x80"), call("number", (7,), ()), "Function not defined: "),
    ],
)
def test_metadata_that_does_not_fit_the_functions(
    signatures: tuple[bytes, ...], data: bytes, words: str | None
) -> None:
    """A hostile dApp may have it; types without a parameter do not count."""
    script = parse_script(dapp_of("[]", 6, NUMBER))
    assert isinstance(script.content, DApp)
    content = replace(script.content, meta=write_meta(Meta(2, signatures)))
    changed = write_script(script.version, content)
    if words is None:
        assert apply("light", "[]", data, script=changed).status == 0
        return
    with pytest.raises(SolitonError, match=words):
        apply("light", "[]", data, script=changed)


def test_of_functions_with_one_name_wallets_call_the_last() -> None:
    script = parse_script(dapp_of("[]", 6, NUMBER))
    assert isinstance(script.content, DApp)
    first, *others = script.content.callables
    others[0] = replace(others[0], function=replace(others[0].function, name="number"))
    changed = write_script(script.version, replace(script.content, callables=(first, *others)))
    with pytest.raises(SolitonError, match="Function not defined: "):
        apply("light", "[]", call("number", (7,), ()), script=changed)


def test_a_costly_call_fails() -> None:
    body = "strict h = heavy(); [ScriptTransfer(me, -1, unit)]"
    applied = apply("light", body, call("default", (), ()))
    assert applied.status == 1
    assert applied.state_changes is not None
    assert applied.state_changes.error is not None
