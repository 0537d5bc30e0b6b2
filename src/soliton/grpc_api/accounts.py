"""``waves.node.grpc.AccountsApi``: balances, scripts, leases, data, aliases.

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/api/grpc/
AccountsApiGrpcImpl.scala``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.wrappers_pb2 import BytesValue, StringValue

from soliton.api import errors
from soliton.chain.addresses import Address, from_public_key, make_alias
from soliton.chain.errors import AliasError
from soliton.chain.protobuf import write_data_entry, write_recipient
from soliton.chain.values import AssetId, DataEntry
from soliton.grpc_api.errors import AddressRefused, Code, Refused, of_rest
from soliton.grpc_api.messages import DIGEST_LENGTH, script_text
from soliton.grpc_api.proto import accounts_api_pb2 as pb
from soliton.grpc_api.reading import (
    address_of_alias,
    fungible_balances,
    read_address,
    stream_address,
)
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ASSET_BALANCES,
    DATA,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    WAVES,
    Missing,
    effective_balance_of,
    is_banned_between,
    locked_balance,
)
from soliton.node.blockchain import Blockchain
from soliton.storage import indexes

SERVICE: Final = pb.DESCRIPTOR.services_by_name["AccountsApi"]


def get_balances(
    chain: Blockchain, request: pb.BalancesRequest
) -> Iterator[pb.BalanceResponse | None]:
    """Return the requested balances in order, or the coin's and those of all assets but NFTs."""
    if not request.address:
        return
    address = stream_address(request.address, chain.network.chain_id)
    if request.assets:
        for asset_id in request.assets:
            yield _asset(chain, address, asset_id) if asset_id else _waves(chain, address)
        return
    yield _waves(chain, address)
    for found in fungible_balances(chain, address):
        yield None if found is None else _asset_response(*found)


def _waves(chain: Blockchain, address: Address) -> pb.BalanceResponse:
    store = chain.store
    regular, leases = store.get(WAVES, address), store.get(LEASES, address)
    response = pb.BalanceResponse()
    waves = response.waves
    waves.regular, waves.available = regular, regular - locked_balance(store, address)
    waves.generating = chain.generating_balance(address)
    if not is_banned_between(store, address, chain.height, chain.height):
        waves.effective = effective_balance_of(store, address)
    waves.lease_in, waves.lease_out = leases.lease_in, leases.lease_out
    return response


def _asset(chain: Blockchain, address: Address, asset_id: bytes) -> pb.BalanceResponse:
    # No asset id has another length, and the store could not look it up.
    if len(asset_id) != DIGEST_LENGTH:
        return _asset_response(asset_id, 0)
    return _asset_response(asset_id, chain.store.get(ASSET_BALANCES, (address, AssetId(asset_id))))


def _asset_response(asset_id: bytes, amount: int) -> pb.BalanceResponse:
    response = pb.BalanceResponse()
    response.asset.asset_id, response.asset.amount = asset_id, amount
    return response


def get_script(chain: Blockchain, request: pb.AccountRequest) -> pb.ScriptResponse:
    """Return an account's script, or an empty message."""
    try:
        address = read_address(request.address, chain.network.chain_id)
    except AddressRefused as error:
        raise Refused(Code.INTERNAL, str(error)) from error
    found = chain.store.get(ACCOUNT_SCRIPTS, address)
    if found is None or not found.script:
        return pb.ScriptResponse()
    return pb.ScriptResponse(
        script_bytes=found.script,
        script_text=script_text(found.script),
        complexity=found.verifier_complexity,
        public_key=found.public_key,
    )


def get_active_leases(chain: Blockchain, request: pb.AccountRequest) -> Iterator[pb.LeaseResponse]:
    """Return the active leases from and to an account."""
    chain_id, store = chain.network.chain_id, chain.store
    address = stream_address(request.address, chain_id)
    for _, lease_id in indexes.leases_of(store, address):
        state, info = store.get(LEASE_STATES, lease_id), store.get(LEASE_INFO, lease_id)
        if state is None or info is None or not state.active:
            continue
        response = pb.LeaseResponse(
            leaseId=lease_id,
            originTransactionId=info.origin,
            sender=from_public_key(info.sender, chain_id),
            amount=info.amount,
            height=info.height,
        )
        write_recipient(response.recipient, info.recipient)
        yield response


def get_data_entries(chain: Blockchain, request: pb.DataRequest) -> Iterator[pb.DataEntryResponse]:
    """Return an account's entry with a key, or all entries in the order of keys."""
    address = stream_address(request.address, chain.network.chain_id)
    if not request.key:
        for key, value in chain.store.data_entries(address):
            yield _entry(request.address, DataEntry(key, value))
        return
    if len(request.key.encode()) > _MAX_KEY_BYTES:
        return
    value = chain.store.get(DATA, (address, request.key))
    if value is not None and not isinstance(value, Missing):
        yield _entry(request.address, DataEntry(request.key, value))


_MAX_KEY_BYTES: Final = 400
"""Limit on the length of keys; the store could not look up longer ones."""


def _entry(address: bytes, entry: DataEntry) -> pb.DataEntryResponse:
    # The address in the form of the request.
    response = pb.DataEntryResponse(address=address)
    write_data_entry(response.entry, entry)
    return response


def resolve_alias(chain: Blockchain, request: StringValue) -> BytesValue:
    """Return the address of an alias."""
    try:
        alias = make_alias(request.value, chain.network.chain_id)
    except AliasError as error:
        raise of_rest(errors.invalid_request(str(error))) from error
    address = address_of_alias(alias.name, chain)
    if address is None:
        raise of_rest(errors.ALIAS_DOES_NOT_EXIST.error(alias=alias.text()))
    return BytesValue(value=address)


METHODS: Final = {
    "GetBalances": get_balances,
    "GetScript": get_script,
    "GetActiveLeases": get_active_leases,
    "GetDataEntries": get_data_entries,
    "ResolveAlias": resolve_alias,
}
