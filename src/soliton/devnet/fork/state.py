"""The state of the original node of a fork, as records of a store.

What lives here: the request for each kind of entry, and its response as keys and values. What does
not: whether the response is that of the fork's height (``since``), the cache (``chain``).
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from soliton.chain.addresses import ADDRESS_LENGTH, Address, check_address, from_public_key
from soliton.chain.errors import ChainError
from soliton.chain.json_kinds import decode_base64, read_data_entry
from soliton.chain.values import DataEntry
from soliton.crypto import base58
from soliton.devnet.fork.remote import Amount, Height, Remote
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    ERC20,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    AccountScript,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    LeaseBalance,
    LeaseInfo,
    LeaseState,
    Table,
)
from soliton.ride.errors import RideError
from soliton.ride.estimators.choice import Complexities, EstimationRules, estimate_for_account
from soliton.ride.script import parse_script
from soliton.storage import layout

Records = dict[bytes, bytes | None]
"""Keys and values, ``None`` for entries that do not exist."""

GENERATING: Final = b"~"
"""The prefix of generating balances, which only the cache has; no kind of a store's records."""
NFT_PAGE: Final = 1_000
MAX_NFT_PAGES: Final = 100
I64: Final = struct.Struct(">q")
_LEASE: Final = 8
_PLACE: Final = struct.Struct(">II")
_INVALID_IDS: Final = 116


class _Balances(msgspec.Struct, frozen=True):
    regular: Amount
    generating: Amount
    available: int
    effective: Amount


class _Balance(msgspec.Struct, frozen=True):
    balance: Amount


class _Owned(_Balance, frozen=True):
    id: str


class _ScriptDetails(msgspec.Struct, frozen=True, rename="camel"):
    script: str
    script_complexity: int = 0


class _Asset(msgspec.Struct, frozen=True, rename="camel"):
    asset_id: str
    issue_height: Height
    issuer_public_key: str
    name: str
    description: str
    decimals: int
    reissuable: bool
    quantity: int
    origin_transaction_id: str
    min_sponsored_asset_fee: int | None = None
    sequence_in_block: int = 1
    script_details: _ScriptDetails | None = None


class _AssetId(msgspec.Struct, frozen=True, rename="camel"):
    asset_id: str


class _Held(msgspec.Struct, frozen=True, rename="camel"):
    asset_id: str
    balance: Amount


class _Holdings(msgspec.Struct, frozen=True):
    balances: list[_Held]


class _Owner(msgspec.Struct, frozen=True):
    address: str


class _Script(msgspec.Struct, frozen=True, rename="camel"):
    script: str | None = None
    public_key: str | None = None
    verifier_complexity: int = 0


class _Lease(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    origin_transaction_id: str
    sender: str
    recipient: str
    amount: Amount
    height: Height
    status: str
    cancel_height: int | None = None
    cancel_transaction_id: str | None = None


class _Origin(msgspec.Struct, frozen=True, rename="camel"):
    type: int
    sender_public_key: str


class RemoteState:
    """The node's present state of accounts and assets."""

    def __init__(self, remote: Remote, chain_id: int, estimation: EstimationRules) -> None:
        self._remote = remote
        self._chain_id = chain_id
        self._estimation = estimation
        kinds: dict[Table[Any, Any], Callable[[bytes], Records]] = {
            WAVES: self._balances,
            LEASES: self._balances,
            ASSET_BALANCES: self._asset_balance,
            DATA: self._entry,
            ASSETS: self._asset,
            SPONSORSHIPS: self._asset,
            ASSET_VOLUMES: self._asset,
            ASSET_NAMES: self._asset,
            ASSET_SCRIPTS: self._asset,
            ERC20: self._token,
            ALIASES: self._alias,
            ACCOUNT_SCRIPTS: self._script,
            LEASE_INFO: self._lease,
            LEASE_STATES: self._lease,
        }
        self.entries = {layout.ROWS[table].prefix: each for table, each in kinds.items()}
        """The functions that read an entry, by the prefix of its key; they take the rest of it."""
        self.entries[GENERATING] = self._balances
        self.at_height = {
            layout.ROWS[WAVES].prefix: self._waves_at,
            layout.ROWS[ASSET_BALANCES].prefix: self._asset_at,
        }
        """Like ``entries``, for the state after the block at a height."""
        self.lists: dict[bytes, Callable[[Address], Iterator[tuple[bytes, bytes]]]] = {
            layout.ROWS[DATA].prefix: self._all_data,
            layout.ROWS[ASSET_BALANCES].prefix: self._all_assets,
            layout.ADDRESS_ALIAS: self._all_aliases,
            layout.ADDRESS_LEASE: self._all_leases,
            layout.ADDRESS_NFT: self._all_nfts,
        }
        """The functions that list all entries of an account, by the prefix of the keys."""

    def _waves_at(self, address: bytes, height: int) -> Records:
        return _record(WAVES, address, self._balance_at(address, height, ""))

    def _asset_at(self, key: bytes, height: int) -> Records:
        address, asset_id = key[:ADDRESS_LENGTH], key[ADDRESS_LENGTH:]
        balance = self._balance_at(address, height, f"&asset={base58.encode(asset_id)}")
        return _record(ASSET_BALANCES, (address, asset_id), balance)

    def _balance_at(self, address: bytes, height: int, asset: str) -> int:
        name = base58.encode(address)
        path = f"/addresses/balance?height={height}&address={name}{asset}"
        found = self._remote.ask(path, list[_Owned])
        if [each.id for each in found] != [name]:
            raise self._remote.trouble(path, "answers about other accounts")
        return found[0].balance

    # --- accounts ---------------------------------------------------------------------------------

    def _balances(self, address: bytes) -> Records:
        found = self._remote.ask(f"/addresses/balance/details/{base58.encode(address)}", _Balances)
        leases = LeaseBalance(found.effective - found.available, found.regular - found.available)
        return {
            **_record(WAVES, address, found.regular),
            **_record(LEASES, address, leases),
            GENERATING + address: I64.pack(found.generating),
        }

    def _asset_balance(self, key: bytes) -> Records:
        address, asset_id = key[:ADDRESS_LENGTH], key[ADDRESS_LENGTH:]
        path = f"/assets/balance/{base58.encode(address)}/{base58.encode(asset_id)}"
        found = self._remote.find(path, _Balance)
        return _record(ASSET_BALANCES, (address, asset_id), 0 if found is None else found.balance)

    def _all_assets(self, address: Address) -> Iterator[tuple[bytes, bytes]]:
        path = f"/assets/balance/{base58.encode(address)}"
        for each in self._remote.ask(path, _Holdings).balances:
            asset_id = self._remote.binary(path, each.asset_id, 32)
            yield from _present(ASSET_BALANCES, (address, asset_id), each.balance)

    def _all_nfts(self, address: Address) -> Iterator[tuple[bytes, bytes]]:
        start = f"/assets/nft/{base58.encode(address)}/limit/{NFT_PAGE}"
        path = start
        for _ in range(MAX_NFT_PAGES):
            rows = self._remote.page(path, _Asset, NFT_PAGE)
            for each in rows:
                asset_id = self._remote.binary(path, each.asset_id, 32)
                place = _PLACE.pack(each.issue_height, max(0, each.sequence_in_block))
                yield layout.ADDRESS_NFT + address + place + asset_id, b""
            if len(rows) < NFT_PAGE:
                return
            path = f"{start}?after={rows[-1].asset_id}"
        raise self._remote.trouble(path, f"more than {MAX_NFT_PAGES * NFT_PAGE} NFTs")

    def _entry(self, key: bytes) -> Records:
        address, name = layout.decode_data_key(layout.ROWS[DATA].prefix + key)
        path = f"/addresses/data/{base58.encode(address)}?key={quote(name, safe='')}"
        rows = self._remote.ask(path, list[dict[str, Any]])
        entries = [self._read_entry(path, row) for row in rows]
        if not entries:
            return {layout.ROWS[DATA].prefix + key: None}
        if len(entries) != 1 or entries[0].key != name:
            raise self._remote.trouble(path, "answers with another entry")
        return _record(DATA, (address, name), entries[0].value)

    def _all_data(self, address: Address) -> Iterator[tuple[bytes, bytes]]:
        path = f"/addresses/data/{base58.encode(address)}"
        for row in self._remote.ask(path, list[dict[str, Any]]):
            entry = self._read_entry(path, row)
            yield from _present(DATA, (address, entry.key), entry.value)

    def _read_entry(self, path: str, row: dict[str, Any]) -> DataEntry:
        try:
            return read_data_entry(row)
        except ChainError as error:
            raise self._remote.trouble(path, f"no entry: {error}") from error

    def _script(self, address: bytes) -> Records:
        path = f"/addresses/scriptInfo/{base58.encode(address)}"
        found = self._remote.ask(path, _Script)
        if not found.script:
            return {layout.ROWS[ACCOUNT_SCRIPTS].prefix + address: None}
        key = self._public_key(path, found.public_key, address)
        code = self._code(path, found.script)
        complexity = Complexities(found.verifier_complexity)
        # An old script may exceed the limits; the node's number is sufficient for these.
        with contextlib.suppress(RideError):
            complexity = estimate_for_account(parse_script(code), self._estimation)
        script = AccountScript(key, code, complexity.verifier, complexity.callables)
        return _record(ACCOUNT_SCRIPTS, address, script)

    def _public_key(self, path: str, text: str | None, address: bytes) -> bytes:
        if text is None:
            raise self._remote.trouble(
                path, "the public key of an account with a script is not told"
            )
        key = self._remote.binary(path, text, 32)
        if from_public_key(key, self._chain_id) != address:
            raise self._remote.trouble(path, "answers with another account's public key")
        return key

    def _code(self, path: str, text: str) -> bytes:
        try:
            return decode_base64(text)
        except (ChainError, ValueError) as error:
            raise self._remote.trouble(path, f"no base64: {error}") from error

    def _address(self, path: str, text: str) -> Address:
        try:
            return check_address(self._remote.binary(path, text, ADDRESS_LENGTH), self._chain_id)
        except ChainError as error:
            raise self._remote.trouble(path, f"no address of this chain: {error}") from error

    # --- assets -----------------------------------------------------------------------------------

    def _asset(self, asset_id: bytes) -> Records:
        path = f"/assets/details/{base58.encode(asset_id)}?full=true"
        found = self._remote.find(path, _Asset) if len(asset_id) == 32 else None
        tables = (ASSETS, SPONSORSHIPS, ASSET_VOLUMES, ASSET_NAMES, ASSET_SCRIPTS)
        if found is None:
            return {layout.ROWS[table].prefix + asset_id: None for table in tables}
        if found.asset_id != base58.encode(asset_id):
            raise self._remote.trouble(path, "answers with another asset")
        info = AssetInfo(
            self._remote.binary(path, found.issuer_public_key, 32),
            found.decimals,
            (found.quantity, found.decimals, found.reissuable) == (1, 0, False),
            self._remote.binary(path, found.origin_transaction_id, 32, 64),
            found.issue_height,
            max(0, found.sequence_in_block),
        )
        script, height = found.script_details, found.issue_height
        try:
            return {
                **_record(ASSETS, asset_id, info),
                **_record(SPONSORSHIPS, asset_id, found.min_sponsored_asset_fee or 0),
                **_record(ASSET_VOLUMES, asset_id, AssetVolume(found.reissuable, found.quantity)),
                **_record(
                    ASSET_NAMES,
                    asset_id,
                    AssetName(found.name.encode(), found.description.encode(), height),
                ),
                **_record(
                    ASSET_SCRIPTS,
                    asset_id,
                    None
                    if script is None
                    else AssetScript(self._code(path, script.script), script.script_complexity),
                ),
            }
        except struct.error as error:
            raise self._remote.trouble(path, f"no asset: {error}") from error

    def _token(self, token: bytes) -> Records:
        path, key = f"/eth/assets?id=0x{token.hex()}", layout.ROWS[ERC20].prefix + token
        found = self._remote.find(path, list[_AssetId], absent=_INVALID_IDS)
        if not found:
            return {key: None}
        asset_id = self._remote.binary(path, found[0].asset_id, 32)
        if asset_id[: len(token)] != token:
            raise self._remote.trouble(path, "answers with another asset")
        return {key: asset_id}

    # --- aliases and leases -----------------------------------------------------------------------

    def _alias(self, name: bytes) -> Records:
        path = f"/alias/by-alias/{quote(name.decode(), safe='')}"
        found = self._remote.find(path, _Owner)
        if found is None:
            return {layout.ROWS[ALIASES].prefix + name: None}
        return _record(ALIASES, name.decode(), self._address(path, found.address))

    def _all_aliases(self, address: Address) -> Iterator[tuple[bytes, bytes]]:
        path = f"/alias/by-address/{base58.encode(address)}"
        names = self._remote.ask(path, list[str])
        # The newest come first; their heights are not available.
        for number, text in enumerate(reversed(names)):
            place = layout.height_key(address, 0) + number.to_bytes(4, "big")[-2:]
            yield layout.ADDRESS_ALIAS + place, text.rpartition(":")[2].encode()

    def _lease(self, lease_id: bytes) -> Records:
        path = f"/leasing/info/{base58.encode(lease_id)}"
        found = self._remote.find(path, _Lease)
        if found is None:
            tables = (LEASE_INFO, LEASE_STATES)
            return {layout.ROWS[table].prefix + lease_id: None for table in tables}
        return self._lease_records(path, lease_id, found)

    def _lease_records(self, path: str, lease_id: bytes, found: _Lease) -> Records:
        origin = self._remote.binary(path, found.origin_transaction_id, 32, 64)
        sender = self._address(path, found.sender)
        info = LeaseInfo(
            self._lessor(path, found.origin_transaction_id, sender),
            self._address(path, found.recipient),
            found.amount,
            origin,
            found.height,
        )
        state = LeaseState(True, 0, b"")
        if found.status != "active":
            by = found.cancel_transaction_id
            name = b"" if by is None else self._remote.binary(path, by, 32, 64)
            state = LeaseState(False, found.cancel_height or 0, name)
        return {
            **_record(LEASE_INFO, lease_id, info),
            **_record(LEASE_STATES, lease_id, state),
        }

    def _lessor(self, path: str, origin: str, sender: Address) -> bytes:
        """Return the public key of the lessor: the transaction's sender, or a dApp."""
        made = self._remote.ask(f"/transactions/info/{origin}", _Origin)
        if made.type == _LEASE:
            return self._public_key(path, made.sender_public_key, sender)
        route = f"/addresses/scriptInfo/{base58.encode(sender)}"
        return self._public_key(route, self._remote.ask(route, _Script).public_key, sender)

    def _all_leases(self, address: Address) -> Iterator[tuple[bytes, bytes]]:
        path = f"/leasing/active/{base58.encode(address)}"
        for number, each in enumerate(self._remote.ask(path, list[_Lease])):
            lease_id = self._remote.binary(path, each.id, 32, 64)
            place = layout.height_key(address, each.height) + (2**32 - 1 - number).to_bytes(
                4, "big"
            )
            yield layout.ADDRESS_LEASE + place, lease_id


def _record(table: Table[Any, Any], key: Any, value: Any) -> Records:  # noqa: ANN401 - of any table
    row = layout.ROWS[table]
    return {row.prefix + row.key(key): row.encode(value)}


def _present(table: Table[Any, Any], key: Any, value: Any) -> Iterator[tuple[bytes, bytes]]:  # noqa: ANN401
    row = layout.ROWS[table]
    yield row.prefix + row.key(key), row.encode(value)
