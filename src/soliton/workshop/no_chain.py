"""What a script sees where there is no chain: an error for every question.

What lives here: the environment of ``soliton ride eval`` and its like.
"""

from __future__ import annotations

from typing import NoReturn

from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataValue
from soliton.ride.environment import AssetInfo, BalanceDetails, BlockInfo, Payment
from soliton.ride.errors import EvaluationError
from soliton.ride.values import Value


def no_transaction() -> NoReturn:
    """What ``tx`` stands for."""
    raise EvaluationError("there is no transaction here")


_TESTNET: int = ord("T")


def _refuse() -> NoReturn:
    raise EvaluationError("there is no chain here to ask")


class NoChain:
    """An ``Environment`` without a chain; addresses are those of the test network."""

    @property
    def chain_id(self) -> int:
        """The test network's."""
        return _TESTNET

    @property
    def height(self) -> int:
        """There is none."""
        _refuse()

    @property
    def transaction_id(self) -> bytes:
        """There is none."""
        _refuse()

    def this(self) -> bytes | AssetInfo:
        """There is none."""
        _refuse()

    def last_block(self) -> BlockInfo:
        """There is none."""
        _refuse()

    def block_info(self, _height: int, /) -> BlockInfo | None:
        """Not known."""
        _refuse()

    def transaction(self, _transaction_id: bytes, /) -> AnyTransaction | None:
        """Not known."""
        _refuse()

    def transaction_height(self, _transaction_id: bytes, /) -> int | None:
        """Not known."""
        _refuse()

    def asset_info(self, _asset_id: bytes, /) -> AssetInfo | None:
        """Not known."""
        _refuse()

    def token_asset(self, _token: bytes, /) -> bytes | None:
        """Not known."""
        _refuse()

    def resolve_alias(self, _alias: str, /) -> bytes | None:
        """Not known."""
        _refuse()

    def data(self, _address: bytes, _key: str, /) -> DataValue:
        """Not known."""
        _refuse()

    def has_data(self, _address: bytes, /) -> bool:
        """Not known."""
        _refuse()

    def balance(self, _address: bytes, _asset_id: bytes | None, /) -> int:
        """Not known."""
        _refuse()

    def balance_details(self, _address: bytes, /) -> BalanceDetails:
        """Not known."""
        _refuse()

    def script(self, _address: bytes, /) -> bytes | None:
        """Not known."""
        _refuse()

    def calculate_delay(self, _generator: bytes, _balance: int, /) -> int:
        """Not known."""
        _refuse()

    def invoke(
        self,
        _dapp: bytes,
        _function: str,
        _arguments: tuple[Value, ...],
        _payments: tuple[Payment, ...],
        _available_complexity: int,
        _reentrant: bool,
        /,
    ) -> tuple[Value, int]:
        """Nobody to call."""
        _refuse()
