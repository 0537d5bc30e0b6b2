"""The presets: one TOML file per network in this directory, and the fee tables that they refer to.

A preset file contains the fields of ``model.Network``, except ``name`` (the file's name) and
``fees`` (``fee_table`` names a table of ``fees.toml``).
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

import msgspec

from soliton.chain.networks.model import Fees, Network
from soliton.chain.networks.sections import InvalidSetting, did_you_mean

_NAMES = (
    "waves-mainnet",
    "waves-testnet",
    "waves-stagenet",
    "zbs-mainnet",
    "zbs-testnet",
    "tn-mainnet",
    "tn-testnet",
    "devnet",
)


class NetworkError(InvalidSetting):
    """A network is unknown, or its description is invalid."""


def names() -> tuple[str, ...]:
    """Return the names of all presets."""
    return _NAMES


@functools.cache
def load(name: str) -> Network:
    """Return the preset with this name, always the same object."""
    if name not in _NAMES:
        raise NetworkError(
            f"unknown network {name!r}{did_you_mean(name, _NAMES)}: there are {', '.join(_NAMES)}"
        )
    tree = _read_table(f"{name}.toml")
    fee_table = tree.pop("fee_table")
    assert isinstance(fee_table, str)
    return msgspec.convert(
        {**tree, "name": name, "fees": fees_of(fee_table)}, Network, str_keys=True
    )


@functools.cache
def fees_of(family: str) -> Fees:
    """Return the minimum fees of the networks of ``family`` (``waves``, ``zbs``, ``tn``)."""
    tables = msgspec.convert(_read_table("fees.toml"), dict[str, Fees], str_keys=True)
    if family not in tables:
        raise NetworkError(f"unknown fee table {family!r}: there are {', '.join(tables)}")
    return tables[family]


def _read_table(file_name: str) -> dict[str, object]:
    text = resources.files(__package__).joinpath(file_name).read_text(encoding="utf-8")
    return tomllib.loads(text)
