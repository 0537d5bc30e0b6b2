"""Edits: changes of the state by hand, on a private chain.

Edits belong to a block. They are applied before its transactions and after its credits, so they are
undone with the block and included in its state hash. No other node would compute the same state.

What lives here: the records, as they are sent, stored and dumped. What does not: applying them
(``editing``).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from soliton.errors import InputError


class EditRejected(InputError):
    """An edit that cannot be applied."""


class _Record(
    msgspec.Struct, frozen=True, tag_field="kind", rename="camel", forbid_unknown_fields=True
):
    """One edit; addresses, ids and keys are in base58."""


class BalanceEdit(_Record, frozen=True, tag="balance"):
    """Sets an account's balance in wavelets; the chain's total changes accordingly."""

    address: str
    amount: int


class AssetBalanceEdit(_Record, frozen=True, tag="assetBalance"):
    """Sets an account's balance of an asset; the asset's quantity changes accordingly."""

    address: str
    asset_id: str
    amount: int


class DataEdit(_Record, frozen=True, tag="data"):
    """Sets a data entry of an account, or deletes it (no ``type``). A binary value is in base64."""

    address: str
    key: str
    type: Literal["integer", "boolean", "binary", "string"] | None = None
    value: int | bool | str | None = None


class ScriptEdit(_Record, frozen=True, tag="script"):
    """Sets or removes an account's script (base64); ``public_key`` if it is not known yet."""

    address: str
    script: str | None
    public_key: str | None = None


class AliasEdit(_Record, frozen=True, tag="alias"):
    """Assigns an alias to an account, even if it belongs to another one."""

    alias: str
    address: str


class LeaseEdit(_Record, frozen=True, tag="lease"):
    """Creates a lease of the account with this public key."""

    sender_public_key: str
    recipient: str
    amount: int


class LeaseCancelEdit(_Record, frozen=True, tag="cancelLease"):
    """Cancels a lease."""

    lease_id: str


Edit = (
    BalanceEdit | AssetBalanceEdit | DataEdit | ScriptEdit | AliasEdit | LeaseEdit | LeaseCancelEdit
)


class ByHand(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The properties of a block that no other node would accept.

    ``edits`` are its edits; transactions of the ``impersonated`` addresses need no valid proof.
    Without ``proven`` the block has no valid generation signature, and ``hit_source`` replaces the
    value derived from it. ``late`` means that it contains transactions that are too old.
    """

    edits: tuple[Edit, ...] = ()
    impersonated: tuple[bytes, ...] = ()
    proven: bool = True
    hit_source: bytes = b""
    late: bool = False
