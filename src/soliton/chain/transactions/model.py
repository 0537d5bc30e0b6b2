"""The records for transactions of all types: an envelope around a payload, and the description of a
type.

What does not live here: encoding (``codec``), the types (one module each, listed in ``table``), and
their effects (``soliton.ledger.rules``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/{Versioned,PBSince,FastHashId}.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import force_setattr

from soliton.chain import layouts
from soliton.chain.addresses import Recipient
from soliton.chain.fields import (
    Field,
    accounts_of,
    binary_fields,
    camel_case,
    json_writer,
    message_reader,
    message_writer,
)
from soliton.chain.json_schemas import Schema
from soliton.chain.layouts import Codec, Fixed, Values, Variable, compile_fields
from soliton.chain.values import AssetId

P = TypeVar("P")

MAX_PROOFS: Final = 8
MAX_PROOF_BYTES: Final = 64

MAX_RIDE_VERSION: Final = 99
"""Higher than any version of the script language."""

_ENVELOPE: Final[Mapping[str, Fixed | Variable]] = {
    "chain_id": layouts.U8,
    "sender_public_key": layouts.PUBLIC_KEY,
    "fee": layouts.I64,
    "fee_asset_id": layouts.OPTIONAL_ASSET,
    "timestamp": layouts.I64,
}
_NONE: Final[Mapping[str, Any]] = {}


class Transaction(msgspec.Struct, Generic[P], frozen=True, gc=False):
    """A transaction of any type and version.

    ``sender_public_key`` is empty for a genesis transaction. ``fee`` is in wavelets, or in the
    smallest unit of ``fee_asset_id``. ``timestamp`` is in milliseconds. ``body`` are the signed
    bytes. Build one with ``codec.build``, which fills ``body`` and ``id``.
    """

    type_id: int
    version: int
    chain_id: int
    sender_public_key: bytes
    fee: int
    fee_asset_id: AssetId | None
    timestamp: int
    payload: P
    proofs: tuple[bytes, ...]
    body: bytes
    id: bytes


AnyTransaction = Transaction[Any]


class Auth(Enum):
    """Where a legacy binary form has its signature or proofs."""

    NONE = "none"
    SIGNATURE_FIRST = "type, signature, signed bytes"
    SIGNATURE_LAST = "signed bytes, signature"
    PROOFS = "signed bytes, list of proofs"


class BinaryForm:
    """A legacy binary layout of one version of one type.

    The signed bytes begin with ``head``. The stored form begins with ``lead``, and has
    ``stored_head`` instead of ``head`` in the one old type where they differ. ``fields`` are names
    of the envelope or the payload, in binary order; ``own`` has codecs that override those of the
    fields. ``bind(values, chain_id)`` completes decoded values that need the chain id, which the
    bytes do not contain.
    """

    __slots__ = ("auth", "bind", "codec", "fields", "head", "lead", "members", "own", "stored_head")

    codec: Codec

    def __init__(
        self,
        head: bytes,
        fields: str,
        auth: Auth,
        *,
        lead: bytes = b"",
        stored_head: bytes | None = None,
        own: Mapping[str, Fixed | Variable] = _NONE,
        bind: Callable[[Values, int], None] | None = None,
    ) -> None:
        self.head = head
        self.auth = auth
        self.lead = lead
        self.bind = bind
        self.own = own
        self.stored_head = head if stored_head is None else stored_head
        self.fields = fields.split()
        self.members = tuple(name for name in self.fields if name not in _ENVELOPE)

    def compile(self, fields: tuple[Field, ...]) -> None:
        """Compile the codec when the fields of the type are known."""
        codecs = {**_ENVELOPE, **dict(binary_fields(fields)), **self.own}
        self.codec = compile_fields([layouts.Field(name, codecs[name]) for name in self.fields])


class ProtobufForm:
    """The data message of a type: the member of the ``data`` oneof.

    ``read(message, chain_id)`` returns the payload; ``write(message, payload)`` fills the message.
    ``strict`` refuses unknown fields in it, as the reference node does for most types; ``closed``
    are nested messages for which it is done as well.
    """

    __slots__ = ("closed", "member", "read", "strict", "write")

    read: Callable[[Any, int], Any]
    write: Callable[[Any, Any], None]

    def __init__(self, member: str, *, strict: bool = True, closed: tuple[str, ...] = ()) -> None:
        self.member = member
        self.strict = strict
        self.closed = closed

    def compile(self, payload: type[Any], fields: tuple[Field, ...]) -> None:
        """Compile the functions when the fields of the type are known."""
        self.read = message_reader(payload, fields, self.closed)
        self.write = message_writer(payload, fields)


class ForeignForm(msgspec.Struct, frozen=True):
    """The form of a type in another network's encoding, which a ``SignedTransaction`` contains as
    bytes in ``member`` instead of a ``Transaction`` message.

    ``read(data, chain_id)`` returns the transaction, ``write`` the bytes.
    """

    member: str
    read: Callable[[bytes, int], AnyTransaction]
    write: Callable[[AnyTransaction], bytes]


class RideField(NamedTuple):
    """A field of the object that scripts see which is not a field of the payload.

    ``type`` is its type in the language, or a mapping from first versions to types; ``get`` returns
    the value from a payload, if it is derived from that. If it is not ``shown``, only the type has
    the field, and objects do not.
    """

    type: str | Mapping[int, str]
    get: Callable[[Any], Any] | None = None
    until: int = MAX_RIDE_VERSION
    shown: bool = True

    def type_in(self, version: int) -> str:
        """Return its type in a version of the language, empty if that does not have it."""
        types = {1: self.type} if isinstance(self.type, str) else self.type
        names = [name for since, name in types.items() if since <= version <= self.until]
        return names[-1] if names else ""


FEE_ASSET: Final = "feeAssetId"
"""The field of the envelope that only some objects have."""


class RideForm:
    """The object that scripts see of a type, in the language's versions from ``since`` on.

    ``fields`` are its fields in the order of the constructor: fields of the payload, of ``extra``,
    or ``FEE_ASSET``. The fields of all transactions follow, and then ``tail``. ``for_assets`` is
    whether asset scripts see such transactions. Verifiers never see ``obsolete`` ones; those that
    are not ``proven`` have no sender.
    """

    __slots__ = ("extra", "fields", "for_assets", "obsolete", "proven", "since", "tail")

    def __init__(
        self,
        fields: str,
        *,
        tail: str = "",
        extra: Mapping[str, RideField] = _NONE,
        since: int = 1,
        for_assets: bool = False,
        obsolete: bool = False,
        proven: bool = True,
    ) -> None:
        self.fields = fields.split()
        self.tail = tail.split()
        self.extra = {FEE_ASSET: RideField("ByteVector|Unit"), **extra}
        self.since = since
        self.for_assets = for_assets
        self.obsolete = obsolete
        self.proven = proven

    def compile(self, fields: tuple[Field, ...]) -> None:
        """Add the type's fields to ``extra``."""
        for field in fields:
            shown = RideField(field.kind.ride, attrgetter(field.attribute))
            for name in (camel_case(field.attribute), field.key):
                self.extra.setdefault(name, shown)


class RequestForm(msgspec.Struct, frozen=True):
    """The envelope of a signed transaction in the JSON of clients.

    ``required`` members must be present; ``default_version`` applies to a missing version, and
    ``fee_required`` is whether a missing fee is an error instead of a fee of 0.
    """

    required: frozenset[str] = frozenset()
    default_version: int = 1
    fee_required: bool = True


class Completing(msgspec.Struct, frozen=True):
    """What a wallet knows for a transaction that it is to sign: the minimum fee of its type, the
    first height of the next generation period, and the signer's private key, whose function raises
    if there is none.
    """

    least_fee: int
    period_start: int
    private_key: Callable[[], bytes]


def _no_members(_payload: object, _version: int) -> dict[str, Any]:
    """Placeholder until the fields of a type are compiled."""
    return {}


def no_dapp(_payload: object) -> None:
    """Default: the transaction calls no dApp."""
    return


def nothing(_payload: object) -> tuple[()]:
    """Default: the transaction spends nothing, or names no accounts."""
    return ()


PROVEN_REQUEST: Final = RequestForm(frozenset({"senderPublicKey", "timestamp", "proofs"}))
"""Types that always had proofs require all of these members."""


class TransactionType(msgspec.Struct, frozen=True):
    """The description of a transaction type.

    ``fields`` declare the payload, in JSON order. ``binary`` maps versions to legacy layouts,
    ``protobuf_since`` is the first protobuf version, ``ride`` the object that scripts see, if any.
    ``make_id(version, body, proofs)`` overrides the id rule (``blake2b256`` of the body).
    ``validate`` checks the rules that need no state and raises ``ValueRuleError``. ``sender``
    returns the sender's public key from the payload, for a type whose formats do not contain it; a
    ``senderless`` type has no sender, fee or proofs.

    ``fee_in_asset`` is whether a fee may be paid in an asset, ``repeats_fee_asset`` whether JSON
    contains that asset twice, as old clients expect. ``chain_id_versions`` are the legacy versions
    whose JSON contains the chain id. ``derived_json`` returns computed members, whose schemas are
    ``derived_schemas``. ``spends`` returns what the sender spends besides the fee, as far as the
    payload shows it, as amounts by asset; ``creates`` the amounts that it creates, and ``sets`` the
    amounts that it makes a rule of (a sponsor's rate), in the same form: ``None`` stands for an
    asset that begins with the transaction. ``calls`` returns the called dApp, if any.

    ``complete(obj, wallet)`` adds members to the JSON of a transaction that a wallet signs, if
    clients may leave out some that only the wallet knows.

    ``write_json(payload, version)`` and ``accounts``, which returns the accounts that a payload
    names, are compiled from the fields.
    """

    type_id: int
    name: str
    title: str
    payload: type[Any]
    max_version: int
    binary: Mapping[int, BinaryForm]
    protobuf: ProtobufForm | ForeignForm
    fields: tuple[Field, ...]
    validate: Callable[[AnyTransaction], None]
    protobuf_since: int | None = None
    ride: RideForm | None = None
    make_id: Callable[[int, bytes, tuple[bytes, ...]], bytes] | None = None
    sender: Callable[[Any], bytes] | None = None
    versioned: bool = True
    senderless: bool = False
    signature_versions: frozenset[int] = frozenset()
    fee_in_asset: bool = False
    repeats_fee_asset: bool = False
    chain_id_versions: frozenset[int] = frozenset()
    derived_json: Callable[[AnyTransaction], dict[str, Any]] | None = None
    derived_schemas: Mapping[str, Schema] = {}
    request: RequestForm = RequestForm()
    spends: Callable[[Any], Iterable[tuple[AssetId | None, int]]] = nothing
    creates: Callable[[Any], Iterable[tuple[AssetId | None, int]]] = nothing
    sets: Callable[[Any], Iterable[tuple[AssetId | None, int]]] = nothing
    write_json: Callable[[Any, int], dict[str, Any]] = _no_members
    accounts: Callable[[Any], Iterable[Recipient]] = nothing
    calls: Callable[[Any], Recipient | None] = no_dapp
    complete: Callable[[Mapping[str, object], Completing], dict[str, object]] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "write_json", json_writer(self.payload, self.fields))
        force_setattr(self, "accounts", accounts_of(self.fields) or self.accounts)
        for form in self.binary.values():
            form.compile(self.fields)
        if isinstance(self.protobuf, ProtobufForm):
            self.protobuf.compile(self.payload, self.fields)
        if self.ride is not None:
            self.ride.compile(self.fields)
