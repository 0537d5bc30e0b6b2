"""Type 19, commit to generation: its format is known, but no feature allows it yet.

Source: wavesplatform/protobuf-schemas ``proto/waves/transaction.proto`` (the form); wavesplatform/
gowaves ``pkg/settings/features.go`` (the feature to come).
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import ActivationError
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import Overlay

_REFUSAL = "Deterministic Finality feature has not been activated yet"


def _activation(_transaction: AnyTransaction, _context: Context) -> None:
    raise ActivationError(_REFUSAL)


def _apply(
    _transaction: AnyTransaction, _overlay: Overlay, _portfolio: Portfolio, _context: Context
) -> None:
    raise ActivationError(_REFUSAL)


RULES = TypeRules(_activation, common.base_fee, None, _apply)
