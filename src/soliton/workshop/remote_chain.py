"""An environment of scripts that reads the chain from a node over REST.

What lives here: the environment of ``soliton ride repl --node``. What does not: requests
(``soliton.client``). Features without a route (calls of other dApps, delays, tokens of Ethereum's
wallets) raise an error.
"""

from __future__ import annotations

from typing import Final, NoReturn

from soliton.chain.addresses import Address
from soliton.chain.json_kinds import decode_base64
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataValue
from soliton.client.errors import NodeRefused
from soliton.client.node import Node
from soliton.client.records import SUCCEEDED, BlockHeader
from soliton.crypto import base58
from soliton.ride.environment import AssetInfo, BalanceDetails, BlockInfo, Payment
from soliton.ride.errors import EvaluationError
from soliton.ride.values import Value

_NO_ID: Final = b""


def _refuse(what: str) -> NoReturn:
    raise EvaluationError(f"{what} is not available from a node over REST")


class RemoteChain:
    """An ``Environment`` on a node; ``this`` is an account."""

    def __init__(self, node: Node, address: Address) -> None:
        self._node = node
        self._address = address

    @property
    def chain_id(self) -> int:
        """The chain id in the account's address."""
        return self._address[1]

    @property
    def height(self) -> int:
        """The node's height."""
        return self._node.height()

    @property
    def transaction_id(self) -> bytes:
        """There is no transaction."""
        return _NO_ID

    def this(self) -> bytes | AssetInfo:
        """The account."""
        return self._address

    def last_block(self) -> BlockInfo:
        """The last block's header."""
        return _block(self._node.last_header())

    def block_info(self, height: int, /) -> BlockInfo | None:
        """A block's header."""
        try:
            return _block(self._node.header_at(height))
        except NodeRefused:
            return None

    def transaction(self, _transaction_id: bytes, /) -> AnyTransaction | None:
        """Not available."""
        _refuse("a transaction")

    def transaction_height(self, transaction_id: bytes, /) -> int | None:
        """The height of a successful transaction."""
        try:
            found = self._node.transaction(base58.encode(transaction_id))
        except NodeRefused:
            return None
        return found.height if found.application_status in (None, SUCCEEDED) else None

    def asset_info(self, asset_id: bytes, /) -> AssetInfo | None:
        """The current details of an asset."""
        try:
            found = self._node.asset(base58.encode(asset_id))
        except NodeRefused:
            return None
        return AssetInfo(
            id=asset_id,
            name=found.name,
            description=found.description,
            quantity=found.quantity,
            decimals=found.decimals,
            issuer=base58.decode(found.issuer),
            issuer_public_key=base58.decode(found.issuer_public_key or ""),
            reissuable=found.reissuable,
            scripted=found.scripted,
            min_sponsored_fee=found.min_sponsored_asset_fee,
        )

    def token_asset(self, _token: bytes, /) -> bytes | None:
        """Not available."""
        _refuse("a token")

    def resolve_alias(self, alias: str, /) -> bytes | None:
        """The address of an alias."""
        try:
            return base58.decode(self._node.address_by_alias(alias))
        except NodeRefused:
            return None

    def data(self, address: bytes, key: str, /) -> DataValue:
        """The value under a key."""
        return self._node.data_entry(base58.encode(address), key)

    def has_data(self, address: bytes, /) -> bool:
        """Whether an account has a data entry."""
        return bool(self._node.data(base58.encode(address)))

    def balance(self, address: bytes, asset_id: bytes | None, /) -> int:
        """The balance of an account."""
        asset = None if asset_id is None else base58.encode(asset_id)
        return self._node.balance(base58.encode(address), asset)

    def balance_details(self, address: bytes, /) -> BalanceDetails:
        """The balances of an account in the chain's coin."""
        found = self._node.balance_details(base58.encode(address))
        return BalanceDetails(found.available, found.regular, found.generating, found.effective)

    def script(self, address: bytes, /) -> bytes | None:
        """The script of an account."""
        text = self._node.script(base58.encode(address)).script
        return None if text is None else decode_base64(text)

    def calculate_delay(self, _generator: bytes, _balance: int, /) -> int:
        """Not available."""
        _refuse("a delay")

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
        """Not available."""
        _refuse("a call of another dApp")


def _block(found: BlockHeader) -> BlockInfo:
    return BlockInfo(
        timestamp=found.timestamp,
        height=found.height,
        base_target=found.consensus.base_target,
        generation_signature=base58.decode(found.consensus.generation_signature),
        generator=base58.decode(found.generator),
        generator_public_key=base58.decode(found.generator_public_key or ""),
        vrf=None if not found.vrf else base58.decode(found.vrf),
        rewards=tuple(
            sorted((base58.decode(name), share) for name, share in found.reward_shares.items())
        ),
    )
