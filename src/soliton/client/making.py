"""Transactions of every type and version, and orders, made by an account.

What lives here: one method for each type. What does not: keys (``account``), and the corrections
that a node asks for when a transaction is sent (``sending``).

An amount is an ``int`` in the smallest unit or decimal text; an asset is an id in base58 or a
record with decimals (``amounts``); a recipient is an address, ``alias:R:name``, or an account. The
default fee is the network's minimum; ``Node.send`` raises it where scripts or sponsorship require
more, up to the transaction's ``max_fee``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, Union

from soliton.chain.addresses import Recipient, make_alias, parse_claimed_recipient
from soliton.chain.errors import ChainError, FormatError
from soliton.chain.function_calls import DEFAULT_FUNCTION, MAX_LIST_DEPTH, Argument, FunctionCall
from soliton.chain.json_kinds import decode_base64
from soliton.chain.transactions import codec
from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.commit_to_generation import CommitToGeneration, commitment
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.reissue import Reissue
from soliton.chain.transactions.set_asset_script import SetAssetScript
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.sponsor_fee import SponsorFee
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
from soliton.chain.values import DataEntry, DataValue
from soliton.client.amounts import (
    Amount,
    Asset,
    AssetLike,
    asset_bytes,
    id_bytes,
    sponsored_rate,
    units,
)
from soliton.client.fees import in_sponsored, least_fee, most_fee
from soliton.client.order import Order, OrderMaking
from soliton.client.transaction import Transaction
from soliton.crypto import base58


class HasAddress(Protocol):
    """An account, or anything else that has an address."""

    @property
    def address(self) -> str: ...


Whom: TypeAlias = str | HasAddress
"""A recipient: an address or ``alias:R:name`` as text, or an account."""
Script: TypeAlias = str | bytes | None
"""A compiled script in bytes or base64; ``None`` for no script."""
Value: TypeAlias = Union[int, bool, bytes, str, Sequence["Value"]]  # noqa: UP007 - recursive
"""An argument of a function or, except for lists, a value of a data entry."""


class Making(OrderMaking):
    """The transactions of an account. All methods take ``fee``, ``timestamp`` (milliseconds) and
    ``version``; the defaults are the minimum fee, the present time and the latest version. They
    raise ``InputError`` for invalid values.
    """

    __slots__ = ()

    def transfer(
        self,
        recipient: Whom,
        amount: Amount,
        asset: AssetLike = None,
        *,
        attachment: bytes | str = b"",
        fee: Amount | None = None,
        fee_asset: AssetLike = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Transfer an amount of the coin, or of an asset."""
        payload = Transfer(
            self._whom(recipient), asset_bytes(asset), units(amount, asset), _bytes(attachment)
        )
        return self._make(4, payload, version, timestamp, fee, fee_asset)

    def mass_transfer(
        self,
        amounts: Mapping[str, Amount] | Iterable[tuple[Whom, Amount]],
        asset: AssetLike = None,
        *,
        attachment: bytes | str = b"",
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 2,
    ) -> Transaction:
        """Transfer amounts of the coin, or of an asset, to up to 100 recipients."""
        pairs = amounts.items() if isinstance(amounts, Mapping) else amounts
        items = tuple(
            TransferItem(self._whom(recipient), units(amount, asset)) for recipient, amount in pairs
        )
        payload = MassTransfer(asset_bytes(asset), items, _bytes(attachment))
        return self._make(11, payload, version, timestamp, fee)

    def issue(
        self,
        name: str,
        quantity: Amount,
        decimals: int = 0,
        description: str = "",
        *,
        reissuable: bool = False,
        script: Script = None,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Issue an asset; its id is the transaction's. ``quantity`` is in its smallest unit, or
        decimal text. Quantity 1 without decimals and not reissuable makes an NFT.
        """
        payload = Issue(
            _bytes(name),
            _bytes(description),
            units(quantity, Asset("", decimals)),
            decimals,
            reissuable,
            script_bytes(script),
        )
        return self._make(3, payload, version, timestamp, fee)

    def reissue(
        self,
        asset: AssetLike,
        quantity: Amount,
        *,
        reissuable: bool = True,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Issue more of an asset; ``reissuable`` tells whether it can be reissued again."""
        payload = Reissue(_issued(asset), units(quantity, asset), reissuable)
        return self._make(5, payload, version, timestamp, fee)

    def burn(
        self,
        asset: AssetLike,
        quantity: Amount,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Destroy an amount of an asset."""
        payload = Burn(_issued(asset), units(quantity, asset))
        return self._make(6, payload, version, timestamp, fee)

    def exchange(
        self,
        buy: Order,
        sell: Order,
        amount: int,
        price: int,
        *,
        buy_matcher_fee: int,
        sell_matcher_fee: int,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Execute two orders against each other, with this account as their matcher; ``amount`` and
        ``price`` are integers as in orders.
        """
        payload = Exchange(buy.inner, sell.inner, amount, price, buy_matcher_fee, sell_matcher_fee)
        return self._make(7, payload, version, timestamp, fee)

    def lease(
        self,
        recipient: Whom,
        amount: Amount,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Lease coins to a block generator."""
        payload = Lease(self._whom(recipient), units(amount))
        return self._make(8, payload, version, timestamp, fee)

    def cancel_lease(
        self,
        lease_id: str,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Cancel a lease."""
        return self._make(9, LeaseCancel(id_bytes(lease_id)), version, timestamp, fee)

    def alias(
        self,
        name: str,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 3,
    ) -> Transaction:
        """Create an alias of the account, for ever."""
        payload = CreateAlias(make_alias(name, self.chain_id))
        return self._make(10, payload, version, timestamp, fee)

    def data(
        self,
        entries: Mapping[str, DataValue],
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 2,
    ) -> Transaction:
        """Set entries of the account's data; ``None`` deletes an entry."""
        for value in entries.values():
            if not isinstance(value, int | str | bytes | None):
                kind = type(value).__name__
                raise FormatError(f"entries are int, str, bool, bytes or None, not {kind}")
        payload = Data(tuple(DataEntry(key, value) for key, value in entries.items()))
        return self._make(12, payload, version, timestamp, fee)

    def set_script(
        self,
        script: Script,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 2,
    ) -> Transaction:
        """Set the account's compiled script; ``None`` removes it."""
        return self._make(13, SetScript(script_bytes(script)), version, timestamp, fee)

    def sponsor(
        self,
        asset: AssetLike,
        min_fee: Amount | None,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 2,
    ) -> Transaction:
        """Let others pay fees in an asset of this account: ``min_fee`` of it replaces 0.001 coins;
        ``None`` ends the sponsorship.
        """
        payload = SponsorFee(
            _issued(asset), None if min_fee is None else units(min_fee, asset) or None
        )
        return self._make(14, payload, version, timestamp, fee)

    def set_asset_script(
        self,
        asset: AssetLike,
        script: Script,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 2,
    ) -> Transaction:
        """Replace the script of an asset that was issued with one."""
        payload = SetAssetScript(_issued(asset), script_bytes(script))
        return self._make(15, payload, version, timestamp, fee)

    def invoke(
        self,
        dapp: Whom,
        function: str | None = None,
        *arguments: Value,
        payments: Iterable[tuple[Amount, AssetLike]] = (),
        fee: Amount | None = None,
        fee_asset: AssetLike = None,
        timestamp: int | None = None,
        version: int = 2,
    ) -> Transaction:
        """Call a dApp's function, by default its default function. Arguments are ``int``, ``str``,
        ``bool``, ``bytes`` or lists of them; payments are pairs of amount and asset.
        """
        call = None
        if function is not None and (function, arguments) != (DEFAULT_FUNCTION, ()):
            call = FunctionCall(function, tuple(map(argument, arguments)))
        paid = tuple(
            Payment(units(amount, asset), asset_bytes(asset)) for amount, asset in payments
        )
        payload = InvokeScript(self._whom(dapp), call, paid)
        return self._make(16, payload, version, timestamp, fee, fee_asset)

    def update_asset_info(
        self,
        asset: AssetLike,
        name: str,
        description: str,
        *,
        fee: Amount | None = None,
        fee_asset: AssetLike = None,
        timestamp: int | None = None,
        version: int = 1,
    ) -> Transaction:
        """Change the name and description of an asset of this account."""
        payload = UpdateAssetInfo(_issued(asset), _bytes(name), _bytes(description))
        return self._make(17, payload, version, timestamp, fee, fee_asset)

    def commit_to_generation(
        self,
        period_start: int,
        endorser_public_key: bytes | None = None,
        signature: bytes | None = None,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
        version: int = 1,
    ) -> Transaction:
        """Announce block generation in the period that begins at a height, and lock a deposit of
        100 coins until its end. ``signature`` is that of the BLS12-381 key for endorsements;
        without them both are derived from the private key, as nodes do. Raises ``InputError`` for
        an account without one.
        """
        if endorser_public_key is None or signature is None:
            derived = commitment(base58.decode(self.private_key()), period_start)
            endorser_public_key = endorser_public_key or derived.endorser_public_key
            signature = signature or derived.commitment_signature
        payload = CommitToGeneration(period_start, endorser_public_key, signature)
        return self._make(19, payload, version, timestamp, fee)

    def _whom(self, recipient: Whom) -> Recipient:
        text = recipient if isinstance(recipient, str) else recipient.address
        return parse_claimed_recipient(text, self.chain_id)

    def _make(
        self,
        type_id: int,
        payload: object,
        version: int,
        timestamp: int | None,
        fee: Amount | None,
        fee_asset: AssetLike = None,
    ) -> Transaction:
        kind, key, chain_id = type_by_id(type_id), self.public_key_bytes, self.chain_id
        stamp = self._stamp() if timestamp is None else timestamp
        try:
            rate = sponsored_rate(fee_asset)
            if fee is None:
                amount = least_fee(chain_id, type_id, version, payload)
                if rate is not None:
                    amount = in_sponsored(amount, chain_id, rate)
            else:
                amount = units(fee, fee_asset)
            made = codec.build(
                kind,
                payload,
                version=version,
                chain_id=chain_id,
                sender_public_key=key,
                fee=amount,
                fee_asset_id=asset_bytes(fee_asset),
                timestamp=stamp,
            )
            codec.validate(made)
        except UnicodeEncodeError as error:
            raise FormatError(_NO_TEXT) from error
        if self.can_sign:
            made = codec.with_proofs(made, (self.sign(made.body),))
        chosen = _BOTH if fee is None and timestamp is None else _chosen(fee, timestamp)
        most = None if rate is None else in_sponsored(most_fee(made), chain_id, rate)
        return Transaction(made, signer=self, chosen=chosen, max_asset_fee=most)


_NO_TEXT: Final = "half of a character is no text that UTF-8 can write"
_BOTH: Final = frozenset(("fee", "timestamp"))


def _chosen(fee: Amount | None, timestamp: int | None) -> frozenset[str]:
    given = {"fee": fee, "timestamp": timestamp}
    return frozenset(name for name, value in given.items() if value is None)


def script_bytes(script: Script) -> bytes | None:
    """Return a compiled script in bytes; raises ``InputError`` for invalid base64."""
    if script is None or isinstance(script, bytes):
        return script or None
    try:
        return decode_base64(script) or None
    except ChainError as error:
        raise FormatError(f"a compiled script is base64 text, not {script[:20]!r}") from error


def _issued(asset: AssetLike) -> bytes:
    data = asset_bytes(asset)
    if data is None:
        raise FormatError("the native coin is not an issued asset")
    return data


def _bytes(value: bytes | str) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError as error:
        raise FormatError(_NO_TEXT) from error


def argument(value: Value, depth: int = 0) -> Argument:
    """Return an argument of a function call; raises ``InputError`` for other types."""
    if isinstance(value, int | str | bytes):
        return value
    if depth > MAX_LIST_DEPTH or not isinstance(value, list | tuple):
        raise FormatError(
            "arguments are int, str, bool, bytes and lists of them, not "
            + (f"lists {depth} deep" if depth > MAX_LIST_DEPTH else type(value).__name__)
        )
    return tuple(argument(each, depth + 1) for each in value)
