"""What a transaction adds to and takes from accounts, before it is written to the state.

All parts of one transaction are summed first: an account whose sum is zero is not touched, which
state hashes show.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/Portfolio.scala`` and
``state/StateSnapshot.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Address
from soliton.chain.values import MAX_I64, MIN_I64, AssetId
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import ASSET_BALANCES, WAVES, Overlay


class Portfolio:
    """Sums of wavelets by account and of assets by (account, asset)."""

    __slots__ = ("assets", "waves")

    def __init__(self) -> None:
        self.waves: dict[Address, int] = {}
        self.assets: dict[tuple[Address, AssetId], int] = {}

    def add(self, address: Address, asset_id: AssetId | None, amount: int) -> None:
        """Add ``amount`` (negative: take) of the native coin (``None``) or of an asset."""
        if asset_id is None:
            self.waves[address] = self.waves.get(address, 0) + amount
        else:
            key = (address, asset_id)
            self.assets[key] = self.assets.get(key, 0) + amount

    def write(self, overlay: Overlay) -> None:
        """Write the new balances; raises ``TransactionRejected`` when one leaves 64 bits."""
        for address, amount in self.waves.items():
            if amount:
                overlay.put(WAVES, address, _sum(overlay.get(WAVES, address), amount, "Waves"))
        for key, amount in self.assets.items():
            if amount:
                balance = _sum(overlay.get(ASSET_BALANCES, key), amount, "Asset")
                overlay.put(ASSET_BALANCES, key, balance)


def _sum(balance: int, amount: int, what: str) -> int:
    total = balance + amount
    if not MIN_I64 <= total <= MAX_I64 or not MIN_I64 <= amount <= MAX_I64:
        raise TransactionRejected(f"{what} balance sum overflow")
    return total
