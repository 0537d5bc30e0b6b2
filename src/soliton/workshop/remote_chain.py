"""An environment of scripts that reads the chain from a node over REST.

What lives here: the environment of ``soliton ride repl --node``. What does not: requests
(``remote``). Features without a route (calls of other dApps, delays, tokens of Ethereum's wallets)
raise an error.
"""

from __future__ import annotations

import base64
from typing import Final, NoReturn
from urllib.parse import quote

from soliton.chain.addresses import Address
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataValue
from soliton.crypto import base58
from soliton.ride.environment import AssetInfo, BalanceDetails, BlockInfo, Payment
from soliton.ride.errors import EvaluationError
from soliton.ride.values import Value
from soliton.workshop.remote import Json, Remote, RemoteRefusal

_NO_ID: Final = b""


def _refuse(what: str) -> NoReturn:
    raise EvaluationError(f"{what} is not available from a node over REST")


class RemoteChain:
    """An ``Environment`` on a node; ``this`` is an account."""

    def __init__(self, remote: Remote, address: Address) -> None:
        self._remote = remote
        self._address = address

    @property
    def chain_id(self) -> int:
        """The chain id in the account's address."""
        return self._address[1]

    @property
    def height(self) -> int:
        """The node's height."""
        return _whole(self._remote.get("/blocks/height")["height"])

    @property
    def transaction_id(self) -> bytes:
        """There is no transaction."""
        return _NO_ID

    def this(self) -> bytes | AssetInfo:
        """The account."""
        return self._address

    def last_block(self) -> BlockInfo:
        """The last block's header."""
        return _block(self._remote.get("/blocks/headers/last"))

    def block_info(self, height: int, /) -> BlockInfo | None:
        """A block's header."""
        try:
            return _block(self._remote.get(f"/blocks/headers/at/{height}"))
        except RemoteRefusal:
            return None

    def transaction(self, _transaction_id: bytes, /) -> AnyTransaction | None:
        """Not available."""
        _refuse("a transaction")

    def transaction_height(self, transaction_id: bytes, /) -> int | None:
        """The height of a successful transaction."""
        found = self._find(f"/transactions/info/{base58.encode(transaction_id)}")
        if found is None or found.get("applicationStatus", "succeeded") != "succeeded":
            return None
        return _whole(found["height"])

    def asset_info(self, asset_id: bytes, /) -> AssetInfo | None:
        """The current details of an asset."""
        found = self._find(f"/assets/details/{base58.encode(asset_id)}")
        if found is None:
            return None
        return AssetInfo(
            id=asset_id,
            name=found["name"],
            description=found["description"],
            quantity=_whole(found["quantity"]),
            decimals=_whole(found["decimals"]),
            issuer=base58.decode(found["issuer"]),
            issuer_public_key=base58.decode(found["issuerPublicKey"]),
            reissuable=bool(found["reissuable"]),
            scripted=bool(found["scripted"]),
            min_sponsored_fee=found.get("minSponsoredAssetFee"),
        )

    def token_asset(self, _token: bytes, /) -> bytes | None:
        """Not available."""
        _refuse("a token")

    def resolve_alias(self, alias: str, /) -> bytes | None:
        """The address of an alias."""
        found = self._find(f"/alias/by-alias/{quote(alias, safe='')}")
        return None if found is None else base58.decode(found["address"])

    def data(self, address: bytes, key: str, /) -> DataValue:
        """The value under a key."""
        path = f"/addresses/data/{base58.encode(address)}/{quote(key, safe='')}"
        found = self._find(path)
        if found is None:
            return None
        value = found["value"]
        if found["type"] == "binary":
            return base64.b64decode(str(value).removeprefix("base64:"))
        return value if isinstance(value, (bool, str)) else _whole(value)

    def has_data(self, address: bytes, /) -> bool:
        """Whether an account has a data entry."""
        return bool(self._remote.get(f"/addresses/data/{base58.encode(address)}"))

    def balance(self, address: bytes, asset_id: bytes | None, /) -> int:
        """The balance of an account."""
        if asset_id is None:
            return self.balance_details(address).regular
        path = f"/assets/balance/{base58.encode(address)}/{base58.encode(asset_id)}"
        return _whole(self._remote.get(path)["balance"])

    def balance_details(self, address: bytes, /) -> BalanceDetails:
        """The balances of an account in the chain's coin."""
        found = self._remote.get(f"/addresses/balance/details/{base58.encode(address)}")
        names = ("available", "regular", "generating", "effective")
        return BalanceDetails(*(_whole(found[name]) for name in names))

    def script(self, address: bytes, /) -> bytes | None:
        """The script of an account."""
        text = self._remote.get(f"/addresses/scriptInfo/{base58.encode(address)}").get("script")
        return base64.b64decode(str(text).removeprefix("base64:")) if text else None

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

    def _find(self, path: str) -> Json:
        try:
            return self._remote.get(path)
        except RemoteRefusal:
            return None


def _whole(value: object) -> int:
    """Return a number of an answer; raises ``EvaluationError`` for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise EvaluationError(f"the node answers with {str(value)[:60]!r}, not with a whole number")
    return value


def _block(found: Json) -> BlockInfo:
    consensus = found.get("nxt-consensus", {})
    vrf = found.get("VRF")
    rewards = found.get("rewardShares") or {}
    return BlockInfo(
        timestamp=_whole(found["timestamp"]),
        height=_whole(found["height"]),
        base_target=_whole(consensus["base-target"]),
        generation_signature=base58.decode(consensus["generation-signature"]),
        generator=base58.decode(found["generator"]),
        generator_public_key=base58.decode(found["generatorPublicKey"]),
        vrf=None if not vrf else base58.decode(vrf),
        rewards=tuple(
            sorted((base58.decode(name), _whole(share)) for name, share in rewards.items())
        ),
    )
