"""The shapes of what scripts did and of what the state knows, for the OpenAPI document.

What lives here: the changes of a call, leases, assets, snapshots, traces. What does not: shapes of
transactions and blocks, and how all shapes get into the document (``schemas``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/
InvokeScriptResult.scala`` and ``api/http/StateSnapshotJson.scala``.
"""

from __future__ import annotations

from typing import Any, Final

from soliton.api.json_transactions import APPLICATION_STATUSES
from soliton.chain.function_calls import CALL_SCHEMA
from soliton.chain.json_kinds import (
    ASSET_SCHEMA,
    BASE58_SCHEMA,
    DATA_ENTRY_SCHEMA,
    SCRIPT_SCHEMA,
)
from soliton.chain.json_schemas import (
    BOOLEAN_SCHEMA,
    INTEGER_SCHEMA,
    LONG_SCHEMA,
    TEXT_SCHEMA,
    Named,
    Schema,
    list_of,
    object_of,
    or_null,
    told,
)
from soliton.chain.transactions.invoke_script import PAYMENT_SCHEMA

_STATE_CHANGES_NAME: Final = "StateChanges"
_TRACE_NAME: Final = "Trace"

RIDE_VALUE: Final = Named(
    "RideValue",
    object_of(
        {
            "type": told(TEXT_SCHEMA, "`Int`, `String`, `ByteVector`, `Array`, a record's name"),
            "value": {},
        }
    ),
)

LEASE: Final = Named(
    "Lease",
    object_of(
        {"id": BASE58_SCHEMA, "status": {"type": "string", "enum": ["active", "canceled"]}},
        {
            "originTransactionId": or_null(BASE58_SCHEMA),
            "sender": or_null(TEXT_SCHEMA),
            "recipient": or_null(TEXT_SCHEMA),
            "amount": or_null(LONG_SCHEMA),
            "height": or_null(INTEGER_SCHEMA),
            "cancelHeight": or_null(INTEGER_SCHEMA),
            "cancelTransactionId": or_null(BASE58_SCHEMA),
        },
    ),
)
_MADE_LEASE: Final = object_of(
    {"id": BASE58_SCHEMA, "recipient": TEXT_SCHEMA, "amount": LONG_SCHEMA, "nonce": LONG_SCHEMA}
)

_TRANSFER: Final = object_of({"address": TEXT_SCHEMA, "asset": ASSET_SCHEMA, "amount": LONG_SCHEMA})
_ISSUE: Final = object_of(
    {
        "assetId": BASE58_SCHEMA,
        "name": TEXT_SCHEMA,
        "description": TEXT_SCHEMA,
        "quantity": LONG_SCHEMA,
        "decimals": INTEGER_SCHEMA,
        "isReissuable": BOOLEAN_SCHEMA,
        "nonce": LONG_SCHEMA,
    },
    {"compiledScript": told({"type": "null"}, "Not in lists")},
)
_CALL_MADE: Final = object_of(
    {
        "dApp": TEXT_SCHEMA,
        "call": object_of({"function": TEXT_SCHEMA, "args": list_of(RIDE_VALUE)}),
        "payment": list_of(PAYMENT_SCHEMA),
        # A call within a call, and so on.
        "stateChanges": {"$ref": f"#/components/schemas/{_STATE_CHANGES_NAME}"},
    }
)


def _changes(lease: Schema | Named, lease_cancel: Schema | Named) -> Schema:
    return object_of(
        {
            "data": list_of(DATA_ENTRY_SCHEMA),
            "transfers": list_of(_TRANSFER),
            "issues": list_of(_ISSUE),
            "reissues": list_of(
                object_of(
                    {
                        "assetId": BASE58_SCHEMA,
                        "isReissuable": BOOLEAN_SCHEMA,
                        "quantity": LONG_SCHEMA,
                    }
                )
            ),
            "burns": list_of(object_of({"assetId": BASE58_SCHEMA, "quantity": LONG_SCHEMA})),
            "sponsorFees": list_of(
                object_of(
                    {"assetId": BASE58_SCHEMA}, {"minSponsoredAssetFee": or_null(LONG_SCHEMA)}
                )
            ),
            "leases": list_of(lease),
            "leaseCancels": list_of(lease_cancel),
            "invokes": list_of(_CALL_MADE),
        },
        {"error": told(object_of({"code": INTEGER_SCHEMA, "text": TEXT_SCHEMA}), "Why it failed")},
    )


STATE_CHANGES: Final = Named(_STATE_CHANGES_NAME, _changes(LEASE, LEASE))
"""What a dApp did, with all that is known of its leases."""

SHORT_STATE_CHANGES: Final = Named(
    "ShortStateChanges", _changes(_MADE_LEASE, object_of({"id": BASE58_SCHEMA}))
)
"""What a dApp would do, as it stands there."""

TRANSFER_PAYLOAD: Final = object_of(
    {
        "type": {"const": "transfer"},
        "recipient": TEXT_SCHEMA,
        "asset": ASSET_SCHEMA,
        "amount": LONG_SCHEMA,
    }
)
CALL_PAYLOAD: Final = object_of(
    {
        "type": {"const": "invocation"},
        "dApp": TEXT_SCHEMA,
        "call": or_null(CALL_SCHEMA),
        "payment": list_of(PAYMENT_SCHEMA),
        "stateChanges": or_null(STATE_CHANGES),
    }
)

TRACE: Final = Named(
    _TRACE_NAME,
    object_of(
        {
            "type": {"type": "string", "enum": ["verifier", "asset", "dApp"]},
            "id": told(TEXT_SCHEMA, "Of the account or asset whose script it is"),
        },
        {
            "context": told(TEXT_SCHEMA, "What the asset's script was asked about"),
            "function": TEXT_SCHEMA,
            "args": list_of(TEXT_SCHEMA),
            "invocations": list_of({"$ref": f"#/components/schemas/{_TRACE_NAME}"}),
            "result": {
                "anyOf": [{"enum": ["success", "failure"]}, STATE_CHANGES, SHORT_STATE_CHANGES]
            },
            "vars": list_of(
                object_of({"name": TEXT_SCHEMA}, {"type": TEXT_SCHEMA, "value": {}, "error": {}})
            ),
            "error": or_null(TEXT_SCHEMA),
        },
    ),
)

ASSET: Final = Named(
    "Asset",
    object_of(
        {
            "assetId": BASE58_SCHEMA,
            "issueHeight": INTEGER_SCHEMA,
            "issueTimestamp": LONG_SCHEMA,
            "issuer": TEXT_SCHEMA,
            "name": TEXT_SCHEMA,
            "description": TEXT_SCHEMA,
            "decimals": INTEGER_SCHEMA,
            "reissuable": BOOLEAN_SCHEMA,
            "quantity": LONG_SCHEMA,
            "scripted": BOOLEAN_SCHEMA,
        },
        {
            "issuerPublicKey": BASE58_SCHEMA,
            "minSponsoredAssetFee": or_null(LONG_SCHEMA),
            "originTransactionId": BASE58_SCHEMA,
            "sequenceInBlock": INTEGER_SCHEMA,
            "scriptDetails": object_of(
                {
                    "scriptComplexity": LONG_SCHEMA,
                    "script": SCRIPT_SCHEMA,
                    "scriptText": TEXT_SCHEMA,
                }
            ),
        },
    ),
)

_ID: Final[dict[str, Any]] = {"id": BASE58_SCHEMA}
_ROWS: Final[dict[str, Schema]] = {
    "balances": object_of({"address": TEXT_SCHEMA, "asset": ASSET_SCHEMA, "balance": LONG_SCHEMA}),
    "leaseBalances": object_of({"address": TEXT_SCHEMA, "in": LONG_SCHEMA, "out": LONG_SCHEMA}),
    "assetStatics": object_of(
        {
            **_ID,
            "source": BASE58_SCHEMA,
            "issuer": BASE58_SCHEMA,
            "decimals": INTEGER_SCHEMA,
            "nft": BOOLEAN_SCHEMA,
        }
    ),
    "assetVolumes": object_of({**_ID, "isReissuable": BOOLEAN_SCHEMA, "volume": LONG_SCHEMA}),
    "assetNamesAndDescriptions": object_of(
        {**_ID, "name": TEXT_SCHEMA, "description": TEXT_SCHEMA, "lastUpdatedAt": INTEGER_SCHEMA}
    ),
    "assetScripts": object_of({**_ID, "script": SCRIPT_SCHEMA, "complexity": LONG_SCHEMA}),
    "sponsorships": object_of({**_ID, "minSponsoredAssetFee": LONG_SCHEMA}),
    "newLeases": object_of(
        {
            **_ID,
            "sender": BASE58_SCHEMA,
            "recipient": TEXT_SCHEMA,
            "amount": LONG_SCHEMA,
            "txId": BASE58_SCHEMA,
            "height": INTEGER_SCHEMA,
        }
    ),
    "cancelledLeases": object_of({**_ID, "txId": BASE58_SCHEMA, "height": INTEGER_SCHEMA}),
    "aliases": object_of({"address": TEXT_SCHEMA, "alias": TEXT_SCHEMA}),
    "orderFills": object_of({**_ID, "volume": LONG_SCHEMA, "fee": LONG_SCHEMA}),
    "accountScripts": object_of(
        {"publicKey": BASE58_SCHEMA, "script": SCRIPT_SCHEMA, "verifierComplexity": LONG_SCHEMA}
    ),
    "accountData": object_of({"address": TEXT_SCHEMA, "data": list_of(DATA_ENTRY_SCHEMA)}),
}

SNAPSHOT: Final = Named(
    "TransactionSnapshot",
    object_of(
        {
            "applicationStatus": {"type": "string", "enum": list(APPLICATION_STATUSES)},
            **{name: list_of(row) for name, row in _ROWS.items()},
        }
    ),
)
"""What a transaction wrote to the state."""

NAMED: Final = (ASSET, LEASE, SNAPSHOT, STATE_CHANGES, SHORT_STATE_CHANGES, TRACE, RIDE_VALUE)
"""Those that routes refer to."""


def asset_balance(issue: Schema) -> Schema:
    """An account's balance of an asset, with the ``issue`` of that."""
    return object_of(
        {"assetId": BASE58_SCHEMA},
        {
            "reissuable": BOOLEAN_SCHEMA,
            "minSponsoredAssetFee": or_null(LONG_SCHEMA),
            "sponsorBalance": or_null(LONG_SCHEMA),
            "quantity": LONG_SCHEMA,
            "issueTransaction": {"anyOf": [issue, {"type": "null"}]},
            "balance": LONG_SCHEMA,
            "sequenceInBlock": INTEGER_SCHEMA,
        },
    )
