"""State changes outside of the rules: patches at certain heights, transactions with a fixed
outcome, disabled aliases.

What lives here: the data (``*.toml``, by name of the network) and how they are applied. What does
not: rules that merely switch at a height, which are settings of a network.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/patch`` and
``database/patch/DisableHijackedAliases.scala``; wavesplatform/gowaves
``pkg/state/exclusions.go``; xucito/TurtleNetwork, same paths as the first.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Final

import msgspec

from soliton.chain.addresses import Address, parse_address
from soliton.chain.networks.model import Network
from soliton.crypto import base58
from soliton.ledger.state import (
    ASSET_BALANCES,
    DATA,
    LEASE_STATES,
    LEASES,
    ORDER_FILLS,
    WAVES,
    LeaseBalance,
    LeaseState,
    OrderFill,
    Overlay,
)

MAX_ID_CHARS: Final = 44
"""32 bytes never need more base58 characters than this."""


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the state at the beginning of one block.

    It is applied at ``height``, or where ``feature`` becomes active. ``waves`` is added to
    balances, ``leases`` to leased-in and leased-out amounts; ``cancelled`` leases end.
    """

    name: str
    height: int | None = None
    feature: int | None = None
    waves: dict[str, int] = {}
    leases: dict[str, tuple[int, int]] = {}
    cancelled: tuple[str, ...] = ()

    def place(self, activations: Mapping[int, int]) -> int | None:
        """Return the height of the block that begins with the patch, ``None`` for no block."""
        return self.height if self.feature is None else activations.get(self.feature)

    def apply(self, overlay: Overlay, height: int, chain_id: int) -> None:
        """Write the change; lease balances are written even if they do not change."""
        for text, amount in self.waves.items():
            address = parse_address(text, chain_id)
            overlay.put(WAVES, address, overlay.get(WAVES, address) + amount)
        for text, (lease_in, lease_out) in self.leases.items():
            address = parse_address(text, chain_id)
            old = overlay.get(LEASES, address)
            new = LeaseBalance(old.lease_in + lease_in, old.lease_out + lease_out)
            overlay.put(LEASES, address, new)
        for lease_id in self.cancelled:
            overlay.put(LEASE_STATES, _id(lease_id), LeaseState(False, height, b""))


class Patches(msgspec.Struct, frozen=True):
    """The patches at the beginning of a block, in order."""

    height: int
    chain_id: int
    patches: tuple[Patch, ...]

    def __call__(self, overlay: Overlay) -> None:
        """Apply all of them."""
        for patch in self.patches:
            patch.apply(overlay, self.height, self.chain_id)


class FixedOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A transaction whose resulting values are fixed, independent of the rules."""

    id: str
    waves: tuple[tuple[str, int], ...] = ()
    assets: tuple[tuple[str, str, int], ...] = ()
    data: tuple[tuple[str, str, int], ...] = ()
    fills: tuple[tuple[str, int, int], ...] = ()
    chain_id: int = 0

    def __call__(self, overlay: Overlay) -> None:
        """Write the values."""
        for text, balance in self.waves:
            overlay.put(WAVES, self._address(text), balance)
        for text, asset_id, balance in self.assets:
            overlay.put(ASSET_BALANCES, (self._address(text), _id(asset_id)), balance)
        for text, key, value in self.data:
            overlay.put(DATA, (self._address(text), key), value)
        for order_id, volume, fee in self.fills:
            overlay.put(ORDER_FILLS, _id(order_id), OrderFill(volume, fee))

    def _address(self, text: str) -> Address:
        return parse_address(text, self.chain_id)


class _PatchFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    patches: tuple[Patch, ...] = ()
    disabled_aliases_after_height: int = 0
    disabled_aliases: frozenset[str] = frozenset()


class _OutcomeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    from_height: int = 0
    to_height: int = -1
    transactions: tuple[FixedOutcome, ...] = ()


def by_height(network: Network, activations: Mapping[int, int]) -> dict[int, Patches]:
    """Return the patches of a network by the height of their block.

    ``activations`` maps features to the heights at which they become active.
    """
    found: dict[int, tuple[Patch, ...]] = {}
    for patch in _file(network.name).patches:
        height = patch.place(activations)
        if height is not None:
            found[height] = (*found.get(height, ()), patch)
    return {height: Patches(height, network.chain_id, each) for height, each in found.items()}


def disabled_aliases(network: Network, height: int) -> frozenset[str]:
    """Return the aliases that are disabled at a height and cannot be created."""
    file = _file(network.name)
    return file.disabled_aliases if height > file.disabled_aliases_after_height else frozenset()


def fixed_outcomes(network: Network, height: int) -> Mapping[bytes, FixedOutcome]:
    """Return the transactions with a fixed outcome at this height, by id."""
    file = _outcome_file(network.name)
    if not file.from_height <= height <= file.to_height:
        return {}
    return {
        _id(item.id): msgspec.structs.replace(item, chain_id=network.chain_id)
        for item in file.transactions
    }


def switches(network: Network) -> list[int]:
    """Return the heights at which disabled aliases or fixed outcomes change."""
    outcomes = _outcome_file(network.name)
    return [
        _file(network.name).disabled_aliases_after_height + 1,
        outcomes.from_height,
        outcomes.to_height + 1,
    ]


def _id(text: str) -> bytes:
    return base58.decode(text, MAX_ID_CHARS)


@functools.cache
def _file(name: str) -> _PatchFile:
    return msgspec.convert(_tree(f"{name}.toml"), _PatchFile)


@functools.cache
def _outcome_file(name: str) -> _OutcomeFile:
    return msgspec.convert(_tree(f"{name}-outcomes.toml"), _OutcomeFile)


def _tree(file_name: str) -> dict[str, object]:
    file = resources.files(__package__).joinpath(file_name)
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
