"""What a transaction is, whatever its type: an envelope around a payload, and the row that
describes a type.

What lives here: the records. What does not: how they become bytes and JSON (``codec``), which types
there are (one module each beside this one, listed in ``table``), and what they do to the state
(``soliton.ledger.rules``).

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
"""Above all versions of the script language."""

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
    smallest unit of ``fee_asset_id``. ``timestamp`` is in milliseconds. ``body`` are the bytes that
    are signed, ``id`` its name on the chain. Build one with ``codec.build``, which fills both.
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
    """How a legacy binary form carries its signature or proofs."""

    NONE = "none"
    SIGNATURE_FIRST = "type, signature, signed bytes"
    SIGNATURE_LAST = "signed bytes, signature"
    PROOFS = "signed bytes, list of proofs"


class BinaryForm:
    """A legacy binary layout of one version of one type.

    ``head`` opens the signed bytes, ``lead`` comes before them in the stored form only,
    ``stored_head`` replaces ``head`` there in the one old type where the two differ. ``fields``
    names what stands in it, of the envelope or of the payload; ``own`` has the codecs of what is
    written in another way here than everywhere else. ``bind(values, chain_id)`` completes values
    that were read and cannot be whole without the chain id, which the bytes do not hold.
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
        """Make its codec, once the fields of the type are known."""
        codecs = {**_ENVELOPE, **dict(binary_fields(fields)), **self.own}
        self.codec = compile_fields([layouts.Field(name, codecs[name]) for name in self.fields])


class ProtobufForm:
    """The data message of a type: the member of the ``data`` oneof.

    ``read(message, chain_id)`` gives the payload; ``write(message, payload)`` fills the message.
    ``strict`` refuses unknown fields in it, as the reference node does for most types, and in the
    messages within it that ``closed`` names.
    """

    __slots__ = ("closed", "member", "read", "strict", "write")

    read: Callable[[Any, int], Any]
    write: Callable[[Any, Any], None]

    def __init__(self, member: str, *, strict: bool = True, closed: tuple[str, ...] = ()) -> None:
        self.member = member
        self.strict = strict
        self.closed = closed

    def compile(self, payload: type[Any], fields: tuple[Field, ...]) -> None:
        """Make its functions, once the fields of the type are known."""
        self.read = message_reader(payload, fields, self.closed)
        self.write = message_writer(payload, fields)


class WholeForm(msgspec.Struct, frozen=True):
    """The form of a type that comes as bytes in another network's encoding, in place of a
    ``Transaction`` message: the member of the ``SignedTransaction`` that holds them.

    ``read(data, chain_id)`` gives the transaction, ``write`` the bytes.
    """

    member: str
    read: Callable[[bytes, int], AnyTransaction]
    write: Callable[[AnyTransaction], bytes]


class RideField(NamedTuple):
    """A field of the object that scripts see which is no field of the payload.

    ``type`` is that in the language, by the version since which it is that; ``get`` finds the value
    in a payload, if that has it. One that is not ``shown`` is there in the language alone.
    """

    type: str | Mapping[int, str]
    get: Callable[[Any], Any] | None = None
    until: int = MAX_RIDE_VERSION
    shown: bool = True

    def type_in(self, version: int) -> str:
        """Its type in a version of the language, none where it is not there."""
        types = {1: self.type} if isinstance(self.type, str) else self.type
        found = [name for since, name in types.items() if since <= version <= self.until]
        return found[-1] if found else ""


FEE_ASSET: Final = "feeAssetId"
"""The one field of the envelope that only some objects show."""


class RideForm:
    """The object that scripts see of a type, in the language's versions from ``since`` on.

    ``fields`` names them in the order of the object's constructor: fields of the payload, of
    ``extra``, or ``FEE_ASSET``. What all transactions have follows them, and then ``tail``.
    ``for_assets`` tells whether scripts of assets see such transactions. One that is ``obsolete``
    is none that a verifier is asked about, one that is not ``proven`` has no sender.
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
        """Look up what is declared with the type's fields."""
        for field in fields:
            shown = RideField(field.kind.ride, attrgetter(field.attribute))
            for name in (camel_case(field.attribute), field.key):
                self.extra.setdefault(name, shown)


class RequestForm(msgspec.Struct, frozen=True):
    """How clients name the envelope of a signed transaction in JSON.

    ``required`` members must be there, others may be left out; ``default_version`` is what no
    version means, ``fee_required`` whether no fee is a wrong member rather than a fee of 0.
    """

    required: frozenset[str] = frozenset()
    default_version: int = 1
    fee_required: bool = True


def _no_members(_payload: object, _version: int) -> dict[str, Any]:
    """For a type whose fields are not compiled yet."""
    return {}


def nobody(_payload: object) -> None:
    """For a type that calls no dApp."""
    return


def nothing(_payload: object) -> tuple[()]:
    """For a type by which nothing leaves its sender."""
    return ()


PROVEN_REQUEST: Final = RequestForm(frozenset({"senderPublicKey", "timestamp", "proofs"}))
"""The types that came with proofs name all of it."""


class TransactionType(msgspec.Struct, frozen=True):
    """Everything that the chain ring knows of a type: one row of the table.

    ``fields`` declare the payload, in the order of JSON. ``binary`` maps versions to legacy
    layouts, ``protobuf_since`` is the first version that is protobuf, ``ride`` is what scripts see,
    if they know the type. ``make_id(version, body, proofs)`` overrides the id rule (``blake2b256``
    of the body).
    ``validate`` checks the rules that need no state and raises ``ValueRuleError``. ``sender`` finds
    the sender's public key in the payload, for a type whose form has no place of its own for it;
    one that is ``from_nobody`` has no sender, fee or proofs.
    ``fee_in_asset`` tells whether a fee may be paid in another asset than the coin,
    ``repeats_fee_asset`` whether JSON names that asset twice, as clients of old versions expect.
    ``chain_id_versions`` are the legacy versions whose JSON shows the chain id, ``derived_json``
    makes the members that follow from others, of which ``derived_schemas`` tells. ``spends`` gives
    what leaves the sender beside the fee, as far as the payload tells: amounts by asset; ``calls``
    the dApp that is called, if one is.

    Made from the fields: ``write_json(payload, version)``, and ``accounts``, those that a payload
    names.
    """

    type_id: int
    name: str
    title: str
    payload: type[Any]
    max_version: int
    binary: Mapping[int, BinaryForm]
    protobuf: ProtobufForm | WholeForm
    fields: tuple[Field, ...]
    validate: Callable[[AnyTransaction], None]
    protobuf_since: int | None = None
    ride: RideForm | None = None
    make_id: Callable[[int, bytes, tuple[bytes, ...]], bytes] | None = None
    sender: Callable[[Any], bytes] | None = None
    versioned: bool = True
    from_nobody: bool = False
    signature_versions: frozenset[int] = frozenset()
    fee_in_asset: bool = False
    repeats_fee_asset: bool = False
    chain_id_versions: frozenset[int] = frozenset()
    derived_json: Callable[[AnyTransaction], dict[str, Any]] | None = None
    derived_schemas: Mapping[str, Schema] = {}
    request: RequestForm = RequestForm()
    spends: Callable[[Any], Iterable[tuple[AssetId | None, int]]] = nothing
    write_json: Callable[[Any, int], dict[str, Any]] = _no_members
    accounts: Callable[[Any], Iterable[Recipient]] = nothing
    calls: Callable[[Any], Recipient | None] = nobody

    def __post_init__(self) -> None:
        force_setattr(self, "write_json", json_writer(self.payload, self.fields))
        force_setattr(self, "accounts", accounts_of(self.fields) or self.accounts)
        for form in self.binary.values():
            form.compile(self.fields)
        if isinstance(self.protobuf, ProtobufForm):
            self.protobuf.compile(self.payload, self.fields)
        if self.ride is not None:
            self.ride.compile(self.fields)
