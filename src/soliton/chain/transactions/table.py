"""The table of transaction types, the only dispatch by type.

A row names the module that describes the type (``soliton.chain.transactions.<name>``) and the
module with its rules (``soliton.ledger.rules.<name>``). A new type is those two modules and one row
here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from soliton.chain.errors import UnsupportedTransaction
from soliton.chain.transactions.model import TransactionType

ROWS: Final[dict[int, str]] = {
    1: "genesis",
    2: "payment",
    3: "issue",
    4: "transfer",
    5: "reissue",
    6: "burn",
    7: "exchange",
    8: "lease",
    9: "lease_cancel",
    10: "create_alias",
    11: "mass_transfer",
    12: "data",
    13: "set_script",
    14: "sponsor_fee",
    15: "set_asset_script",
    16: "invoke_script",
    17: "update_asset_info",
    18: "ethereum",
    19: "commit_to_generation",
}

_BY_ID: Final[dict[int, TransactionType]] = {}
_BY_MEMBER: Final[dict[str, TransactionType]] = {}


def register(kind: TransactionType) -> None:
    """Register a type by its id and its protobuf member."""
    _BY_ID[kind.type_id] = kind
    _BY_MEMBER[kind.protobuf.member] = kind


def _load() -> None:
    for type_id, name in ROWS.items():
        kind: TransactionType = import_module(f"soliton.chain.transactions.{name}").TYPE
        assert kind.type_id == type_id, f"row {type_id} leads to type {kind.type_id}"
        register(kind)


def type_by_id(type_id: int) -> TransactionType:
    """Return the type with this number; raise ``UnsupportedTransaction``."""
    kind = _BY_ID.get(type_id)
    if kind is None:
        raise UnsupportedTransaction(type_id, 0)
    return kind


def type_by_member(member: str) -> TransactionType:
    """Return the type with this protobuf member; raise ``UnsupportedTransaction``."""
    kind = _BY_MEMBER.get(member)
    if kind is None:
        raise UnsupportedTransaction(0, 0)
    return kind


def registered() -> tuple[TransactionType, ...]:
    """Return all registered types."""
    return tuple(_BY_ID.values())


_load()
