"""Verifiers of accounts and scripts of assets: what they see, and what they may take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from soliton.chain.addresses import public_key_hash
from soliton.chain.layouts import lenient_text
from soliton.chain.orders import Order, Side, build
from soliton.chain.transactions import codec, ethereum
from soliton.chain.transactions.commit_to_generation import CommitToGeneration
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import DataEntry
from soliton.crypto.base58 import encode
from soliton.errors import SolitonError
from soliton.ledger import script_runs
from soliton.ledger.context import Context
from soliton.ledger.environment import PastTransaction
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.scripts import NotAllowedByScript, ScriptExecutionError
from soliton.ledger.state import (
    ASSET_NAMES,
    ASSET_SCRIPTS,
    AccountScript,
    AssetName,
    AssetScript,
    Status,
)
from soliton.ride.compiler.compile import compile_source
from soliton.ride.expressions import StringConst
from soliton.ride.script import make_script
from tests.ledger.cases import GOLD, HEIGHT, ME, OTHER, SENDER, TIME, YOU, R, context_at
from tests.ledger.scripts.dapps import NETWORKS, SMART, rows, state_of


def order(side: Side, version: int = 3) -> Order:
    return build(
        Order(
            version=version,
            chain_id=R,
            sender_public_key=OTHER.public_key,
            matcher_public_key=SENDER.public_key,
            amount_asset=None,
            price_asset=GOLD,
            side=side,
            amount=10**8,
            price=5,
            timestamp=TIME - 1_000,
            expiration=TIME + 100_000,
            matcher_fee=300_000,
        )
    )


ENTRIES = (DataEntry("a", 1), DataEntry("b", True), DataEntry("c", b"x"), DataEntry("d", "t"))
KINDS: dict[str, tuple[int, int, Any]] = {
    "transfer": (4, 2, Transfer(YOU, None, 5, b"a")),
    "data": (12, 1, Data(ENTRIES)),
    "issue": (3, 2, Issue(b"name", b"text", 5, 2, True, None)),
    "mass": (11, 1, MassTransfer(None, (TransferItem(YOU, 5), TransferItem(ME, 7)), b"")),
    "lease": (8, 2, Lease(YOU, 5)),
    "set": (13, 2, SetScript(b"\1" * 32_768)),
    "invoke": (16, 1, InvokeScript(YOU, None, (Payment(5, GOLD),))),
    "pays": (16, 1, InvokeScript(YOU, None, (Payment(5, GOLD),) * 3)),
    "commit": (19, 1, CommitToGeneration(7, b"k" * 48, b"s" * 96)),
    "exchange": (7, 2, Exchange(order(Side.BUY), order(Side.SELL), 10**8, 5, 1, 1)),
}
TABLE = r"""
light | | true | ok 0
light | | false | no
light | | if (true) then throw("no") else true | broke off: no
light | | sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey) | ok 182
light | lib=3 | sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey) | ok 102
light | lib=1 | sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey) | ok 102
dapps | lib=3 | sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey) | ok 77
light | | tx.proofs.size() == 8 && tx.proofs[1] == base58'' | ok 6
light | | slow() && slow() && slow() && slow() && slow() && slow() | ok 1086
light | | many() && many() | broke off: Verifier complexity limit = 2000 is exceeded
dapps | lib=3 | many() && many() | ok 77
light | | T.amount == 5 && T.feeAssetId == unit && T.sender == this && height == 10 | ok 5
light | asset=1 | T.amount == 5 && this.id == smart && this.quantity == 2000 | ok 4
light | asset=1, lib=3 | this.sponsored | no
light | kind="data" | getIntegerValue(D.data, "a") == 1 && getStringValue(D.data, 3) == "t" | ok 17
light | kind="data" | getBooleanValue(D.data, "b") && D.data.size() == 4 | ok 14
light | kind="issue" | I.name == "name" && I.script == unit && I.decimals == 2 | ok 4
light | kind="issue", lib=3 | I.name == toBytes("name") && I.reissuable | ok 3
light | kind="mass" | M.totalAmount == 12 && M.transfers[1].amount == 7 | ok 5
light | kind="lease" | L.amount == 5 | ok 2
light | kind="set" | isDefined(S.script) | ok 2
ride 6 | kind="set" | isDefined(S.script) | no
light | kind="invoke" | C.function == "default" && C.args == nil && C.payments[0].amount == 5 | ok 6
light | kind="invoke", lib=3 | C.payment.value().amount == 5 | ok 15
light | kind="pays", lib=3 | true | broke off: Invoker script version 3 < 4 doesn't support
light | kind="pays", lib=4 | true | broke off: Script payment amount=3 should not exceed 2
dapps | kind="pays", lib=3 | true | broke off: Multiple payments isn't allowed now
light | kind="pays" | C.payments.size() == 3 | ok 4
light | kind="pays", lib=4, asset=1 | true | broke off: Script payment amount=3
light | kind="exchange" | X.buyOrder.orderType == Buy && X.sellOrder.price == 5 | ok 3
light | kind="exchange", asset=1 | X.buyOrder.amount == 100000000 | ok 2
light | order=3 | O.matcherFee == 300000 && O.sender == this && O.proofs.size() == 8 | ok 6
light | order=4, lib=8 | O.attachment == unit | ok 2
finality | kind="commit", lib=9 | G.generationPeriodStart == 7 | ok 2
finality | kind="commit", lib=9 | G.endorserPublicKey.size() == 48 | ok 3
finality | kind="commit", lib=9 | G.commitmentSignature.size() == 96 && G.sender == this | ok 4
finality | kind="commit", lib=9 | sigVerify(G.bodyBytes, G.proofs[0], G.senderPublicKey) | ok 182
finality | kind="commit", lib=8 | T.fee == 1 | broke off: Explicit script termination
"""
TYPES = {
    "T": "TransferTransaction",
    "D": "DataTransaction",
    "I": "IssueTransaction",
    "M": "MassTransferTransaction",
    "L": "LeaseTransaction",
    "S": "SetScriptTransaction",
    "C": "InvokeScriptTransaction",
    "X": "ExchangeTransaction",
    "G": "CommitToGenerationTransaction",
    "O": "Order",
}


def compiled(body: str, version: int, kind: str) -> bytes:
    head = f"{{-# STDLIB_VERSION {version} #-}}\n{{-# SCRIPT_TYPE {kind} #-}}\n"
    for letter, name in TYPES.items():
        if f"{letter}." in body:
            body = f"match tx {{ case {letter}: {name} => {body}\n case _ => throw() }}"
    if "gold" in body:
        head += f"let gold = base16'{GOLD.hex()}'\n"
    if "smart" in body:
        head += f"let smart = base16'{SMART.hex()}'\n"
    if "slow" in body or "many" in body:
        head += "func slow() = !sigVerify(base58'', base58'', base58'')\n"
    if "many" in body:
        head += f"func many() = {' && '.join(['slow()'] * 6)}\n"
    return compile_source(head + body, check_complexity=False).script.source


def subject_of(given: dict[str, Any]) -> AnyTransaction | Order:
    if "order" in given:
        return order(Side.BUY, given["order"])
    type_id, version, payload = KINDS[given.get("kind", "transfer")]
    transaction = codec.build(
        type_by_id(type_id),
        payload,
        version=version,
        chain_id=R,
        sender_public_key=SENDER.public_key,
        fee=900_000,
        timestamp=TIME,
    )
    return codec.sign(transaction, SENDER.private_key)


def ask(rules: str, body: str, given: dict[str, Any]) -> str:
    network = NETWORKS[rules]
    context = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(network).at(HEIGHT))
    state, subject = state_of("[]", {}), subject_of(given)
    kind = "ASSET" if "asset" in given else "ACCOUNT"
    code = compiled(body, given.get("lib", 6), kind)
    try:
        if kind == "ASSET":
            assert not isinstance(subject, Order)
            state.put(ASSET_SCRIPTS, SMART, AssetScript(code, 77))
            return f"ok {script_runs.run_asset(SMART, subject, state, context)}"
        script = AccountScript(SENDER.public_key, code, 77, {})
        owner = YOU if isinstance(subject, Order) else ME
        return f"ok {script_runs.run_account(owner, script, subject, state, context)}"
    except NotAllowedByScript:
        return "no"
    except ScriptExecutionError as error:
        return f"broke off: {error.reason}"


@pytest.mark.parametrize(("rules", "given", "body", "outcome"), rows(TABLE))
def test_verifiers(rules: str, given: str, body: str, outcome: str) -> None:
    found = ask(rules, body, eval(f"dict({given})"))
    assert found == outcome if outcome[:2] == "ok" else found.startswith(outcome), found


def test_a_dapp_without_verifier_wants_the_signature() -> None:
    network = NETWORKS["light"]
    context = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(network).at(HEIGHT))
    source = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE DAPP #-}\n@Callable(i)\nfunc f() = []\n"
    code = compile_source(source).script.source
    script = AccountScript(SENDER.public_key, code, 0, {})
    signed = subject_of({})
    assert not isinstance(signed, Order)
    state = state_of("[]", {})
    assert script_runs.run_account(ME, script, signed, state, context) == 0
    unsigned = codec.with_proofs(signed, (bytes(64),))
    with pytest.raises(SolitonError, match="Proof doesn't validate as signature"):
        script_runs.run_account(ME, script, unsigned, state, context)


def test_a_dapp_that_verifies_is_named_like_any_script() -> None:
    """As the subject is built for an expression: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/transaction/smart/script/ScriptRunner.scala``
    (``evalVerifier``).
    """
    context = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(NETWORKS["light"]).at(HEIGHT))
    source = "{-# STDLIB_VERSION 3 #-}\n{-# CONTENT_TYPE DAPP #-}\n@Verifier(t)\nfunc v() = true\n"
    code = compile_source(source).script.source
    script = AccountScript(SENDER.public_key, code, 0, {})
    with pytest.raises(ScriptExecutionError, match="Invoker script version 3 < 4 doesn't support"):
        script_runs.run_account(
            ME, script, subject_of({"kind": "pays"}), state_of("[]", {}), context
        )


def test_an_answer_that_is_no_boolean_is_printed() -> None:
    """No source compiles to it: ``.../transaction/smart/Verifier.scala`` (``verifyTx``)."""
    code = make_script(6, StringConst("yes")).source
    script = AccountScript(SENDER.public_key, code, 0, {})
    context = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(NETWORKS["light"]).at(HEIGHT))
    with pytest.raises(ScriptExecutionError) as caught:
        script_runs.run_account(ME, script, subject_of({}), state_of("[]", {}), context)
    assert caught.value.reason == "Script returned not a boolean result, but yes"


def test_names_of_early_assets_are_decoded_as_on_the_jvm() -> None:
    """They need not be UTF-8; scripts of version 4 and later see them as texts."""
    name = b"\xed\xa0\x80 \xed\xa0 \xff"
    assert lenient_text(name) == "\ufffd \ufffd \ufffd"
    state = state_of("[]", {})
    state.put(ASSET_NAMES, GOLD, AssetName(name, b"", 1))
    code = compiled("size(value(assetInfo(gold)).name) == 5", 6, "ACCOUNT")
    script = AccountScript(SENDER.public_key, code, 0, {})
    context = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(NETWORKS["light"]).at(HEIGHT))
    assert script_runs.run_account(ME, script, subject_of({}), state, context) > 0


@pytest.mark.parametrize("by_wallet", [False, True])
def test_transfers_of_wallets_are_found_after_their_block(by_wallet: bool) -> None:
    """As in ``transferById`` of wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/state/{SnapshotBlockchain,RocksDBWriter}.scala``.
    """
    sent = subject_of({})
    assert not isinstance(sent, Order)
    if by_wallet:
        to = public_key_hash(YOU)
        sent = ethereum.sign(b"k" * 32, chain_id=R, timestamp=TIME, fee=1, to=to, value=10**18)
    past = PastTransaction(sent, HEIGHT, Status.SUCCEEDED)
    code = compiled(f"isDefined(transferTransactionById(base58'{encode(sent.id)}'))", 6, "ACCOUNT")
    script = AccountScript(SENDER.public_key, code, 0, {})
    context = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(NETWORKS["light"]).at(HEIGHT))
    here = msgspec.structs.replace(context, applied={sent.id: past})
    below: Any = SimpleNamespace(transaction={sent.id: past}.get)
    block = msgspec.structs.replace(context.block, below=below)
    later = msgspec.structs.replace(context, block=block)

    def found(in_context: Context) -> bool:
        try:
            script_runs.run_account(ME, script, subject_of({}), state_of("[]", {}), in_context)
        except NotAllowedByScript:
            return False
        return True

    assert (found(here), found(later), found(context)) == (not by_wallet, True, False)
