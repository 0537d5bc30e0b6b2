"""Changes of the state that somebody makes by hand on a private chain: what they are.

Edits come with a block, at its beginning and behind its credits, so that they are undone with it
and are in its state hash. No other node would come to the same state: a chain that has any is its
own.

What lives here: the records, in the form in which they are sent, stored and dumped. What does not:
what they do to the state (``editing``).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from soliton.errors import InputError


class EditRejected(InputError):
    """A change by hand that cannot be made; the message says why."""


class _Record(
    msgspec.Struct, frozen=True, tag_field="kind", rename="camel", forbid_unknown_fields=True
):
    """One change; addresses, ids and keys are in base58."""


class BalanceEdit(_Record, frozen=True, tag="balance"):
    """An account has so many wavelets: the total of the chain changes with it."""

    address: str
    amount: int


class AssetBalanceEdit(_Record, frozen=True, tag="assetBalance"):
    """An account has so much of an asset: its quantity changes with it."""

    address: str
    asset_id: str
    amount: int


class DataEdit(_Record, frozen=True, tag="data"):
    """An entry of an account's data; no ``type`` deletes it. A binary value is in base64."""

    address: str
    key: str
    type: Literal["integer", "boolean", "binary", "string"] | None = None
    value: int | bool | str | None = None


class ScriptEdit(_Record, frozen=True, tag="script"):
    """An account has this script (base64), or none; ``public_key`` for one that nobody knows."""

    address: str
    script: str | None
    public_key: str | None = None


class AliasEdit(_Record, frozen=True, tag="alias"):
    """A name leads to an account, whosever it was."""

    alias: str
    address: str


class LeaseEdit(_Record, frozen=True, tag="lease"):
    """An account, by its public key, leases to another."""

    sender_public_key: str
    recipient: str
    amount: int


class LeaseCancelEdit(_Record, frozen=True, tag="cancelLease"):
    """A lease ends."""

    lease_id: str


Edit = (
    BalanceEdit | AssetBalanceEdit | DataEdit | ScriptEdit | AliasEdit | LeaseEdit | LeaseCancelEdit
)


class ByHand(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What about a block no other node would accept.

    ``edits`` came with it; transactions of the ``impersonated`` (addresses) have no valid proof.
    Without ``proven`` its generator has not proven its turn, and ``hit_source`` stands for what the
    proof would have given. With ``late`` there are transactions in it that are too old for it.
    """

    edits: tuple[Edit, ...] = ()
    impersonated: tuple[bytes, ...] = ()
    proven: bool = True
    hit_source: bytes = b""
    late: bool = False
