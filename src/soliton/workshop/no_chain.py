"""An environment without a chain, in which every access is an error.

What lives here: the environment of ``soliton ride eval`` and similar commands.
"""

from __future__ import annotations

from typing import NoReturn

from soliton.ride.errors import EvaluationError


def no_transaction() -> NoReturn:
    """The value of ``tx``."""
    raise EvaluationError("there is no transaction here")


class NoChain:
    """An ``Environment`` without a chain; addresses are those of the test network."""

    chain_id = ord("T")

    @property
    def height(self) -> int:
        """Raises an error."""
        self._refuse()

    @property
    def transaction_id(self) -> bytes:
        """Raises an error."""
        self._refuse()

    def _refuse(self, *_: object) -> NoReturn:
        raise EvaluationError("there is no chain here to ask")

    this = last_block = block_info = transaction = transaction_height = _refuse
    asset_info = token_asset = resolve_alias = data = has_data = _refuse
    balance = balance_details = script = calculate_delay = invoke = _refuse
