"""Text tables for the types that came after transfers: one valid transaction of each, what a row
changes of it, and the state on which it is applied.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from soliton.chain import orders, typed_data
from soliton.chain.addresses import Address, Alias, from_public_key, public_key_hash
from soliton.chain.ethereum_encoding import read_rlp_list, rlp_list, rlp_number
from soliton.chain.function_calls import FunctionCall
from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.transactions import codec, ethereum
from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.reissue import Reissue
from soliton.chain.transactions.set_asset_script import SetAssetScript
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.sponsor_fee import SponsorFee
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
from soliton.chain.values import AssetId
from soliton.crypto import secp256k1
from soliton.crypto.curve25519 import SignedMessage
from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.ledger import fees, invocation, script_runs, script_setting
from soliton.ledger.assets import erc20_address
from soliton.ledger.context import Context
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import RuleBook, Rules
from soliton.ledger.script_setting import ScriptHead
from soliton.ledger.scripts import (
    FailedTransaction,
    NotAllowedByScript,
    ScriptExecutionError,
    asset_script,
)
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
    ORDER_FILLS,
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
    OrderFill,
    Overlay,
    State,
)
from soliton.ledger.state_changes import Invoked, StateChanges
from soliton.ledger.transactions import Applied, apply_transaction
from soliton.ride.estimators.choice import Complexities
from tests.ledger import cases
from tests.ledger.cases import COIN, HEIGHT, ISSUER, ME, OTHER, SENDER, SPONSOR, TIME, YOU, R
from tests.ledger.memory import MemoryState

GOLD, SMART, ALIEN = b"g" * 32, b"s" * 32, b"x" * 32
"""Gold and the smart asset are the sender's, alien is another issuer's."""
LEASE_ID, ENDED_ID, FOREIGN_ID = b"l" * 32, b"e" * 32, b"f" * 32
WALLET = b"\7" * 32
WALLET_KEY = secp256k1.public_key(WALLET)
WALLET_ADDRESS = from_public_key(WALLET_KEY, R)


def script(
    version: int = 4,
    verdict: str = "yes",
    complexity: int = 10,
    size: int = 0,
    *,
    dapp: bool = False,
) -> bytes:
    """A script for ``puppets``: what it is, and how it is to end."""
    head = bytes((0, 2, version)) if dapp else bytes((version,))
    return (head + f"{verdict} {complexity} ".encode()).ljust(size, b".")


@contextlib.contextmanager
def puppets() -> Iterator[None]:
    """The scripts of ``script`` are run here in place of real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script_setting, "inspect", _inspect)
        patch.setattr(script_setting, "estimate", _estimate)
        patch.setattr(script_setting, "check_form", lambda _script: None)
        patch.setattr(script_runs, "run_account", lambda _, code, *_rest: _run(code.script, None))
        patch.setattr(script_runs, "run_asset", _run_asset)
        patch.setattr(invocation, "invoke", _invoke)
        patch.setattr(
            invocation,
            "invoke_by_wallet",
            lambda transaction, action, *rest: _invoke(action.d_app, transaction, *rest),
        )
        yield


def _inspect(code: bytes) -> ScriptHead:
    dapp = code[0] == 0
    arrays, blocks = b"arrays" in code, b"blocks" in code
    return ScriptHead(code[2 if dapp else 0], dapp, arrays, blocks)


def _estimate(code: bytes, _for_asset: bool, _context: Context) -> Complexities:
    complexity = _complexity(code)
    if b"functions" in code:
        return Complexities(0, {3: {"call": complexity}})
    return Complexities(complexity)


def _run_asset(
    asset_id: AssetId, _transaction: AnyTransaction, state: State, *_context: object
) -> int:
    return _run(asset_script(asset_id, state).script, asset_id)


def _invoke(
    dapp: Address, transaction: AnyTransaction, overlay: Overlay, context: Context
) -> Invoked:
    code = overlay.get(ACCOUNT_SCRIPTS, dapp)
    assert code is not None
    if b"fail" in code.script:
        raise FailedTransaction(1, "the call fails", _complexity(code.script))
    portfolio = Portfolio()
    if b"overdraw" in code.script:
        portfolio.add(dapp, None, -100 * COIN)
    sender = from_public_key(transaction.sender_public_key, context.rules.chain_id)
    for payment in getattr(transaction.payload, "payments", ()):
        portfolio.add(sender, payment.asset_id, -payment.amount)
        portfolio.add(dapp, payment.asset_id, payment.amount)
    fees.add_fee(transaction, portfolio, overlay, context.rules)
    portfolio.write(overlay)
    return Invoked(_complexity(code.script), StateChanges())


def _complexity(code: bytes) -> int:
    return int(code[3 if code[0] == 0 else 1 :].split(b" ")[1])


def _run(code: bytes, asset_id: AssetId | None) -> int:
    complexity = _complexity(code)
    if b"no " in code:
        raise NotAllowedByScript(asset_id, complexity)
    if b"error" in code:
        raise ScriptExecutionError("broken", asset_id, complexity)
    return complexity


# --- the rules ------------------------------------------------------------------------------------

NETWORKS = {
    **cases.NETWORKS,
    "lax cancel": cases.network(
        range(1, 15),
        allow_multiple_lease_cancel_until=2 * TIME,
        allow_invalid_reissue_in_same_block_until=2 * TIME,
    ),
    "stolen": cases.network(range(1, 5), disable_hijacked_aliases_height=20),
    "smart trade": cases.network(range(1, 11)),
    "orders 3": cases.network(range(1, 15)),
    "overflow": cases.network(range(1, 18), estimation_overflow_fix_height=20),
    "sums": cases.network(range(1, 18), estimator_sum_overflow_fix_height=20),
}


def rules_of(name: str, height: int) -> Rules:
    return RuleBook(NETWORKS[name]).at(height)


# --- the state ------------------------------------------------------------------------------------


def state_of(given: dict[str, Any]) -> MemoryState:
    """Three rich accounts and a wallet, three assets, three leases."""
    state = MemoryState()
    state.put(WAVES, ME, given.get("waves", 10 * COIN))
    for address in (YOU, SPONSOR, WALLET_ADDRESS):
        state.put(WAVES, address, given.get("others", 10 * COIN))
    state.put(LEASES, ME, LeaseBalance(0, given.get("lease_out", COIN)))
    state.put(LEASES, YOU, LeaseBalance(2 * COIN, 0))
    _put_assets(state, given)
    _put_leases(state)
    state.put(ALIASES, "known", YOU)
    state.put(ALIASES, "mine", ME)
    for name, address in (("mine", ME), ("yours", YOU), ("theirs", SPONSOR)):
        if name in given:
            state.put(ACCOUNT_SCRIPTS, address, AccountScript(b"", given[name], 300, {}))
    return state


def _put_assets(state: MemoryState, given: dict[str, Any]) -> None:
    volume = given.get("volume", AssetVolume(True, 10_000))
    for asset_id, issuer in ((GOLD, SENDER), (SMART, SENDER), (ALIEN, ISSUER)):
        info = AssetInfo(issuer.public_key, given.get("decimals", 2), False, asset_id, 1, 1)
        state.put(ASSETS, asset_id, info)
        state.put(ASSET_VOLUMES, asset_id, volume)
        state.put(ASSET_NAMES, asset_id, AssetName(b"name", b"", given.get("named_at", 1)))
        state.put(ERC20, erc20_address(asset_id), asset_id)
        for address in (ME, YOU, SPONSOR, WALLET_ADDRESS):
            state.put(ASSET_BALANCES, (address, asset_id), 1_000)
    state.put(ASSET_SCRIPTS, SMART, AssetScript(given.get("smart_code", script()), 10))
    state.put(SPONSORSHIPS, GOLD, given.get("sponsored", 0))


def _put_leases(state: MemoryState) -> None:
    for lease_id, owner in ((LEASE_ID, SENDER), (ENDED_ID, SENDER), (FOREIGN_ID, ISSUER)):
        state.put(LEASE_INFO, lease_id, LeaseInfo(owner.public_key, YOU, COIN, lease_id, 2))
        ended = lease_id == ENDED_ID
        state.put(LEASE_STATES, lease_id, LeaseState(not ended, 3 if ended else 0, b""))


# --- a transaction --------------------------------------------------------------------------------

FEES = {
    "issue": COIN,
    "reissue": COIN,
    "exchange": 300_000,
    "mass_transfer": 200_000,
    "set_script": 1_000_000,
    "sponsor_fee": COIN,
    "set_asset_script": COIN,
    "invoke_script": 500_000,
}
TYPES = {
    "issue": 3,
    "reissue": 5,
    "burn": 6,
    "exchange": 7,
    "lease": 8,
    "lease_cancel": 9,
    "create_alias": 10,
    "mass_transfer": 11,
    "set_script": 13,
    "sponsor_fee": 14,
    "set_asset_script": 15,
    "invoke_script": 16,
    "update_asset_info": 17,
}


def payload_of(kind: str, given: dict[str, Any]) -> Any:
    get = given.get
    asset = get("asset", GOLD)
    match kind:
        case "issue":
            return Issue(
                get("name", b"name"),
                get("text", b""),
                get("quantity", 1_000),
                get("decimals", 2),
                get("reissuable", True),
                get("code"),
            )
        case "reissue":
            return Reissue(asset, get("quantity", 1), get("reissuable", True))
        case "burn":
            return Burn(asset, get("quantity", 1))
        case "lease":
            return Lease(get("to", YOU), get("amount", COIN))
        case "lease_cancel":
            return LeaseCancel(get("lease", LEASE_ID))
        case "create_alias":
            return CreateAlias(Alias(get("alias_chain", R), get("name", "free")))
        case "mass_transfer":
            transfers = tuple(TransferItem(to, amount) for to, amount in get("to", ((YOU, COIN),)))
            return MassTransfer(get("asset"), transfers, get("attachment", b""))
        case "set_script":
            return SetScript(get("code"))
        case "sponsor_fee":
            return SponsorFee(asset, get("min_fee", 1))
        case "set_asset_script":
            return SetAssetScript(get("asset", SMART), get("code", script()))
        case "invoke_script":
            payments = tuple(Payment(amount, paid) for amount, paid in get("payments", ()))
            call = FunctionCall(get("function", "call"), ())
            return InvokeScript(get("to", YOU), call, payments)
        case _:
            return UpdateAssetInfo(asset, get("name", b"other"), get("text", b""))


def order_of(side: Side, given: dict[str, Any]) -> Order:
    """An order of the table's exchange; ``buy_`` and ``sell_`` members differ from the others."""

    def get(name: str, default: Any) -> Any:
        return given.get(f"{side.name.lower()}_{name}", given.get(name, default))

    owner: KeyPair = OTHER if side is Side.BUY else ISSUER
    order = orders.build(
        Order(
            version=get("orders", 1),
            chain_id=R,
            sender_public_key=get("owner", owner).public_key,
            matcher_public_key=SENDER.public_key,
            amount_asset=get("base", GOLD),
            price_asset=get("quote", None),
            side=get("side", side),
            amount=get("offer", 100),
            price=get("limit", COIN),
            timestamp=TIME,
            expiration=get("expiration", TIME + 1_000),
            matcher_fee=get("matcher_fee", 300_000),
            matcher_fee_asset=get("paid_in", None),
            price_mode=PriceMode(get("mode", 0)),
            attachment=get("attachment", None),
        )
    )
    if get("wallet", False):
        number = secp256k1.sign(WALLET, typed_data.order_hash(order))
        last = number.recovery_id + get("v", 27)
        half = get("half", 32)
        signature = number.r.to_bytes(half, "big") + number.s.to_bytes(half, "big") + bytes((last,))
        return orders.build(msgspec.structs.replace(order, eip712_signature=signature))
    signed = orders.sign(order, get("signer", owner).private_key)
    return msgspec.structs.replace(signed, proofs=get("order_proofs", signed.proofs))


def _exchange(given: dict[str, Any]) -> Exchange:
    sides = (Side.SELL, Side.BUY) if given.get("swapped") else (Side.BUY, Side.SELL)
    first, second = (order_of(side, given) for side in sides)
    return Exchange(
        first,
        second,
        given.get("amount", 100),
        given.get("price", COIN),
        given.get("buy_fee", given.get("fees", 300_000)),
        given.get("sell_fee", given.get("fees", 300_000)),
    )


def _ethereum(given: dict[str, Any]) -> AnyTransaction:
    get = given.get
    token = get("token")
    data = get("data", b"")
    to = public_key_hash(get("to", YOU))
    if token is not None:
        recipient = to.rjust(32, b"\0")
        data = ethereum.TRANSFER_SELECTOR + recipient + get("amount", 1).to_bytes(32, "big")
        to = token
    signed = ethereum.sign(
        get("wallet_key", WALLET),
        chain_id=get("chain_id", R),
        timestamp=TIME + get("later", 0),
        fee=get("fee", 100_000),
        to=to,
        value=get("value", 0 if data else 10**18),
        data=data + get("surplus", b""),
    )
    if not get("high") and not get("more_v"):
        return signed
    # Other forms of the same signature.
    v, s = signed.payload.v + get("more_v", 0), signed.payload.s
    if get("high"):
        odd = (v - ethereum.EIP155_OFFSET) % 2
        v, s = v + 1 - 2 * odd, secp256k1.ORDER - s
    items = read_rlp_list(signed.payload.encoded)
    changed = [*items[:6], rlp_number(v), items[7], rlp_number(s)]
    other = ethereum.from_rlp(rlp_list(changed), signed.chain_id)
    assert other.sender_public_key == signed.sender_public_key
    return other


def make(kind: str, given: dict[str, Any]) -> AnyTransaction:
    """The kind's transaction with what is given."""
    if kind == "ethereum":
        return _ethereum(given)
    transaction = codec.build(
        type_by_id(TYPES[kind]),
        _exchange(given) if kind == "exchange" else payload_of(kind, given),
        version=given.get("version", 1),
        chain_id=given.get("chain_id", R),
        sender_public_key=given.get("key", SENDER).public_key,
        fee=given.get("fee", FEES.get(kind, 100_000)),
        fee_asset_id=given.get("fee_asset"),
        timestamp=TIME + given.get("later", 0),
    )
    signed = codec.sign(transaction, given.get("signer", given.get("key", SENDER)).private_key)
    return codec.with_proofs(signed, given.get("proofs", signed.proofs))


def apply(
    kind: str,
    rules: str,
    given: dict[str, Any],
    unverified: list[SignedMessage] | None = None,
) -> Applied:
    """Check and apply the transaction; raises what it raises."""
    height = given.get("height", HEIGHT)
    state = state_of(given)
    transaction = make(kind, given)
    if given.get("seen_at"):
        state.transactions[transaction.id] = given["seen_at"]
    if given.get("issued"):
        state.put(ERC20, erc20_address(transaction.id), ALIEN)
    if kind == "exchange":
        for name, order in zip(("buy", "sell"), transaction.payload.orders, strict=True):
            state.put(ORDER_FILLS, order.id, OrderFill(*given.get(f"{name}_filled", (0, 0))))
    if kind == "lease" and given.get("exists"):
        info = LeaseInfo(SENDER.public_key, YOU, 1, transaction.id, 2)
        state.put(LEASE_INFO, transaction.id, info)
    codec.validate(transaction)
    in_force = rules_of(rules, height)
    if "disabled" in given:
        aliases = frozenset(given["disabled"])
        in_force = msgspec.structs.replace(in_force, disabled_aliases=aliases)
    deferred = [] if unverified is None else unverified
    context = cases.context_at(height, TIME, TIME - 1_000, in_force, unverified=deferred)
    with puppets():
        return apply_transaction(transaction, state, context, verify_signature=unverified is None)


def run(kind: str, rules: str, given: dict[str, Any]) -> str:
    """``ok``, ``failed``, or the error as text."""
    try:
        applied = apply(kind, rules, given)
    except SolitonError as error:
        return f"{type(error).__name__} {getattr(error, 'details', None) or error}"
    return "failed" if applied.status else "ok"


NAMES = {
    **cases.NAMES,
    "SMART": SMART,
    "ALIEN": ALIEN,
    "NOTHING": b"n" * 32,
    "SENDER": SENDER,
    "ISSUER": ISSUER,
    "SPONSOR": SPONSOR,
    "LEASE": LEASE_ID,
    "ENDED": ENDED_ID,
    "FOREIGN": FOREIGN_ID,
    "Volume": AssetVolume,
    "WALLET": WALLET_ADDRESS,
    "TIME": TIME,
    "script": script,
    "TRUE": script(),
    "NO": script(verdict="no"),
    "ERROR": script(verdict="error"),
    "DAPP": script(dapp=True),
    "DAPP3": script(3, dapp=True),
    "fails": functools.partial(script, 4, "fail", dapp=True),
    "overdraws": functools.partial(script, 4, "overdraw", dapp=True),
}


def check(kind: str, rules: str, changes: str, outcome: str) -> None:
    """Run a row of a table."""
    given = eval(f"dict({changes})", dict(NAMES))
    found = run(kind, rules, given)
    assert found == outcome if outcome in ("ok", "failed") else found.startswith(outcome), found
