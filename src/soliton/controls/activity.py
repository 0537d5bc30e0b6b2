"""A log of a private chain's activity in sentences: sender, action, fee and outcome.

Empty blocks are logged at the debug level. What lives here: the sentences. What does not: the
logger's output, and control calls (``Controls`` logs them itself).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.controls.control import Controls
from soliton.crypto import base58
from soliton.errors import SolitonError
from soliton.ledger.state import ASSET_NAMES, ASSETS
from soliton.node.blockchain import FoundTransaction
from soliton.node.events import (
    BlockAppended,
    Departure,
    NodeEvent,
    PoolAccepted,
    PoolDropped,
    RolledBack,
)

MAX_LOGGED_TRANSACTIONS: Final = 20
"""The limit on logged transactions of one block."""
MAX_PER_SECOND: Final = 100
"""The rate limit for a terminal: without it, logging would take half of the devnet's time when a
client sends as fast as it can.
"""
MAX_TEXT: Final = 200
"""Characters of an argument, a name or a reason."""
MAX_NAMES: Final = 5
COIN_DECIMALS: Final = 8
_FIXED_PRICES: Final = 3
"""From this version on, prices of exchanges have 8 decimals, independent of the assets."""


class Activity:
    """Logs the activity of one chain."""

    def __init__(
        self,
        controls: Controls,
        logger: logging.Logger,
        names: Mapping[Address, str] | None = None,
        *,
        per_second: int | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Log to ``logger``, with ``names`` for accounts. In each second of ``steady`` at most
        ``per_second`` sentences are logged; ``None`` means no limit.
        """
        self._controls, self._logger = controls, logger
        self._per_second, self._steady = per_second, steady
        self._since, self._logged, self._skipped = 0.0, 0, 0
        self._node = controls.node
        self.names: dict[Address, str] = dict(names or {})
        controls.log = logger.info
        self._node.events.subscribe(self._notice)
        self._node.refusals.listener = self._refused

    def _notice(self, event: NodeEvent) -> None:
        if not self._logger.isEnabledFor(logging.INFO):
            return
        log = self._logger.info
        self._turn_second()
        match event:
            case BlockAppended(block=block) if block.transactions and not self._has_room():
                pass
            case BlockAppended(height=height, block=block):
                self._block(height, base58.encode(block.id), block.transactions)
            case RolledBack(height=height, block=block):
                log("back to height %d, block %s", height, base58.encode(block.id))
            case PoolAccepted(transaction=transaction) if self._waits() and self._has_room():
                log("waits: %s", self.sentence(transaction))
            case PoolDropped(
                transaction=transaction, departure=Departure.INVALID, reason=reason
            ) if self._has_room():
                log("no longer waits: %s: %s", self.sentence(transaction), _short(reason or ""))
            case _:
                pass

    def _turn_second(self) -> None:
        """Log how many sentences the last second has skipped."""
        now = self._steady()
        if now - self._since >= 1:
            if self._skipped:
                self._logger.info("and %d more, too many to log", self._skipped)
            self._since, self._logged, self._skipped = now, 0, 0

    def _has_room(self) -> bool:
        """Count a sentence; False if it exceeds the limit of this second."""
        if self._per_second is None or self._logged < self._per_second:
            self._logged += 1
            return True
        self._skipped += 1
        return False

    def _waits(self) -> bool:
        return self._controls.mining.mode.mode != "instant"

    def _block(self, height: int, name: str, transactions: tuple[AnyTransaction, ...]) -> None:
        count = len(transactions)
        if not count:
            self._logger.debug("block %d %s, empty", height, name)
            return
        plural = "s" * (count != 1)
        self._logger.info("block %d %s with %d transaction%s", height, name, count, plural)
        for each in transactions[:MAX_LOGGED_TRANSACTIONS]:
            self._logger.info("  %s", self._with_outcome(each))
        if count > MAX_LOGGED_TRANSACTIONS:
            self._logger.info("  and %d more", count - MAX_LOGGED_TRANSACTIONS)

    def _refused(self, transaction: AnyTransaction, error: SolitonError) -> None:
        if not self._logger.isEnabledFor(logging.INFO):
            return
        self._turn_second()
        if self._has_room():
            self._logger.info("refused: %s: %s", self.sentence(transaction), _short(str(error)))

    def _with_outcome(self, transaction: AnyTransaction) -> str:
        text = self.sentence(transaction)
        found = self._controls.chain.transaction(transaction.id)
        if found is None:
            return text
        if found.complexity:
            text += f", complexity {found.complexity}"
        return text if found.status == 0 else f"{text}: FAILED: {self._reason(found)}"

    def _reason(self, found: FoundTransaction) -> str:
        store = self._controls.chain.store
        location = store.transaction_location(found.transaction.id)
        record = None if location is None else store.call_record(location)
        changes = (record or {}).get("stateChanges")
        error = changes.get("error") if isinstance(changes, dict) else None
        return _short(str(error["text"])) if isinstance(error, dict) else "a script refused it"

    # --- sentences --------------------------------------------------------------------------------

    def sentence(self, transaction: AnyTransaction) -> str:
        """Sender, action, fee and id in one line."""
        members: Mapping[str, Any] = codec.to_json(transaction)
        parts = [f"{self._sender(transaction)}: {self._what(transaction, members)}"]
        if transaction.fee:
            parts.append(f"fee {self._amount(transaction.fee, members.get('feeAssetId'))}")
        parts.append(f"id {base58.encode(transaction.id)}")
        return ", ".join(parts)

    def _sender(self, transaction: AnyTransaction) -> str:
        key = transaction.sender_public_key
        return self._who(from_public_key(key, transaction.chain_id)) if key else "nobody"

    def _who(self, address: Address) -> str:
        return self.names.get(address) or address_text(address)

    def _named(self, text: str) -> str:
        """The name of an account that a transaction gives as an address or an alias."""
        for address, name in self.names.items():
            if address_text(address) == text:
                return name
        return text

    def _what(self, transaction: AnyTransaction, members: Mapping[str, Any]) -> str:
        """The action, from the members of the transaction's JSON."""
        if "dApp" in members:
            return self._call(members)
        text = type_by_id(transaction.type_id).name.replace("_", " ")
        asset = members.get("assetId")
        if isinstance(members.get("transfers"), list):
            transfers = members["transfers"]
            total = self._amount(sum(each["amount"] for each in transfers), asset)
            text += f" of {total} to {len(transfers)} account{'s' * (len(transfers) != 1)}"
        elif "order1" in members:
            pair = members["order1"]["assetPair"]
            text += f" of {self._amount(members['amount'], pair['amountAsset'])}"
            if transaction.version >= _FIXED_PRICES:
                text += f" at {_units(members['price'], COIN_DECIMALS)}"
        elif "quantity" in members:
            # A new asset is not in the state yet; its decimals and name are here.
            decimals = members.get("decimals")
            if isinstance(decimals, int):
                text += f" of {_units(members['quantity'], decimals)} {members.get('name', '')}"
            else:
                text += f" of {self._amount(members['quantity'], asset)}"
        elif "amount" in members:
            text += f" of {self._amount(members['amount'], asset)}"
        if isinstance(members.get("data"), list):
            keys = [_short(str(each["key"])) for each in members["data"]]
            more = [f"{len(keys) - MAX_NAMES} more"] if len(keys) > MAX_NAMES else []
            text += f" of {', '.join(keys[:MAX_NAMES] + more)}"
        for name in ("alias", "leaseId"):
            if name in members:
                text += f" {_short(str(members[name]))}"
        if "recipient" in members:
            text += f" to {self._named(str(members['recipient']))}"
        return text

    def _call(self, members: Mapping[str, Any]) -> str:
        call = members.get("call") or {"function": "default", "args": []}
        arguments = ", ".join(_short(_argument(each)) for each in call["args"])
        text = f"calls {call['function']}({arguments}) of {self._named(str(members['dApp']))}"
        paid = [self._amount(each["amount"], each["assetId"]) for each in members["payment"]]
        return f"{text} with {' and '.join(paid)}" if paid else text

    def _amount(self, amount: int, asset: object) -> str:
        if not isinstance(asset, str):
            return f"{_units(amount, COIN_DECIMALS)} {self._node.network.coin}"
        asset_id = base58.decode(asset)
        store = self._controls.chain.store
        info, name = store.get(ASSETS, asset_id), store.get(ASSET_NAMES, asset_id)
        if info is None or name is None:
            return f"{amount} of {asset}"
        return f"{_units(amount, info.decimals)} {name.name.decode(errors='replace')}"


def _units(amount: int, decimals: int) -> str:
    """An amount of smallest units as a decimal number."""
    text = f"{Decimal(amount).scaleb(-decimals):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _argument(value: Mapping[str, Any]) -> str:
    content = value.get("value")
    if isinstance(content, list):
        return f"[{', '.join(map(_argument, content))}]"
    if value.get("type") == "string":
        return f'"{content}"'
    return str(content).lower() if isinstance(content, bool) else str(content)


def _short(text: str) -> str:
    """A text as one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…"
