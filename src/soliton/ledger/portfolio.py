"""Balance changes of a transaction, before they are written to the state.

All changes of one transaction are summed first: an account whose sum is zero is not written, which
state hashes depend on.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/Portfolio.scala`` and
``state/StateSnapshot.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Address, address_text
from soliton.chain.values import MAX_I64, MIN_I64, AssetId
from soliton.crypto import base58
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import ASSET_BALANCES, LEASES, WAVES, LeaseBalance, Overlay


class Portfolio:
    """Sums of wavelets by account, of assets by (account, asset), and of leases by account."""

    __slots__ = ("assets", "leases", "waves")

    def __init__(self) -> None:
        self.waves: dict[Address, int] = {}
        self.assets: dict[tuple[Address, AssetId], int] = {}
        self.leases: dict[Address, LeaseBalance] = {}

    def add(self, address: Address, asset_id: AssetId | None, amount: int) -> None:
        """Add ``amount`` (may be negative) of the native coin (``None``) or of an asset."""
        if asset_id is None:
            self.waves[address] = self.waves.get(address, 0) + amount
        else:
            key = (address, asset_id)
            self.assets[key] = self.assets.get(key, 0) + amount

    def lease(self, sender: Address, recipient: Address, amount: int) -> None:
        """Lease wavelets from one account to another; a negative amount cancels."""
        self._add_lease(sender, 0, amount)
        self._add_lease(recipient, amount, 0)

    def _add_lease(self, address: Address, lease_in: int, lease_out: int) -> None:
        old = self.leases.get(address, LeaseBalance(0, 0))
        self.leases[address] = LeaseBalance(old.lease_in + lease_in, old.lease_out + lease_out)

    def write(self, overlay: Overlay) -> None:
        """Write the new balances; raise ``TransactionRejected`` if one exceeds 64 bits."""
        for address, amount in self.waves.items():
            if amount:
                _check(amount, address, ": Waves balance")
                balance = overlay.get(WAVES, address) + amount
                overlay.put(WAVES, address, _check(balance, address, " -> Waves balance"))
        for key, amount in self.assets.items():
            if amount:
                address, asset_id = key
                if not MIN_I64 <= amount <= MAX_I64:
                    _check(amount, address, f": asset {base58.encode(asset_id)}")
                balance = overlay.get(ASSET_BALANCES, key) + amount
                overlay.put(ASSET_BALANCES, key, _check(balance, address, " -> Asset balance"))
        for address, change in self.leases.items():
            if change.lease_in or change.lease_out:
                old = overlay.get(LEASES, address)
                new = LeaseBalance(
                    _check(old.lease_in + change.lease_in, address, " -> Lease"),
                    _check(old.lease_out + change.lease_out, address, " -> Lease"),
                )
                overlay.put(LEASES, address, new)


def _check(total: int, address: Address, what: str) -> int:
    if not MIN_I64 <= total <= MAX_I64:
        raise TransactionRejected(f"{address_text(address)}{what} sum overflow")
    return total
