"""Transactions: making, signing, reading and writing them in every form.

What lives here: ``Transaction``, and the clock of their timestamps. What does not: the fields of
each type (``soliton.chain.transactions``), making one (``account``), and sending it (``node``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from soliton.chain.errors import ChainError, FormatError, ValueRuleError
from soliton.chain.transactions import codec, ethereum, json_reader
from soliton.chain.transactions.model import MAX_PROOFS, AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.client.fees import most_fee
from soliton.crypto import base58

MAX_JSON_BYTES: Final = 1_048_576
"""Limit on the length of a transaction's JSON text."""
_PROTOBUF_FIRST: Final = frozenset((b"\x0a", b"\x12", b"\x1a"))
"""The first bytes of a ``SignedTransaction``: the tag of a transaction, a proof, or an Ethereum
transaction.
"""
_FIRST_ALIAS: Final = b"\x0a"


class Signer(Protocol):
    """Anything that signs: an ``Account``, a device, a service."""

    @property
    def can_sign(self) -> bool:
        """Whether it has a private key."""

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""


class Renewer(Protocol):
    """Makes a new version of a transaction whose signature is not among its proofs."""

    def __call__(self, before: AnyTransaction, fee: int, timestamp: int, /) -> AnyTransaction:
        """Return the same transaction with another fee and timestamp."""


class Clock:
    """A clock in milliseconds that never returns the same time twice: equal transactions would have
    the same id and be processed once.
    """

    __slots__ = ("_last", "_lock")

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self, now: int | None = None) -> int:
        """Return the present time (or ``now``, the time of another clock), or one soon after it."""
        now = time.time_ns() // 1_000_000 if now is None else now
        with self._lock:
            self._last = last = max(now, self._last + 1)
        return last


clock: Final = Clock()
"""The clock of this process."""


class Transaction:
    """A transaction of any type and version, signed or not. Immutable: methods that change it
    return a new one.

    ``Account`` makes them; ``from_json``, ``from_bytes`` and ``from_protobuf`` read them.

    >>> from soliton import Account
    >>> alice = Account.from_seed("soliton devnet account 1", "R")
    >>> payment = alice.transfer(alice, "1.5", timestamp=1_600_000_000_000)
    >>> payment.type, payment.version, payment.fee, payment.data.amount
    (4, 3, 100000, 150000000)
    >>> Transaction.from_bytes(payment.to_bytes(), "R") == payment
    True
    """

    __slots__ = ("_max_asset_fee", "_renewer", "_signer", "chosen", "inner")

    def __init__(
        self,
        inner: AnyTransaction,
        *,
        signer: Signer | None = None,
        renewer: Renewer | None = None,
        chosen: frozenset[str] = frozenset(),
        max_asset_fee: int | None = None,
    ) -> None:
        """Wrap a ``soliton.chain`` transaction; not for users of the library."""
        self.inner = inner
        """The wrapped record of ``soliton.chain``."""
        self.chosen = chosen
        """The members that the library chose (``fee``, ``timestamp``); sending may change them."""
        self._signer = signer
        self._renewer = renewer
        self._max_asset_fee = max_asset_fee

    @property
    def id(self) -> str:
        """Its id in base58."""
        return base58.encode(self.inner.id)

    @property
    def type(self) -> int:
        """The number of its type."""
        return self.inner.type_id

    @property
    def type_name(self) -> str:
        """The name of its type: ``transfer``, ``issue``, ``invoke_script``..."""
        return type_by_id(self.inner.type_id).name

    @property
    def version(self) -> int:
        """The version of its layout."""
        return self.inner.version

    @property
    def chain_id(self) -> int:
        """The id of its chain."""
        return self.inner.chain_id

    @property
    def sender(self) -> str:
        """The address of its sender."""
        return codec.sender_text(self.inner)

    @property
    def sender_public_key(self) -> str:
        """The public key of its sender, in base58."""
        return base58.encode(self.inner.sender_public_key)

    @property
    def fee(self) -> int:
        """Its fee, in units of ``fee_asset``."""
        return self.inner.fee

    @property
    def fee_asset(self) -> str | None:
        """The asset of the fee; ``None`` is the chain's coin."""
        asset = self.inner.fee_asset_id
        return None if asset is None else base58.encode(asset)

    @property
    def max_fee(self) -> int | None:
        """The limit to which sending raises a fee that the library chose, in units of
        ``fee_asset``: twice the minimum of the network's rules if the sender and all its assets
        have scripts. ``None`` for an asset of which the sponsor's rate is not known.
        """
        if self.inner.fee_asset_id is not None:
            return self._max_asset_fee
        return most_fee(self.inner)

    @property
    def timestamp(self) -> int:
        """The time of its making, in milliseconds."""
        return self.inner.timestamp

    @property
    def data(self) -> Any:  # noqa: ANN401 - each type has a record of its own
        """The fields of its type, as a record: ``data.amount`` of a transfer. Ids and addresses are
        bytes here, text in ``to_json``.
        """
        return self.inner.payload

    @property
    def body(self) -> bytes:
        """The bytes that are signed."""
        return self.inner.body

    @property
    def proofs(self) -> tuple[bytes, ...]:
        """Its signatures, or other proofs for the sender's script."""
        return self.inner.proofs

    @property
    def is_signed(self) -> bool:
        """Whether it has a proof, or is an Ethereum transaction, which includes its signature."""
        return bool(self.inner.proofs) or self.inner.type_id == ethereum.TYPE_ID

    def check(self) -> Transaction:
        """Return itself, if it is valid without regard to a chain; raises ``InputError`` if not."""
        codec.validate(self.inner)
        codec.check_proofs(self.inner.proofs)
        return self

    # --- signing ----------------------------------------------------------------------------------

    def signed_by(self, account: Signer, place: int | None = None) -> Transaction:
        """Return a copy with another signature, at index ``place`` of the proofs (missing ones
        before it become empty), by default after the present ones. Raises ``InputError``.
        """
        proofs = list(self.inner.proofs)
        place = len(proofs) if place is None else place
        if not 0 <= place < MAX_PROOFS:
            raise ValueRuleError(f"a transaction has {MAX_PROOFS} proofs at most: no place {place}")
        proofs += [b""] * (place + 1 - len(proofs))
        proofs[place] = account.sign(self.inner.body)
        return self.with_proofs(*proofs)

    def with_proofs(self, *proofs: bytes) -> Transaction:
        """Return a copy with these proofs; raises ``InputError`` for invalid ones."""
        codec.check_proofs(proofs)
        return Transaction(codec.with_proofs(self.inner, proofs))

    def renewed(
        self, *, fee: int | None = None, timestamp: int | None = None, is_choice: bool = False
    ) -> Transaction:
        """Return a copy with another fee or timestamp, signed by the account that made it, or
        without proofs if no account did. ``is_choice`` lets sending change them again.
        """
        inner, signer = self.inner, self._signer
        chosen = self._still_chosen(fee, timestamp, is_choice=is_choice)
        if self._renewer is not None:
            stamp = inner.timestamp if timestamp is None else timestamp
            renewed = self._renewer(inner, inner.fee if fee is None else fee, stamp)
            return Transaction(renewed, renewer=self._renewer, chosen=chosen)
        made = codec.build(
            type_by_id(inner.type_id),
            inner.payload,
            version=inner.version,
            chain_id=inner.chain_id,
            sender_public_key=inner.sender_public_key,
            fee=inner.fee if fee is None else fee,
            fee_asset_id=inner.fee_asset_id,
            timestamp=inner.timestamp if timestamp is None else timestamp,
        )
        if signer is not None and signer.can_sign:
            made = codec.with_proofs(made, (signer.sign(made.body),))
        return Transaction(made, signer=signer, chosen=chosen, max_asset_fee=self._max_asset_fee)

    def _still_chosen(
        self, fee: int | None, timestamp: int | None, *, is_choice: bool
    ) -> frozenset[str]:
        given = {"fee": fee, "timestamp": timestamp}
        return self.chosen - {
            name for name, value in given.items() if value is not None and not is_choice
        }

    @property
    def can_be_renewed(self) -> bool:
        """Whether it can be signed again by the account that made it."""
        if self._renewer is not None:
            return True
        return self._signer is not None and self._signer.can_sign and len(self.proofs) == 1

    # --- forms ------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that nodes accept and show."""
        return codec.to_json(self.inner)

    def to_bytes(self) -> bytes:
        """Serialize it as in blocks, in the form of its version."""
        return codec.encode(self.inner)

    def to_protobuf(self) -> bytes:
        """Serialize it as a ``SignedTransaction`` message, whatever its version."""
        return codec.encode_protobuf(self.inner)

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str | bytes, chain_id: int | str) -> Transaction:
        """Read a JSON object or its text, of any type, signed or not; raises ``InputError``."""
        number = chain_number(chain_id)
        made = json_reader.read_shown(json_object(value), number, clock.next())
        codec.check_proofs(made.proofs)
        return cls(made)

    @classmethod
    def from_bytes(cls, data: bytes, chain_id: int | str) -> Transaction:
        """Read the result of ``to_bytes``, of any version; raises ``InputError``."""
        number = chain_number(chain_id)
        if len(data) > codec.MAX_TRANSACTION_BYTES:
            raise FormatError(f"{len(data)} bytes are more than a transaction can have")
        if data[:1] not in _PROTOBUF_FIRST:
            return cls(codec.decode_legacy(data, number))
        try:
            return cls(codec.decode_protobuf(data, number))
        except ChainError:
            if data[:1] != _FIRST_ALIAS:
                raise
            # The layout of an early alias transaction begins with the byte of most messages.
            try:
                return cls(codec.decode_legacy(data, number))
            except ChainError:
                pass
            raise

    @classmethod
    def from_protobuf(cls, data: bytes, chain_id: int | str) -> Transaction:
        """Read a ``SignedTransaction`` message; raises ``InputError``."""
        return cls(codec.decode_protobuf(data, chain_number(chain_id)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transaction) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash((self.inner.id, self.inner.proofs))

    def __repr__(self) -> str:
        state = "signed" if self.is_signed else "unsigned"
        return f"<Transaction {self.type_name} {self.id}, {state}>"


def chain_number(chain_id: int | str) -> int:
    """Return a chain id given as a number or a letter; raises ``InputError``."""
    number = ord(chain_id) if isinstance(chain_id, str) and len(chain_id) == 1 else chain_id
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= 255:
        raise FormatError(f"a chain id is one letter, or a number up to 255: not {chain_id!r}")
    return number


def json_object(value: Mapping[str, Any] | str | bytes) -> Mapping[str, Any]:
    """Return a JSON object, parsed if it is text; raises ``FormatError``."""
    if isinstance(value, Mapping):
        return value
    if len(value) > MAX_JSON_BYTES:
        raise FormatError(f"{len(value)} characters are more than a transaction can have")
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise FormatError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise FormatError("no JSON object")
    return found
