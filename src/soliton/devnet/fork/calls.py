"""The results of dApp calls, as the original node of a fork reports them.

What lives here: converting them to records. What does not: the requests (``history``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from soliton.devnet.fork.remote import Remote

Members = dict[str, object]
"""A record in the form of ``soliton.node.call_records``."""

_I64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Id = Annotated[str, msgspec.Meta(pattern="^[1-9A-HJ-NP-Za-km-z]{32,44}$")]


class _Argument(msgspec.Struct, frozen=True):
    type: str
    value: bool | _I64 | str | list[_Argument]


class _Call(msgspec.Struct, frozen=True):
    function: str
    args: list[_Argument]


class _Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    value: bool | _I64 | str | None
    type: str | None = None


class _Payment(msgspec.Struct, frozen=True, rename="camel"):
    amount: _I64
    asset_id: _Id | None = None


class _Transfer(msgspec.Struct, frozen=True):
    address: _Id
    amount: _I64
    asset: _Id | None = None


class _Issue(msgspec.Struct, frozen=True, rename="camel"):
    asset_id: _Id
    name: str
    description: str
    quantity: _I64
    decimals: _I64
    is_reissuable: bool
    nonce: _I64
    compiled_script: str | None = None


class _Reissue(msgspec.Struct, frozen=True, rename="camel"):
    asset_id: _Id
    quantity: _I64
    is_reissuable: bool


class _Burn(msgspec.Struct, frozen=True, rename="camel"):
    asset_id: _Id
    quantity: _I64


class _SponsorFee(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    asset_id: _Id
    min_sponsored_asset_fee: _I64 | None = None


class _Lease(msgspec.Struct, frozen=True):
    # The rest depends on the state.
    id: _Id


class _Error(msgspec.Struct, frozen=True):
    code: _I64
    text: str


class _Changes(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    data: list[_Entry]
    transfers: list[_Transfer]
    issues: list[_Issue]
    reissues: list[_Reissue]
    burns: list[_Burn]
    sponsor_fees: list[_SponsorFee]
    leases: list[_Lease]
    lease_cancels: list[_Lease]
    invokes: list[_Invoke]
    error: _Error | None = None


class _Invoke(msgspec.Struct, frozen=True, rename="camel"):
    d_app: _Id
    call: _Call
    payment: list[_Payment]
    state_changes: _Changes


class _CallInfo(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    state_changes: _Changes | None = None
    call: _Call | None = None
    payment: list[_Payment] | None = None


def call_record(remote: Remote, path: str, info: Mapping[str, Any]) -> Members | None:
    """Return the record of a call from a response; ``None`` if no dApp was called, or the response
    does not include the result. Raises ``RemoteTrouble``.
    """
    try:
        found = msgspec.convert(info, _CallInfo)
        if found.state_changes is None:
            return None
        record: Members = msgspec.to_builtins(found)
    except (msgspec.ValidationError, RecursionError) as error:
        raise remote.trouble(path, f"what a dApp did cannot be: {error}") from error
    return record
