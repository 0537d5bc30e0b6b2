"""What a transaction is, whatever its type: an envelope around a payload, and the row that
describes a type.

What lives here: the records. What does not: how they become bytes and JSON (``codec``), which types
there are (one module each beside this one, listed in ``table``), and what they do to the state
(``soliton.ledger.rules``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/{Versioned,PBSince,FastHashId}.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Generic, TypeVar

import msgspec

from soliton.chain.json_kinds import JsonKind
from soliton.chain.json_schemas import Schema
from soliton.chain.layouts import Codec, Field, Values, compile_fields
from soliton.chain.values import AssetId

P = TypeVar("P")

MAX_PROOFS: Final = 8
MAX_PROOF_BYTES: Final = 64

_ENVELOPE: Final = frozenset({"chain_id", "sender_public_key", "fee", "fee_asset_id", "timestamp"})


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
    name envelope or payload members. ``bind(values, chain_id)`` completes values that were read
    and cannot be whole without the chain id, which the bytes do not hold.
    """

    __slots__ = ("auth", "bind", "codec", "head", "lead", "members", "stored_head")

    def __init__(
        self,
        head: bytes,
        fields: tuple[Field, ...],
        auth: Auth,
        *,
        lead: bytes = b"",
        stored_head: bytes | None = None,
        bind: Callable[[Values, int], None] | None = None,
    ) -> None:
        self.head = head
        self.auth = auth
        self.lead = lead
        self.bind = bind
        self.stored_head = head if stored_head is None else stored_head
        self.codec: Codec = compile_fields(fields)
        self.members = tuple(field.name for field in fields if field.name not in _ENVELOPE)


class ProtobufForm(msgspec.Struct, frozen=True):
    """The data message of a type: the member of the ``data`` oneof, and how it maps to payload
    members.

    ``read(message, chain_id)`` gives payload members by name; ``write(message, payload)`` fills the
    message. ``strict`` refuses unknown fields in it, as the reference node does for most types.
    """

    member: str
    read: Callable[[Any, int], dict[str, Any]]
    write: Callable[[Any, Any], None]
    strict: bool = True


class WholeForm(msgspec.Struct, frozen=True):
    """The form of a type that comes as bytes in another network's encoding, in place of a
    ``Transaction`` message: the member of the ``SignedTransaction`` that holds them.

    ``read(data, chain_id)`` gives the transaction, ``write`` the bytes.
    """

    member: str
    read: Callable[[bytes, int], AnyTransaction]
    write: Callable[[AnyTransaction], bytes]


class JsonField(msgspec.Struct, frozen=True):
    """A JSON member of a payload. ``default`` makes it optional; ``aliases`` are older names that
    are read as well. It is printed for versions from ``since`` on.
    """

    key: str
    attribute: str
    kind: JsonKind
    default: Any = msgspec.UNSET
    aliases: tuple[str, ...] = ()
    since: int = 1

    @property
    def is_optional(self) -> bool:
        """Whether those who send a transaction may leave the member out."""
        return self.default is not msgspec.UNSET


class RequestForm(msgspec.Struct, frozen=True):
    """How clients name the envelope of a signed transaction in JSON.

    ``required`` members must be there, others may be left out; ``default_version`` is what no
    version means, ``fee_required`` whether no fee is a wrong member rather than a fee of 0.
    """

    required: frozenset[str] = frozenset()
    default_version: int = 1
    fee_required: bool = True


PROVEN_REQUEST: Final = RequestForm(frozenset({"senderPublicKey", "timestamp", "proofs"}))
"""The types that came with proofs name all of it."""


class TransactionType(msgspec.Struct, frozen=True):
    """Everything that the chain ring knows of a type: one row of the table.

    ``binary`` maps versions to legacy layouts, ``protobuf_since`` is the first version that is
    protobuf. ``make_id(version, body, proofs)`` overrides the id rule (``blake2b256`` of the body).
    ``validate`` checks the rules that need no state and raises ``ValueRuleError``. ``sender`` finds
    the sender's public key in the payload, for a type whose form has no place of its own for it.
    ``fee_in_asset`` tells whether a fee may be paid in another asset than the coin,
    ``repeats_fee_asset`` whether JSON names that asset twice, as clients of old versions expect.
    ``chain_id_versions`` are the legacy versions whose JSON shows the chain id, ``derived_json``
    makes the members that follow from others, of which ``derived_schemas`` tells.
    """

    type_id: int
    name: str
    title: str
    payload: type[Any]
    max_version: int
    binary: Mapping[int, BinaryForm]
    protobuf: ProtobufForm | WholeForm
    json: tuple[JsonField, ...]
    validate: Callable[[AnyTransaction], None]
    protobuf_since: int | None = None
    make_id: Callable[[int, bytes, tuple[bytes, ...]], bytes] | None = None
    sender: Callable[[Any], bytes] | None = None
    versioned: bool = True
    signature_versions: frozenset[int] = frozenset()
    fee_in_asset: bool = False
    repeats_fee_asset: bool = False
    chain_id_versions: frozenset[int] = frozenset()
    derived_json: Callable[[AnyTransaction], dict[str, Any]] | None = None
    derived_schemas: Mapping[str, Schema] = {}
    request: RequestForm = RequestForm()
