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
from soliton.chain.layouts import Codec, Field, compile_fields
from soliton.chain.values import AssetId

P = TypeVar("P")

MAX_PROOFS: Final = 8
MAX_PROOF_BYTES: Final = 64


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
    name envelope or payload members.
    """

    __slots__ = ("auth", "codec", "head", "lead", "stored_head")

    def __init__(
        self,
        head: bytes,
        fields: tuple[Field, ...],
        auth: Auth,
        *,
        lead: bytes = b"",
        stored_head: bytes | None = None,
    ) -> None:
        self.head = head
        self.auth = auth
        self.lead = lead
        self.stored_head = head if stored_head is None else stored_head
        self.codec: Codec = compile_fields(fields)


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


class JsonField(msgspec.Struct, frozen=True):
    """A JSON member of a payload. ``default`` makes it optional; ``aliases`` are older names that
    are read as well.
    """

    key: str
    attribute: str
    kind: JsonKind
    default: Any = msgspec.UNSET
    aliases: tuple[str, ...] = ()


class TransactionType(msgspec.Struct, frozen=True):
    """Everything that the chain ring knows of a type: one row of the table.

    ``binary`` maps versions to legacy layouts, ``protobuf_since`` is the first version that is
    protobuf. ``make_id`` overrides the id rule (``blake2b256`` of the body). ``validate`` checks
    the rules that need no state and raises ``ValueRuleError``. ``fee_in_asset`` tells whether a fee
    may be paid in another asset than the coin, ``repeats_fee_asset`` whether JSON names that asset
    twice, as clients of old versions expect.
    """

    type_id: int
    name: str
    title: str
    payload: type[Any]
    max_version: int
    binary: Mapping[int, BinaryForm]
    protobuf: ProtobufForm
    json: tuple[JsonField, ...]
    validate: Callable[[AnyTransaction], None]
    protobuf_since: int | None = None
    make_id: Callable[[bytes, tuple[bytes, ...]], bytes] | None = None
    versioned: bool = True
    signature_versions: frozenset[int] = frozenset()
    fee_in_asset: bool = False
    repeats_fee_asset: bool = False
