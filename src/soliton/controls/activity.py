"""What happens on a private chain, in sentences: who did what, for which fee, and what came of it.

Empty blocks are told at the level of details only. What lives here: the sentences. What does not:
where they go (a logger), and what is done by hand (``Controls`` says that itself).
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

TOLD_TRANSACTIONS: Final = 20
"""Of one block: whoever sends more at once does not read them one by one."""
TOLD_A_SECOND: Final = 100
"""Transactions and blocks with some, where sentences go to a screen: a client that sends as fast as
it can would have half of the devnet's time spent on sentences.
"""
MAX_TEXT: Final = 200
"""Characters of an argument, a name or a reason."""
MAX_NAMES: Final = 5
COIN_DECIMALS: Final = 8
_FIXED_PRICES: Final = 3
"""Exchanges of this version on have prices with 8 decimals, whatever those of the assets."""


class Activity:
    """Tells of one chain."""

    def __init__(
        self,
        controls: Controls,
        logger: logging.Logger,
        names: Mapping[Address, str] | None = None,
        *,
        a_second: int | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Sentences go to ``logger``; ``names`` are what accounts are called in them. Of what comes
        within a second of ``steady`` the first ``a_second`` are told, or all.
        """
        self._controls, self._logger = controls, logger
        self._a_second, self._steady = a_second, steady
        self._since, self._told, self._untold = 0.0, 0, 0
        self._node = controls.node
        self.names: dict[Address, str] = dict(names or {})
        controls.log = logger.info
        self._node.events.subscribe(self._notice)
        self._node.refusals.listener = self._refused

    def _notice(self, event: NodeEvent) -> None:
        if not self._logger.isEnabledFor(logging.INFO):
            return
        tell = self._logger.info
        self._turn_second()
        match event:
            case BlockAppended(block=block) if block.transactions and not self._has_room():
                pass
            case BlockAppended(height=height, block=block):
                self._block(height, base58.encode(block.id), block.transactions)
            case RolledBack(height=height, block=block):
                tell("back to height %d, block %s", height, base58.encode(block.id))
            case PoolAccepted(transaction=transaction) if self._waits() and self._has_room():
                tell("waits: %s", self.sentence(transaction))
            case PoolDropped(
                transaction=transaction, departure=Departure.INVALID, reason=reason
            ) if self._has_room():
                tell("no longer waits: %s: %s", self.sentence(transaction), _short(reason or ""))
            case _:
                pass

    def _turn_second(self) -> None:
        """Say what the second that is over has left out."""
        now = self._steady()
        if now - self._since >= 1:
            if self._untold:
                self._logger.info("and %d more, too many at once to be told", self._untold)
            self._since, self._told, self._untold = now, 0, 0

    def _has_room(self) -> bool:
        """Whether one more is told in this second."""
        if self._a_second is None or self._told < self._a_second:
            self._told += 1
            return True
        self._untold += 1
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
        for each in transactions[:TOLD_TRANSACTIONS]:
            self._logger.info("  %s", self._with_outcome(each))
        if count > TOLD_TRANSACTIONS:
            self._logger.info("  and %d more", count - TOLD_TRANSACTIONS)

    def _refused(self, transaction: AnyTransaction, error: SolitonError) -> None:
        if not self._logger.isEnabledFor(logging.INFO):
            return
        self._turn_second()
        if self._has_room():
            self._logger.info("refused: %s: %s", self.sentence(transaction), _short(str(error)))

    def _with_outcome(self, transaction: AnyTransaction) -> str:
        said = self.sentence(transaction)
        chain = self._controls.chain
        found = chain.transaction(transaction.id)
        if found is None:
            return said
        if found.complexity:
            said += f", complexity {found.complexity}"
        return said if found.status == 0 else f"{said}: FAILED: {self._reason(found)}"

    def _reason(self, found: FoundTransaction) -> str:
        store = self._controls.chain.store
        location = store.transaction_location(found.transaction.id)
        record = None if location is None else store.call_record(location)
        changes = (record or {}).get("stateChanges")
        error = changes.get("error") if isinstance(changes, dict) else None
        return _short(str(error["text"])) if isinstance(error, dict) else "a script refused it"

    # --- sentences --------------------------------------------------------------------------------

    def sentence(self, transaction: AnyTransaction) -> str:
        """Who does what, for which fee, in one line."""
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
        """An account by what it is called in a transaction: an address or an alias."""
        for address, name in self.names.items():
            if address_text(address) == text:
                return name
        return text

    def _what(self, transaction: AnyTransaction, members: Mapping[str, Any]) -> str:
        """From the members of the transaction's JSON, whatever its type."""
        if "dApp" in members:
            return self._call(members)
        said = type_by_id(transaction.type_id).name.replace("_", " ")
        asset = members.get("assetId")
        if isinstance(members.get("transfers"), list):
            lines = members["transfers"]
            total = self._amount(sum(each["amount"] for each in lines), asset)
            said += f" of {total} to {len(lines)} account{'s' * (len(lines) != 1)}"
        elif "order1" in members:
            pair = members["order1"]["assetPair"]
            said += f" of {self._amount(members['amount'], pair['amountAsset'])}"
            if transaction.version >= _FIXED_PRICES:
                said += f" at {_units(members['price'], COIN_DECIMALS)}"
        elif "quantity" in members:
            # Of a new asset nobody knows anything but what stands here.
            decimals = members.get("decimals")
            if isinstance(decimals, int):
                said += f" of {_units(members['quantity'], decimals)} {members.get('name', '')}"
            else:
                said += f" of {self._amount(members['quantity'], asset)}"
        elif "amount" in members:
            said += f" of {self._amount(members['amount'], asset)}"
        if isinstance(members.get("data"), list):
            keys = [_short(str(each["key"])) for each in members["data"]]
            more = [f"{len(keys) - MAX_NAMES} more"] if len(keys) > MAX_NAMES else []
            said += f" of {', '.join(keys[:MAX_NAMES] + more)}"
        for name in ("alias", "leaseId"):
            if name in members:
                said += f" {_short(str(members[name]))}"
        if "recipient" in members:
            said += f" to {self._named(str(members['recipient']))}"
        return said

    def _call(self, members: Mapping[str, Any]) -> str:
        call = members.get("call") or {"function": "default", "args": []}
        arguments = ", ".join(_short(_argument(each)) for each in call["args"])
        said = f"calls {call['function']}({arguments}) of {self._named(str(members['dApp']))}"
        paid = [self._amount(each["amount"], each["assetId"]) for each in members["payment"]]
        return f"{said} with {' and '.join(paid)}" if paid else said

    def _amount(self, amount: int, asset: object) -> str:
        if not isinstance(asset, str):
            return f"{_units(amount, COIN_DECIMALS)} {self._node.network.coin}"
        asset_id = base58.decode(asset)
        store = self._controls.chain.store
        info, name = store.get(ASSETS, asset_id), store.get(ASSET_NAMES, asset_id)
        if info is None or name is None:
            return f"{amount} of {asset}"
        called = name.name.decode(errors="replace")
        return f"{_units(amount, info.decimals)} {called}"


def _units(amount: int, decimals: int) -> str:
    """An amount of smallest units as people write it."""
    text = f"{Decimal(amount).scaleb(-decimals):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _argument(value: Mapping[str, Any]) -> str:
    given = value.get("value")
    if isinstance(given, list):
        return f"[{', '.join(map(_argument, given))}]"
    if value.get("type") == "string":
        return f'"{given}"'
    return str(given).lower() if isinstance(given, bool) else str(given)


def _short(text: str) -> str:
    """One line that does not fill the screen."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…"
