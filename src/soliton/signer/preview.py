"""What an approver sees before deciding: sums, the state of windows, the node's simulation.

What lives here: these, as JSON with sentences. What does not: permissions (``approvals``,
``key_routes``), the rules (``policy``), and the node's answers (``node_client``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.errors import CryptoError
from soliton.signer.keyring import Account
from soliton.signer.measures import Decimals, Kind, amount_text, asset_text
from soliton.signer.node_client import NodeClient
from soliton.signer.pipeline import Grant, SigningPipeline, unsigned
from soliton.signer.policy import Question, Refusal, Rule, Window, charges_of
from soliton.signer.records import Entry
from soliton.signer.sign_request import SignRequest
from soliton.signer.signable import Signable

MAX_SIMULATED: Final = 32
"""Transactions of a package that the node simulates."""
MAX_CHANGES: Final = 100
MAX_VALUE_CHARACTERS: Final = 80
_LENGTHS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
_OTHERS: Final = {
    "leaseBalances": "leased amounts",
    "aliases": "aliases that are made",
    "accountScripts": "scripts of accounts",
    "assetStatics": "assets that are issued",
    "assetVolumes": "volumes of assets",
    "assetNamesAndDescriptions": "names of assets",
    "assetScripts": "scripts of assets",
    "sponsorships": "sponsorships",
    "newLeases": "leases that begin",
    "cancelledLeases": "leases that end",
    "orderFills": "orders that are filled",
}
"""Further members of a node's changes, of which only the count is shown."""


def totals(signables: Iterable[Signable], decimals: Decimals) -> list[dict[str, Any]]:
    """Return what all of it together spends, by asset: ``amount``, and separately ``fee``."""
    sums: dict[AssetId | None, list[int]] = {}
    uncertain = ""
    for each in signables:
        measures = each.measures
        uncertain = uncertain or measures.is_uncertain
        for asset, amount in measures.spends:
            sums.setdefault(asset, [0, 0])[0] += amount
        if measures.fee:
            sums.setdefault(measures.fee_asset, [0, 0])[1] += measures.fee
    found: list[dict[str, Any]] = []
    for asset, (amount, fee) in sums.items():
        parts = [amount_text(asset, amount, decimals)] if amount else []
        parts += [f"{amount_text(asset, fee, decimals)} of fees"] if fee else []
        lines = " and ".join(parts) or amount_text(asset, 0, decimals)
        found.append({"asset": asset_text(asset), "amount": amount, "fee": fee, "told": lines})
    if uncertain:
        found.append({"told": f"and what cannot be told: {uncertain}"})
    return found


# --- the rules ------------------------------------------------------------------------------------


def judgement(
    pipeline: SigningPipeline,
    ask: Entry,
    request: SignRequest,
    account: Account,
    signables: tuple[Signable, ...],
) -> dict[str, Any]:
    """Return what the rules say now: the rule and line that allow each item, and each window
    before and after; or why they would refuse.
    """
    grant = pipeline.authorize(ask.caller, request, account, signables, ask.pending)
    if isinstance(grant, Refusal):
        place = {
            "rule": grant.rule,
            "line": grant.line,
            "condition": grant.condition,
        }
        return {"refusal": {"message": grant.words, **place}}
    # Only a preview: nothing is signed.
    pipeline.take_back(grant)
    decided = [{"rule": rule.name, "line": rule.line} for rule in grant.rules]
    return {"decided": decided, "windows": list(_windows(pipeline, grant))}


def _windows(pipeline: SigningPipeline, grant: Grant) -> Iterator[dict[str, Any]]:
    counted: dict[tuple[str, int], tuple[Rule, Window, int]] = {}
    name, public_key = grant.account.name, grant.account.public_key
    for signables, rule in zip(grant.signables, grant.rules, strict=True):
        # Charges depend neither on the chain nor on the time.
        question = Question(signables.measures, name, public_key, grant.caller, 0, 0)
        for window, charge in charges_of(rule, question):
            key = charge.counter, charge.length_ms
            more = counted[key][2] if key in counted else 0
            counted[key] = rule, window, more + charge.amount
    for (counter, length_ms), (rule, window, more) in counted.items():
        before = pipeline.state.windows.spent(counter, length_ms, pipeline.state.clock.now())
        yield {
            "rule": rule.name,
            "line": rule.lines.get("windows", rule.line),
            "what": window.what,
            **({} if window.what == "signatures" else {"asset": asset_text(window.asset)}),
            "per": window.per,
            "withinMs": length_ms,
            "most": window.most,
            "before": before,
            "after": before + more,
            "told": _window_text(window, before, before + more, pipeline.policy.decimals),
        }


def _window_text(window: Window, before: int, after: int, decimals: Decimals) -> str:
    def text(amount: int) -> str:
        if window.what == "signatures":
            return f"{amount} signature{'' if amount == 1 else 's'}"
        return amount_text(window.asset, amount, decimals)

    whose = "" if window.per == "rule" else f" by this {window.per}"
    fees = " of fees" if window.what == "fees" else ""
    return (
        f"within {_length(window.length_ms)}{whose}: {text(before)}{fees} before, {text(after)} "
        f"after, {text(window.most)} at most"
    )


def _length(milliseconds: int) -> str:
    for size, unit in _LENGTHS:
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds // 1_000} s"


# --- the node -------------------------------------------------------------------------------------


async def simulation(
    pipeline: SigningPipeline, request: SignRequest, signables: tuple[Signable, ...]
) -> list[dict[str, Any]]:
    """What the node says that each of the first transactions would do on top of its chain, each on
    its own; raises ``NodeTrouble``. Other items have no effect on the chain.
    """
    found: list[dict[str, Any]] = []
    for item, each in zip(request.items[:MAX_SIMULATED], signables, strict=False):
        if item.kind is not Kind.TRANSACTION:
            found.append({"told": [f"{item.kind.value} changes nothing on the chain by itself"]})
            continue
        answer = await pipeline.node.simulated(unsigned(item, each), alone=True)
        found.append(await _outcome(pipeline.node, answer, pipeline.policy.decimals))
    return found


async def _outcome(node: NodeClient, answer: dict[str, Any], decimals: Decimals) -> dict[str, Any]:
    changes = answer.get("changes")
    changes = changes if isinstance(changes, dict) else {}
    balances = [row async for row in _balances(node, changes, decimals)]
    lines = [str(row["told"]) for row in balances]
    lines += _data(changes)
    for name, words in _OTHERS.items():
        rows = changes.get(name)
        if isinstance(rows, list) and rows:
            lines.append(f"{words}: {len(rows)}")
    if len(lines) > MAX_CHANGES:
        lines[MAX_CHANGES:] = [f"and {len(lines) - MAX_CHANGES} changes more"]
    shown: dict[str, Any] = {"valid": answer["valid"], "balances": balances, "told": lines}
    if not answer["valid"]:
        shown["told"] = [f"it would fail: {answer['message']}", *lines]
    for name in ("height", "applicationStatus", "changes", "stateChanges"):
        if name in answer:
            shown[name] = answer[name]
    return shown


async def _balances(node: NodeClient, changes: dict[str, Any], decimals: Decimals) -> Any:  # noqa: ANN401
    """The balances that change, before and after."""
    rows = changes.get("balances")
    for row in rows[:MAX_CHANGES] if isinstance(rows, list) else ():
        address, after = str(row.get("address")), row.get("balance")
        asset = row.get("asset")
        if type(after) is not int:
            continue
        before = await node.balance(address, asset if isinstance(asset, str) else None)
        id_ = _asset_id(asset)
        sign = "+" if after >= before else ""
        lines = (
            f"{address}: {amount_text(id_, before, decimals)} before, "
            f"{amount_text(id_, after, decimals)} after "
            f"({sign}{amount_text(id_, after - before, decimals)})"
        )
        yield {
            "address": address,
            "asset": asset_text(id_),
            "before": before,
            "after": after,
            "told": lines,
        }


def _asset_id(text: object) -> AssetId | None:
    if not isinstance(text, str):
        return None
    try:
        return base58.decode(text)
    except CryptoError:
        return text.encode()


def _data(changes: dict[str, Any]) -> list[str]:
    found: list[str] = []
    accounts = changes.get("accountData")
    for account in accounts if isinstance(accounts, list) else ():
        for entry in account.get("data", ()):
            value = entry.get("value")
            becomes = "is deleted" if value is None else f"becomes {value!r}"[:MAX_VALUE_CHARACTERS]
            key = repr(entry.get("key"))[:MAX_VALUE_CHARACTERS]
            found.append(f"{account.get('address')}: the entry {key} {becomes}")
    return found
