"""A chain that stands still, for tests of scripts: whatever a script may ask is a field here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataValue
from soliton.ride.environment import AssetInfo, BalanceDetails, BlockInfo, Payment
from soliton.ride.errors import InvocationFailed
from soliton.ride.values import Value

ADDRESS = bytes.fromhex("0154") + bytes(20) + bytes.fromhex("ae6d92bc")
LAST_BLOCK = BlockInfo(1_600_000_000_000, 100, 60, b"s" * 96, ADDRESS, b"k" * 32, b"v" * 32)

Answer = Callable[
    [bytes, str, tuple[Value, ...], tuple[Payment, ...], int, bool], tuple[Value, int]
]


def _no_dapp(
    _dapp: bytes,
    _function: str,
    _arguments: tuple[Value, ...],
    _payments: tuple[Payment, ...],
    available: int,
    _reentrant: bool,
) -> tuple[Value, int]:
    raise InvocationFailed("no dApp there", available)


@dataclass
class StaticEnvironment:
    """Answers from its own fields."""

    chain_id: int = ord("T")
    height: int = 100
    transaction_id: bytes = b"t" * 32
    owner: bytes | AssetInfo = ADDRESS
    block: BlockInfo = LAST_BLOCK
    blocks: dict[int, BlockInfo] = field(default_factory=dict)
    transactions: dict[bytes, tuple[AnyTransaction, int]] = field(default_factory=dict)
    assets: dict[bytes, AssetInfo] = field(default_factory=dict)
    tokens: dict[bytes, bytes] = field(default_factory=dict)
    aliases: dict[str, bytes] = field(default_factory=dict)
    entries: dict[tuple[bytes, str], DataValue] = field(default_factory=dict)
    balances: dict[tuple[bytes, bytes | None], int] = field(default_factory=dict)
    scripts: dict[bytes, bytes] = field(default_factory=dict)
    answer: Answer = _no_dapp
    delay: int = 60_000
    asked: list[str] = field(default_factory=list)

    def this(self) -> bytes | AssetInfo:
        return self.owner

    def last_block(self) -> BlockInfo:
        return self.block

    def block_info(self, height: int, /) -> BlockInfo | None:
        return self.blocks.get(height)

    def transaction(self, transaction_id: bytes, /) -> AnyTransaction | None:
        found = self.transactions.get(transaction_id)
        return None if found is None else found[0]

    def transaction_height(self, transaction_id: bytes, /) -> int | None:
        found = self.transactions.get(transaction_id)
        return None if found is None else found[1]

    def asset_info(self, asset_id: bytes, /) -> AssetInfo | None:
        return self.assets.get(asset_id)

    def token_asset(self, token: bytes, /) -> bytes | None:
        return self.tokens.get(token)

    def resolve_alias(self, alias: str, /) -> bytes | None:
        return self.aliases.get(alias)

    def data(self, address: bytes, key: str, /) -> DataValue:
        self.asked.append(key)
        return self.entries.get((address, key))

    def has_data(self, address: bytes, /) -> bool:
        return any(owner == address for owner, _ in self.entries)

    def balance(self, address: bytes, asset_id: bytes | None, /) -> int:
        return self.balances.get((address, asset_id), 0)

    def balance_details(self, address: bytes, /) -> BalanceDetails:
        amount = self.balances.get((address, None), 0)
        return BalanceDetails(amount, amount, amount, amount)

    def script(self, address: bytes, /) -> bytes | None:
        return self.scripts.get(address)

    def calculate_delay(self, _generator: bytes, _balance: int, /) -> int:
        return self.delay

    def invoke(
        self,
        dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
        available_complexity: int,
        reentrant: bool,
        /,
    ) -> tuple[Value, int]:
        self.asked.append(function)
        return self.answer(dapp, function, arguments, payments, available_complexity, reentrant)
