"""Two dApps and who calls them, for tables of what dApps may answer.

ME calls the function ``default`` of the dApp of YOU; a row gives its body. NEXT is another dApp,
for calls of dApps by dApps.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from soliton.chain.function_calls import FunctionCall
from soliton.chain.networks import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.table import type_by_id
from soliton.crypto import base58
from soliton.errors import SolitonError
from soliton.ledger.assets import erc20_address
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.scripts import InvocationRejected
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    ERC20,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    AccountScript,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    LeaseBalance,
    LeaseInfo,
    LeaseState,
)
from soliton.ledger.transactions import Applied, apply_transaction
from soliton.ride.compiler.compile import compile_source
from tests.ledger import cases
from tests.ledger.cases import (
    COIN,
    GOLD,
    HEIGHT,
    ISSUER,
    ME,
    OTHER,
    PAPER,
    SENDER,
    SPONSOR,
    TIME,
    YOU,
    R,
)
from tests.ledger.memory import MemoryState

NEXT = SPONSOR
SMART, OWN = b"s" * 32, b"o" * 32


def changed(name: str, **settings: int) -> Network:
    """A network of the other tables where leased coins are protected, and with other settings."""
    network = cases.NETWORKS[name]
    functionality = msgspec.structs.replace(
        network.functionality, block_version_3_after_height=1, **settings
    )
    return msgspec.structs.replace(network, functionality=functionality)


NETWORKS = {
    **{name: changed(name) for name in cases.NETWORKS},
    # Transfers of dApps are looked at from a height on, in the time of feature 16.
    "validated": changed("calls", enforce_transfer_validation_after=1),
    "calls": changed("calls", enforce_transfer_validation_after=1_000),
}
HEAD = f"""
{{-# CONTENT_TYPE DAPP #-}}
{{-# SCRIPT_TYPE ACCOUNT #-}}
let me = Address(base58'{base58.encode(ME)}')
let you = Address(base58'{base58.encode(YOU)}')
let next = Address(base58'{base58.encode(NEXT)}')
let gold = base58'{base58.encode(GOLD)}'
let smart = base58'{base58.encode(SMART)}'
let own = base58'{base58.encode(OWN)}'
func slow() = sigVerify(base58'', base58'', base58'')
"""
"""Slow takes 200 in most versions, 180 from version 6 on."""
HEAVY = """
func heavy() = if (slow() || slow() || slow() || slow() || slow() || slow()) then 1 else 0
func call(name: String) = invoke(next, name, [], [])
func pay(amount: Int, asset: ByteVector|Unit) =
    invoke(next, "paid", [], [AttachedPayment(asset, amount)])
"""
SECOND = """
@Callable(i)
func nothing() = []
@Callable(i)
func give(amount: Int) = ([ScriptTransfer(i.caller, amount, unit)], amount + 1)
@Callable(i)
func break() = if (true) then throw("broken") else []
@Callable(i)
func breakLater() = { strict h = heavy(); if (h == 0) then throw("broken") else [] }
@Callable(i)
func back() = { strict x = invoke(i.caller, "empty", [], []); [] }
@Callable(i)
func one() = ([IntegerEntry("n", 1)], 1)
@Callable(i)
func minus() = [ScriptTransfer(me, -1, unit)]
@Callable(i)
func caller() = ([], if (i.originCaller == me && i.caller == you) then 1 else 0)
@Callable(i)
func many() = [
    Burn(gold, 0), Burn(gold, 0), Burn(gold, 0), Burn(gold, 0),
    Burn(gold, 0), Burn(gold, 0), Burn(gold, 0), Burn(gold, 0),
    Burn(gold, 0), Burn(gold, 0), Burn(gold, 0), Burn(gold, 0),
    Burn(gold, 0), Burn(gold, 0), Burn(gold, 0), Burn(gold, 0)
]
@Callable(i)
func spend() = [ScriptTransfer(me, 1100000000, unit)]
@Callable(i)
func leave() = [Lease(me, 1000000000), ScriptTransfer(me, 1, unit)]
@Callable(i)
func paid() = ([], size(i.payments))
@Callable(i)
func sponsor(fee: Int) = [SponsorFee(gold, if (fee == 0) then unit else fee)]
@Callable(i)
func least() = ([], wavesBalance(this).generating)
@Callable(i)
func same(text: String) = ([StringEntry(take(text, 1), take(text, 2))], text)
"""


@lru_cache(256)
def compiled(version: int, text: str) -> bytes:
    source = f"{{-# STDLIB_VERSION {version} #-}}{HEAD}{text}"
    return compile_source(source, check_complexity=False).script.source


def dapp_of(body: str, version: int, more: str) -> bytes:
    heavy = HEAVY if version >= 5 else ""
    if version >= 4:
        heavy += "func mine() = wavesBalance(this).regular\n"
    text = f"{heavy}{more}\n@Callable(i)\nfunc default() = {{ {body} }}\n"
    if version >= 5:
        text += "@Callable(i)\nfunc empty() = []\n"
    return compiled(version, text)


@lru_cache(16)
def asset_code(answer: str) -> bytes:
    head = "{-# STDLIB_VERSION 4 #-}\n{-# SCRIPT_TYPE ASSET #-}\n"
    return compile_source(head + answer, check_complexity=False).script.source


def state_of(body: str, given: dict[str, Any]) -> MemoryState:
    state = MemoryState()
    state.put(ALIASES, "known", YOU)
    for address in (ME, YOU, NEXT):
        state.put(WAVES, address, 10 * COIN)
    for asset_id in (GOLD, PAPER, SMART, OWN):
        issuer = OTHER if asset_id == OWN else ISSUER
        state.put(ASSETS, asset_id, AssetInfo(issuer.public_key, 2, False, asset_id, 1, 1))
        state.put(ASSET_VOLUMES, asset_id, AssetVolume(True, 2_000))
        state.put(ASSET_NAMES, asset_id, AssetName(b"name", b"", 1))
        state.put(ERC20, erc20_address(asset_id), asset_id)
        for address in (ME, YOU):
            state.put(ASSET_BALANCES, (address, asset_id), 1_000)
    if "leased" in given:
        lent = given["leased"] * COIN
        state.put(LEASES, YOU, LeaseBalance(0, lent))
        state.put(LEASES, ME, LeaseBalance(lent, 0))
        state.put(LEASE_INFO, OWN, LeaseInfo(OTHER.public_key, ME, lent, OWN, 1))
        state.put(LEASE_STATES, OWN, LeaseState(True, 0, b""))
    state.put(SPONSORSHIPS, GOLD, given.get("sponsored", 0))
    code = asset_code(given.get("smart", "true"))
    state.put(ASSET_SCRIPTS, SMART, AssetScript(code, given.get("smart_complexity", 1)))
    first = dapp_of(body, given.get("lib", 6), given.get("more", ""))
    second = compiled(given.get("next_lib", 6), HEAVY + SECOND)
    for pair, address, script in ((OTHER, YOU, first), (ISSUER, NEXT, second)):
        state.put(ACCOUNT_SCRIPTS, address, AccountScript(pair.public_key, script, 0, {}))
    return state


def apply(rules: str, body: str, **given: Any) -> tuple[MemoryState, Applied]:
    """Call the dApp; raises what ``apply_transaction`` raises."""
    state = state_of(body, given)
    call = FunctionCall(given.get("function", "default"), given.get("args", ()))
    transaction = codec.build(
        type_by_id(16),
        InvokeScript(YOU, call, tuple(Payment(*each) for each in given.get("pays", ()))),
        version=given.get("version", 1),
        chain_id=R,
        sender_public_key=SENDER.public_key,
        fee=given.get("fee", 500_000),
        fee_asset_id=given.get("fee_asset"),
        timestamp=TIME,
    )
    signed = codec.sign(transaction, SENDER.private_key)
    network = NETWORKS[rules]
    in_force = RuleBook(network).at(HEIGHT)
    context = cases.context_at(HEIGHT, TIME, TIME - 1_000, in_force)
    return state, apply_transaction(signed, state, context)


def check_conservation(state: MemoryState, applied: Applied, fee: int) -> None:
    """Whatever a dApp does: coins only leave as the fee, assets only come and go by their issue."""
    changes = applied.changes.changes
    coins = sum(new - state.get(WAVES, key) for key, new in changes.get(WAVES, {}).items())
    assert coins == -fee
    moved: dict[bytes, int] = {}
    for key, new in changes.get(ASSET_BALANCES, {}).items():
        moved[key[1]] = moved.get(key[1], 0) + new - state.get(ASSET_BALANCES, key)
    for asset_id, volume in changes.get(ASSET_VOLUMES, {}).items():
        before = state.get(ASSET_VOLUMES, asset_id)
        made = volume.quantity - (0 if before is None else before.quantity)
        assert moved.pop(asset_id, 0) == made
    assert not any(moved.values())
    leases = changes.get(LEASES, {}).values()
    assert sum(each.lease_in - each.lease_out for each in leases) == 0


def outcome_of(rules: str, body: str, **given: Any) -> str:
    """``ok`` or ``failed`` with the complexity, ``refused`` for an error that costs nothing, or
    any other error as text.
    """
    try:
        state, applied = apply(rules, body, **given)
    except InvocationRejected as error:
        return f"refused {error.reason}"
    except SolitonError as error:
        return f"{type(error).__name__} {getattr(error, 'details', None) or error}"
    check_conservation(state, applied, given.get("fee", 500_000))
    if not applied.status:
        return f"ok {applied.complexity}"
    assert applied.state_changes is not None
    assert applied.state_changes.error is not None
    error_message = applied.state_changes.error
    return f"failed {applied.complexity} {error_message.code} {error_message.text}"


KEY = """
func five(text: String) = text + text + text + text + text
func key(length: Int) = take(five(five(five(five("0123456789")))), length)
"""
"""Texts of up to 6250 characters."""
HALVES = """
let halves = dropRight("a😀", 1).drop(1) + takeRight("a😀", 1)
func four(text: String) = text + text + text + text
func much(text: String) = {
    let few = four(four(four(four(four(text)))))
    four(few) + four(few)
}
"""
"""A character that weighs two bytes; a string 8,192 times."""
BREAK = 'if (true) then throw("no") else true'
RELEASE = """
@Callable(i)
func release() = [LeaseCancel(own)]
"""
TEXTS = {"RELEASE": RELEASE, "KEY": KEY, "HALVES": HALVES, "BREAK": BREAK}
NAMES = {"GOLD": GOLD, "SMART": SMART, "dict": dict, **TEXTS}


def rows(table: str) -> list[tuple[str, str, str, str]]:
    found = []
    for line in table.strip().splitlines():
        rules, given, body, outcome = (cell.strip() for cell in re.split(r" \|(?= )", line))
        found.append((rules, given, body, outcome))
    return found


def check(rules: str, given: str, body: str, outcome: str) -> None:
    body = body.replace("heavy;", "strict h = heavy();")
    found = outcome_of(rules, body, **eval(f"dict({given})", dict(NAMES)))
    assert found.startswith(outcome), found
