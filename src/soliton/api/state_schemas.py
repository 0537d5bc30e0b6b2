"""JSON schemas of script results and state entries for the OpenAPI document.

What lives here: state changes of a call, leases, assets, snapshots, traces. What does not:
transactions and blocks, and putting the schemas into the document (``schemas``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/
InvokeScriptResult.scala`` and ``api/http/StateSnapshotJson.scala``.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from soliton.chain.function_calls import CALL_SCHEMA
from soliton.chain.json_kinds import ASSET_SCHEMA, BASE58_SCHEMA, DATA_ENTRY_SCHEMA, SCRIPT_SCHEMA
from soliton.chain.json_schemas import (
    TEXT_SCHEMA,
    Named,
    Schema,
    described,
    list_of,
    or_null,
    shape,
)
from soliton.chain.transactions.invoke_script import PAYMENTS

APPLICATION_STATUSES: Final = ("succeeded", "script_execution_failed", "elided")
_STATE_CHANGES: Final = "StateChanges"
_TRACE: Final = "Trace"
_shape: Final = partial(
    shape, base58=BASE58_SCHEMA, asset=ASSET_SCHEMA, script=SCRIPT_SCHEMA, entry=DATA_ENTRY_SCHEMA
)

_VALUE_TYPE: Final = described(
    TEXT_SCHEMA, "`Int`, `String`, `ByteVector`, `Array`, a record's name"
)
RIDE_VALUE: Final = Named("RideValue", shape("type, value: any", type=_VALUE_TYPE))

LEASE: Final = Named(
    "Lease",
    _shape(
        "id: base58, status, originTransactionId?: base58|null, sender?: string|null, "
        "recipient?: string|null, amount?: long|null, height?: integer|null, "
        "cancelHeight?: integer|null, cancelTransactionId?: base58|null",
        status=described(
            {"type": "string", "enum": ["active", "canceled", "expired"]},
            "`expired` only under `/leasing`: a rule of the network has ended the lease",
        ),
    ),
)
_CALL_MADE: Final = _shape(
    "dApp: string, call, payment, stateChanges",
    call=shape("function: string, args: value[]", value=RIDE_VALUE),
    payment=PAYMENTS.json.schema,
    # Calls nest.
    stateChanges={"$ref": f"#/components/schemas/{_STATE_CHANGES}"},
)


def _changes(lease: Schema | Named, lease_cancel: Schema | Named) -> Schema:
    return _shape(
        "data: entry[], transfers: transfer[], issues: issue[], reissues: reissue[], "
        "burns: burn[], sponsorFees: sponsorship[], leases: lease[], leaseCancels: cancel[], "
        "invokes: call[], error?",
        transfer=_shape("address: string, asset: asset, amount: long"),
        issue=_shape(
            "assetId: base58, name: string, description: string, quantity: long, "
            "decimals: integer, isReissuable: boolean, nonce: long, compiledScript?",
            compiledScript=described({"type": "null"}, "Not in lists"),
        ),
        reissue=_shape("assetId: base58, isReissuable: boolean, quantity: long"),
        burn=_shape("assetId: base58, quantity: long"),
        sponsorship=_shape("assetId: base58, minSponsoredAssetFee?: long|null"),
        lease=lease,
        cancel=lease_cancel,
        call=_CALL_MADE,
        error=described(shape("code: integer, text: string"), "Why it failed"),
    )


STATE_CHANGES: Final = Named(_STATE_CHANGES, _changes(LEASE, LEASE))
"""The state changes of a confirmed call, with the leases in full."""

SHORT_STATE_CHANGES: Final = Named(
    "ShortStateChanges",
    _changes(
        _shape("id: base58, recipient: string, amount: long, nonce: long"), _shape("id: base58")
    ),
)
"""The state changes of a dry run, with the leases as the script gives them."""

TRANSFER_PAYLOAD: Final = _shape(
    "type, recipient: string, asset: asset, amount: long", type={"const": "transfer"}
)
CALL_PAYLOAD: Final = shape(
    "type, dApp: string, call, payment, stateChanges",
    type={"const": "invocation"},
    call=or_null(CALL_SCHEMA),
    payment=PAYMENTS.json.schema,
    stateChanges=or_null(STATE_CHANGES),
)
_NO_PAYLOAD: Final = {
    "type": "object",
    "description": "The transaction was elided",
    "properties": {},
    "additionalProperties": False,
}
PAYLOADS: Final = (TRANSFER_PAYLOAD, CALL_PAYLOAD, _NO_PAYLOAD)
"""What Ethereum's transactions do."""

TRACE: Final = Named(
    _TRACE,
    shape(
        "type, id, context?, function?: string, args?: string[], invocations?: trace[], result?, "
        "vars?: step[], error?: string|null",
        type={"type": "string", "enum": ["verifier", "asset", "dApp"]},
        id=described(TEXT_SCHEMA, "Of the account or asset whose script it is"),
        context=described(TEXT_SCHEMA, "The operation that the asset's script checks"),
        trace={"$ref": f"#/components/schemas/{_TRACE}"},
        result={"anyOf": [{"enum": ["success", "failure"]}, STATE_CHANGES, SHORT_STATE_CHANGES]},
        step=shape("name: string, type?: string, value?: any, error?: any"),
    ),
)

ASSET: Final = Named(
    "Asset",
    _shape(
        "assetId: base58, issueHeight: integer, issueTimestamp: long, issuer: string, "
        "name: string, description: string, decimals: integer, reissuable: boolean, "
        "quantity: long, scripted: boolean, issuerPublicKey?: base58, "
        "minSponsoredAssetFee?: long|null, originTransactionId?: base58, "
        "sequenceInBlock?: integer, scriptDetails?",
        scriptDetails=_shape("scriptComplexity: long, script: script, scriptText: string"),
    ),
)

_ROWS: Final[dict[str, str]] = {
    "balances": "address: string, asset: asset, balance: long",
    "leaseBalances": "address: string, in: long, out: long",
    "assetStatics": "id: base58, source: base58, issuer: base58, decimals: integer, nft: boolean",
    "assetVolumes": "id: base58, isReissuable: boolean, volume: long",
    "assetNamesAndDescriptions": (
        "id: base58, name: string, description: string, lastUpdatedAt: integer"
    ),
    "assetScripts": "id: base58, script: script, complexity: long",
    "sponsorships": "id: base58, minSponsoredAssetFee: long",
    "newLeases": (
        "id: base58, sender: base58, recipient: string, amount: long, txId: base58, height: integer"
    ),
    "cancelledLeases": "id: base58, txId: base58, height: integer",
    "aliases": "address: string, alias: string",
    "orderFills": "id: base58, volume: long, fee: long",
    "accountScripts": "publicKey: base58, script: script, verifierComplexity: long",
    "accountData": "address: string, data: entry[]",
    "nextCommittedGenerators": "publicKey: base58, blsPublicKey: base58",
}

SNAPSHOT: Final = Named(
    "TransactionSnapshot",
    shape(
        # Nodes before deterministic finality do not send the last one.
        ", ".join(("applicationStatus", *_ROWS)) + "?",
        applicationStatus={"type": "string", "enum": list(APPLICATION_STATUSES)},
        **{name: list_of(_shape(row)) for name, row in _ROWS.items()},
    ),
)
"""The state changes of a transaction."""

NAMED: Final = (ASSET, LEASE, SNAPSHOT, STATE_CHANGES, SHORT_STATE_CHANGES, TRACE, RIDE_VALUE)
"""The schemas that routes refer to."""


def asset_balance(issue: Schema) -> Schema:
    """An account's balance of an asset; ``issue`` is the schema of its issue transaction."""
    return _shape(
        "assetId: base58, reissuable?: boolean, minSponsoredAssetFee?: long|null, "
        "sponsorBalance?: long|null, quantity?: long, issueTransaction?, balance?: long, "
        "sequenceInBlock?: integer",
        issueTransaction={"anyOf": [issue, {"type": "null"}]},
    )
