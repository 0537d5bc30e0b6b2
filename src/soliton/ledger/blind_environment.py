"""A script that sees nothing of the chain: what a matcher lets the scripts of orders see.

An order waits, and what the chain holds changes meanwhile; so a script may ask for what the order
says, and for nothing else.

What lives here: the refusals, by the names of what the reference's node is asked for. What does
not: running scripts (``script_runs``).

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
    """Knows the network and whose script it is; everything else ends the run."""

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
