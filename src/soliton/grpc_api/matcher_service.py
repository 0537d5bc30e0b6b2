"""``waves.dex.grpc.integration.WavesBlockchainApi``: the API of the Scala matcher's node extension.

Calls with a list yield ``None`` after each item, and their response last.

What lives here: the calls. What does not: running scripts (``matcher_scripts``), the stream of the
pool (``pool_events``).

Source: wavesplatform/matcher ``waves-ext/src/main/scala/com/wavesplatform/dex/grpc/integration/
services/WavesBlockchainApiGrpcService.scala``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from google.protobuf.empty_pb2 import Empty

from soliton.api import errors as rest_errors
from soliton.chain.addresses import Address, check_address, from_public_key
from soliton.chain.errors import AddressError
from soliton.chain.proto.transaction_pb2 import SignedTransaction
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.grpc_api import matcher_scripts
from soliton.grpc_api.errors import Code, Refused, numbered, of_rest
from soliton.grpc_api.link import FindUnconfirmed, Limited, NodeLink, Send, Sent, Unconfirmed
from soliton.grpc_api.messages import DIGEST_LENGTH
from soliton.grpc_api.pool_events import PoolEvents
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from soliton.grpc_api.proto.transactions_api_pb2 import TransactionsByIdRequest, TransactionStatus
from soliton.grpc_api.reading import fungible_balances
from soliton.grpc_api.routes import MAX_ITEMS, too_many_items
from soliton.grpc_api.sending import NOT_REACHABLE, VALIDATION, read_sent
from soliton.ledger.scripts import account_script
from soliton.ledger.state import (
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSETS,
    LEASES,
    ORDER_FILLS,
    WAVES,
)
from soliton.node.blockchain import Blockchain
from soliton.node.signatures import verified_messages

SERVICE: Final = pb.DESCRIPTOR.services_by_name["WavesBlockchainApi"]
DESCRIPTION: Final = "desc"
"""The trailer with the message of an error whose status has none."""

_NO_TRANSACTION: Final = "The signed transaction must be specified"
_IN_A_BLOCK: Final = "is already in the state on a height of"
_PASSING: Final = (
    "pool bytes size limit is reached",
    "pool size limit is reached",
    "There are not enough connections with peers",
    "Too much",
    "negative asset balance",
)
"""Errors that may not occur later, by the messages of the reference's node."""
_SHORT: Final = 1 << 16


class MatcherService:
    """The service on one node; ``accounts`` are the public keys of liquidity pools, ``allowed``
    those of other accounts whose scripts may read the state.
    """

    def __init__(
        self,
        chain_id: int,
        node: NodeLink,
        accounts: frozenset[bytes],
        allowed: frozenset[bytes],
    ) -> None:
        self._node = Limited(node)
        self._pools = frozenset(from_public_key(key, chain_id) for key in accounts)
        readers = {from_public_key(key, chain_id) for key in accounts | allowed}
        self._readers = accounts | allowed
        self.pool = PoolEvents(node, readers)

    def methods(self) -> dict[str, object]:
        """Return the calls."""
        return {
            "GetStatuses": self.get_statuses,
            "Broadcast": self.broadcast,
            "CheckedBroadcast": self.checked_broadcast,
            "IsFeatureActivated": is_feature_activated,
            "AssetDescription": asset_description,
            "HasAssetScript": has_asset_script,
            "RunAssetScript": self.run_asset_script,
            "HasAddressScript": has_address_script,
            "RunAddressScript": self.run_address_script,
            "ForgedOrder": forged_order,
            "GetUtxEvents": self.get_utx_events,
            "GetCurrentBlockInfo": get_current_block_info,
            "GetOutgoingLeasing": get_outgoing_leasing,
            "GetAddressPartialRegularBalance": get_address_partial_regular_balance,
            "GetAddressFullRegularBalance": get_address_full_regular_balance,
            "GetBalances": get_balances,
            "CheckAddress": self.check_address,
        }

    # --- transactions -----------------------------------------------------------------------------

    async def get_statuses(
        self, chain: Blockchain, request: TransactionsByIdRequest
    ) -> Iterator[pb.TransactionsStatusesResponse | None]:
        """Return the statuses of transactions; the chain takes precedence over the pool."""
        waiting = set(await self._waiting(list(request.transaction_ids)))
        return _statuses(chain, request, waiting)

    async def broadcast(
        self, chain: Blockchain, request: pb.BroadcastRequest
    ) -> pb.BroadcastResponse:
        """Add an exchange to the pool; return whether it is new there, or the error."""
        transaction = _exchange(request, chain)
        is_new = not await self._waiting([transaction.id])
        sent = await self._send(transaction)
        if sent.error:
            return pb.BroadcastResponse(failed=_message(sent))
        return pb.BroadcastResponse(added=is_new)

    async def checked_broadcast(
        self, chain: Blockchain, request: pb.CheckedBroadcastRequest
    ) -> pb.CheckedBroadcastResponse:
        """Like ``broadcast``, but the exchange may be confirmed already, and the response includes
        all errors.
        """
        response = pb.CheckedBroadcastResponse()
        try:
            transaction = _exchange(request, chain)
        except Refused as error:
            response.failed.message = error.text
            return response
        if chain.store.transaction_location(transaction.id) is not None:
            response.confirmed.SetInParent()
            return response
        waits = bool(await self._waiting([transaction.id]))
        sent = await self._send(transaction)
        if _IN_A_BLOCK in sent.text:
            # In a block that the node has made since this process last read the chain.
            response.confirmed.SetInParent()
        elif sent.error and not waits:
            response.failed.message = _message(sent)
            response.failed.can_retry = self._can_retry(sent, transaction)
        else:
            response.unconfirmed = not waits
        return response

    def _can_retry(self, sent: Sent, transaction: AnyTransaction) -> bool:
        """Whether the same transaction may be accepted later."""
        if any(each in _message(sent) for each in _PASSING):
            return True
        if sent.error != rest_errors.SCRIPT_EXECUTION_ERROR.code:
            return False
        payload = transaction.payload
        assert isinstance(payload, Exchange), "the caller has checked the type"
        first, second = (
            from_public_key(order.sender_public_key, transaction.chain_id) in self._pools
            for order in payload.orders
        )
        return second or (first and "order validation failed" in sent.text)

    async def _waiting(self, ids: list[bytes]) -> list[bytes]:
        answer = await self._node.ask(FindUnconfirmed(b"", ids, only_ids=True))
        if isinstance(answer, Unconfirmed):
            return answer.found
        raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)

    async def _send(self, transaction: AnyTransaction) -> Sent:
        verified = bool(verified_messages(transaction))
        answer = await self._node.ask(Send(codec.encode_protobuf(transaction), verified))
        if isinstance(answer, Sent):
            return answer
        raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)

    async def get_utx_events(self, _request: Empty) -> AsyncIterator[bytes]:
        """Stream the pool's content, then its changes."""
        async for each in self.pool.events():
            yield each

    # --- scripts ----------------------------------------------------------------------------------

    async def run_asset_script(
        self, chain: Blockchain, request: pb.RunAssetScriptRequest
    ) -> pb.RunScriptResponse:
        """Run the script of an asset on an exchange."""
        if not _has_asset_script(chain, request.asset_id):
            return pb.RunScriptResponse()
        try:
            transaction = _exchange(request, chain)
        except Refused as error:
            missing = error.text == _NO_TRANSACTION
            text = "Expected a transaction" if missing else "Can't parse the transaction"
            raise _described(text) from error
        if self._readers:
            await self.pool.start()
        state = self.pool.overlay(chain) if self._readers else chain.store
        return matcher_scripts.ask_asset(chain, state, AssetId(request.asset_id), transaction)

    async def run_address_script(
        self, chain: Blockchain, request: pb.RunAddressScriptRequest
    ) -> pb.RunScriptResponse:
        """Run the script of an account on an order. It may read the order only, unless the settings
        name the account of the order.
        """
        address = _address(request.address, chain)
        script = account_script(address, chain.store)
        if script is None:
            return pb.RunScriptResponse()
        if not request.HasField("order"):
            raise _described("Expected an order")
        order = matcher_scripts.read_order(request.order, chain)
        if order.sender_public_key not in self._readers:
            return matcher_scripts.ask_account(chain, None, script, order)
        await self.pool.start()
        return matcher_scripts.ask_account(chain, self.pool.overlay(chain), script, order)

    def check_address(
        self, chain: Blockchain, request: pb.CheckAddressRequest
    ) -> pb.CheckAddressResponse:
        """Return whether an account is that of a liquidity pool."""
        address = _address(request.address, chain)
        return pb.CheckAddressResponse(successfully_checked=address in self._pools)


def _statuses(
    chain: Blockchain, request: TransactionsByIdRequest, waiting: set[bytes]
) -> Iterator[pb.TransactionsStatusesResponse | None]:
    response = pb.TransactionsStatusesResponse()
    for name in request.transaction_ids:
        yield None
        entry = response.transactions_statutes.add(id=name)
        location = chain.store.transaction_location(name)
        if location is not None:
            entry.status, entry.height = TransactionStatus.CONFIRMED, location.height
        elif name in waiting:
            entry.status = TransactionStatus.UNCONFIRMED
    yield response


# --- the chain ------------------------------------------------------------------------------------


def is_feature_activated(
    chain: Blockchain, request: pb.IsFeatureActivatedRequest
) -> pb.IsFeatureActivatedResponse:
    """Return whether a feature is active at the last block."""
    # As in the reference, the number is truncated to 16 bits.
    feature = (request.feature_id + _SHORT // 2) % _SHORT - _SHORT // 2
    height = chain.rules.activations().get(feature)
    return pb.IsFeatureActivatedResponse(is_activated=height is not None and height <= chain.height)


def asset_description(chain: Blockchain, request: pb.AssetIdRequest) -> pb.AssetDescriptionResponse:
    """Return what a matcher needs of an asset; empty if it does not exist."""
    response = pb.AssetDescriptionResponse()
    if len(request.asset_id) != DIGEST_LENGTH:
        return response
    asset_id = AssetId(request.asset_id)
    info, name = chain.store.get(ASSETS, asset_id), chain.store.get(ASSET_NAMES, asset_id)
    if info is not None and name is not None:
        response.description.name, response.description.decimals = name.name, info.decimals
        response.description.has_script = chain.store.get(ASSET_SCRIPTS, asset_id) is not None
        response.description.nft = info.nft
    return response


def has_asset_script(chain: Blockchain, request: pb.AssetIdRequest) -> pb.HasScriptResponse:
    """Return whether an asset has a script."""
    return pb.HasScriptResponse(has=_has_asset_script(chain, request.asset_id))


def _has_asset_script(chain: Blockchain, asset_id: bytes) -> bool:
    whole = len(asset_id) == DIGEST_LENGTH
    return whole and chain.store.get(ASSET_SCRIPTS, AssetId(asset_id)) is not None


def has_address_script(
    chain: Blockchain, request: pb.HasAddressScriptRequest
) -> pb.HasScriptResponse:
    """Return whether an account has a script."""
    address = _address(request.address, chain)
    return pb.HasScriptResponse(has=account_script(address, chain.store) is not None)


def forged_order(chain: Blockchain, request: pb.ForgedOrderRequest) -> pb.ForgedOrderResponse:
    """Return whether any part of an order was executed."""
    whole = len(request.order_id) == DIGEST_LENGTH
    volume = chain.store.get(ORDER_FILLS, request.order_id).volume if whole else 0
    return pb.ForgedOrderResponse(is_forged=volume > 0)


def get_current_block_info(chain: Blockchain, _request: Empty) -> pb.CurrentBlockInfoResponse:
    """Return the last block, microblocks included."""
    return pb.CurrentBlockInfoResponse(height=chain.height, block_id=chain.last_block.id)


def get_outgoing_leasing(
    chain: Blockchain, request: pb.AddressRequest
) -> pb.GetOutgoingLeasingResponse:
    """Return the amount that an account leases to others."""
    leases = chain.store.get(LEASES, _address(request.address, chain))
    return pb.GetOutgoingLeasingResponse(outgoing_leasing=leases.lease_out)


def get_address_partial_regular_balance(
    chain: Blockchain, request: pb.GetAddressPartialRegularBalanceRequest
) -> Iterator[pb.GetAddressPartialRegularBalanceResponse | None]:
    """Return the requested balances that are not zero."""
    address = _address(request.address, chain)
    response = pb.GetAddressPartialRegularBalanceResponse()
    for each in request.asset_ids:
        yield None
        balance = _balance(chain, address, each.asset_id)
        if balance > 0:
            response.balances.add(asset_id=each.asset_id, balance=balance)
    yield response


def get_address_full_regular_balance(
    chain: Blockchain, request: pb.GetAddressFullRegularBalanceRequest
) -> Iterator[pb.GetAddressFullRegularBalanceResponse | None]:
    """Return all balances but the excluded ones and NFTs, the coin's first, even if it is zero."""
    address = _address(request.address, chain)
    excluded = set(request.exclude_asset_ids)
    response = pb.GetAddressFullRegularBalanceResponse()
    if b"" not in excluded:
        response.balances.add(balance=chain.store.get(WAVES, address))
    for found in fungible_balances(chain, address):
        yield None
        if found is not None and found[0] not in excluded:
            response.balances.add(asset_id=found[0], balance=found[1])
    yield response


def get_balances(
    chain: Blockchain, request: pb.GetBalancesRequest
) -> Iterator[pb.GetBalancesResponse | None]:
    """Return balances and leases of several accounts, in the order of the request."""
    response, items = pb.GetBalancesResponse(), 0
    for each in request.regular:
        yield None
        items += len(each.assets)
        if items > MAX_ITEMS:
            raise too_many_items()
        address = _address(each.address, chain)
        entry = response.regular.add(address=each.address)
        for asset_id in each.assets:
            yield None
            entry.amount.add(asset_id=asset_id, amount=_balance(chain, address, asset_id))
    for owner in request.outgoingLeasingAddresses:
        yield None
        leases = chain.store.get(LEASES, _address(owner, chain))
        response.outgoingLeasing.add(address=owner, amount=leases.lease_out)
    yield response


def _balance(chain: Blockchain, address: Address, asset_id: bytes) -> int:
    if not asset_id:
        return chain.store.get(WAVES, address)
    if len(asset_id) != DIGEST_LENGTH:
        return 0
    return chain.store.get(ASSET_BALANCES, (address, AssetId(asset_id)))


# --- requests -------------------------------------------------------------------------------------


def _address(data: bytes, chain: Blockchain) -> Address:
    try:
        return check_address(data, chain.network.chain_id)
    except AddressError as error:
        raise of_rest(rest_errors.INVALID_ADDRESS.error()) from error


def _exchange(
    request: pb.BroadcastRequest | pb.CheckedBroadcastRequest | pb.RunAssetScriptRequest,
    chain: Blockchain,
) -> AnyTransaction:
    """Return the exchange in a request; raises ``Refused``."""
    if not request.HasField("transaction"):
        raise numbered(VALIDATION, _NO_TRANSACTION)
    sent = request.transaction
    if not sent.HasField("transaction"):
        raise numbered(VALIDATION, "The transaction must be specified")
    held = sent.transaction
    if not held.HasField("exchange"):
        raise numbered(VALIDATION, "The transaction's data must be specified")
    if not held.HasField("fee"):
        raise numbered(VALIDATION, "The transaction's fee must be specified")
    # As in the reference, unknown fields and the chain id in the messages are ignored.
    sent.DiscardUnknownFields()
    held.chain_id = chain.network.chain_id
    message = SignedTransaction.FromString(sent.SerializeToString())
    return read_sent(message, chain)


def _message(sent: Sent) -> str:
    return f"{sent.text}: {sent.details}" if sent.details else sent.text


def _described(text: str) -> Refused:
    return Refused(Code.INVALID_ARGUMENT, "", ((DESCRIPTION, text),))
