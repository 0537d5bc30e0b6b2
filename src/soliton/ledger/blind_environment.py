"""An environment without access to the chain, in which a matcher runs scripts for orders.

An order may stay open while the chain changes, so a script may read only the order itself.

What lives here: the refusals, with the method names of the reference node. What does not: running
scripts (``script_runs``).

Source: wavesplatform/matcher ``waves-ext/src/main/scala/com/wavesplatform/dex/grpc/integration/
smart/MatcherScriptRunner.scala``.
"""

from __future__ import annotations

from typing import NoReturn

from soliton.chain.addresses import Address
from soliton.ride.environment import Payment
from soliton.ride.errors import EvaluationEscaped
from soliton.ride.values import Value


def _denied(name: str) -> NoReturn:
    raise EvaluationEscaped(f"An access to the blockchain.{name} is denied on DEX")


class BlindEnvironment:
    """Knows the network and the owner of the script; any other access ends the evaluation."""

    __slots__ = ("_address", "chain_id")

    def __init__(self, chain_id: int, address: Address) -> None:
        self.chain_id = chain_id
        self._address = address

    @property
    def height(self) -> int:
        _denied("height")

    @property
    def transaction_id(self) -> bytes:
        return b""

    def this(self) -> bytes:
        return self._address

    def last_block(self) -> NoReturn:
        _denied("height")

    def block_info(self, _height: int, /) -> NoReturn:
        _denied("blockHeader")

    def transaction(self, _transaction_id: bytes, /) -> NoReturn:
        _denied("transferById")

    def transaction_height(self, _transaction_id: bytes, /) -> NoReturn:
        _denied("transactionMeta")

    def asset_info(self, _asset_id: bytes, /) -> NoReturn:
        _denied("assetDescription")

    def token_asset(self, _token: bytes, /) -> NoReturn:
        _denied("resolveERC20Address")

    def resolve_alias(self, _alias: str, /) -> NoReturn:
        _denied("resolveAlias")

    def data(self, _address: bytes, _key: str, /) -> NoReturn:
        _denied("accountData")

    def has_data(self, _address: bytes, /) -> NoReturn:
        _denied("hasData")

    def balance(self, _address: bytes, _asset_id: bytes | None, /) -> NoReturn:
        _denied("balance")

    def balance_details(self, _address: bytes, /) -> NoReturn:
        _denied("balance")

    def script(self, _address: bytes, /) -> NoReturn:
        _denied("accountScript")

    def calculate_delay(self, _generator: bytes, _balance: int, /) -> NoReturn:
        _denied("settings")

    def invoke(
        self,
        _dapp: bytes,
        _function: str,
        _arguments: tuple[Value, ...],
        _payments: tuple[Payment, ...],
        _available_complexity: int,
        _reentrant: bool,
        /,
    ) -> NoReturn:
        _denied("accountScript")
