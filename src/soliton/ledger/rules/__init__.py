"""The effects of transactions on the state: one module per type, named as in
``soliton.chain.transactions``.

The table of types is ``soliton.chain.transactions.table``; this package finds the rules by the
names in its rows.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from soliton.chain.errors import UnsupportedTransaction
from soliton.chain.transactions.table import ROWS
from soliton.ledger.context import TypeRules

_RULES: Final[dict[int, TypeRules]] = {}


def register(type_id: int, rules: TypeRules) -> None:
    """Register the rules of a type."""
    _RULES[type_id] = rules


def rules_of(type_id: int) -> TypeRules:
    """Return the rules of a transaction type; raise ``UnsupportedTransaction``."""
    rules = _RULES.get(type_id)
    if rules is None:
        raise UnsupportedTransaction(type_id, 0)
    return rules


def _load() -> None:
    for type_id, name in ROWS.items():
        module = f"soliton.ledger.rules.{name}"
        if find_spec(module) is not None:
            register(type_id, import_module(module).RULES)


_load()
