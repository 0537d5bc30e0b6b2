"""The part of the OpenAPI document about stored keys.

What lives here: operations, and the schemas of bodies and answers. What does not: ``POST /data``
(``openapi``), and the schemas of transactions and orders, which are in the node's document.
"""

from __future__ import annotations

from typing import Any, Final

from soliton.signer.audit_routes import PARAMETERS
from soliton.signer.errors import FAULTS, KEY_FAULTS, NO_SUCH_METHOD
from soliton.signer.keyring import MAX_UNLOCKED_SECONDS
from soliton.signer.measures import Kind
from soliton.signer.sign_request import (
    FINALIZED,
    MAX_CONFIRMATIONS,
    MAX_PACKAGE,
    MAX_WAIT_SECONDS,
)
from soliton.signer.signable import MAX_PROOF_PLACE
from soliton.web import openapi

Schema = dict[str, Any]

SECURITY: Final = [{"ApiKey": list[str]()}]
_TEXT: Final[Schema] = {"type": "string"}
_LONG: Final[Schema] = {"type": "integer", "format": "int64"}
_OBJECT: Final[Schema] = {"type": "object"}
_DESCRIPTIONS: Final = {
    Kind.TRANSACTION: "Any type, without proofs, as a node or @waves/waves-transactions has it",
    Kind.ORDER: "An order of version 1 to 4",
    Kind.CANCEL_ORDER: "orderId",
    Kind.CUSTOM_DATA: "version 1 with binary or text, or version 2 with data",
    Kind.AUTH: "host and data",
    Kind.WAVES_AUTH: "timestamp",
    Kind.TEXT: "text, of printable characters",
}
_GENERATOR: Final[tuple[tuple[str, str, str, Schema, str], ...]] = (
    (
        *("vrf", "proveTurn", "The VRF proof of a hit source"),
        {"key": _TEXT, "message": _TEXT},
        "Proof",
    ),
    (
        *("block", "signBlock", "Sign a block, one on each parent"),
        {"key": _TEXT, "height": _LONG, "block": _TEXT},
        "BlockSignature",
    ),
    (
        *("microblock", "signMicroblock", "Sign a microblock, one on each form of a block"),
        {"key": _TEXT, "height": _LONG, "total": _TEXT, "microblock": _TEXT},
        "MicroblockSignatures",
    ),
)
_KEYS: Final[Schema] = {"type": "array", "items": _TEXT, "description": "Names; without any, all."}


def key_paths() -> Schema:
    """Return the paths, each with its operation."""
    pending = openapi.parameter("id", "path", "What waits.", example="FGp3BXBtz9CeZR6bpSuqGF")
    paths = {
        "/sign": _post("sign", "Sign a thing or a package", openapi.ref("SignRequest"), "Signed"),
        "/sign-and-broadcast": _post(
            "signAndBroadcast",
            "Sign transactions and send them to the node",
            openapi.ref("SendRequest"),
            "Sent",
        ),
        "/keys": {"get": _operation("keys", "Which keys there are", "Keys")},
        "/keys/unlock": _post(
            "unlockKeys", "Let keys sign for a time", openapi.ref("UnlockRequest"), "Keys"
        ),
        "/keys/lock": _post("lockKeys", "Lock keys", _object({"keys": _KEYS}), "Keys"),
        "/pending": {"get": _operation("allPending", "What waits for approval", "AllPending")},
        "/pending/{id}": {
            "get": _operation("pending", "One of these", "Pending", parameters=[pending])
        },
        "/policy": {"get": _operation("policy", "The rules in force", "Policy")},
        "/policy/reload": _post(
            "reloadPolicy",
            "Read the rules again, if they have this hash",
            _object({"policyHash": _TEXT}, "policyHash"),
            "Policy",
        ),
    }
    simulated = _operation(
        "simulatePending", "What the node says it would do", "Simulated", parameters=[pending]
    )
    paths["/pending/{id}/simulation"] = {"get": simulated}
    of_audit = [
        openapi.parameter(
            *(each.name, each.place.value, each.description, each.kind.schema),
            example=each.example,
        )
        for each in PARAMETERS
    ]
    paths |= {
        "/caller": {"get": _operation("caller", "Who asks, and what that one may do", "Caller")},
        "/audit": {"get": _operation("audit", "The last lines", "Audit", parameters=of_audit)},
        "/audit/verify": {"post": _operation("verifyAudit", "Check every line", "Verified")},
    }
    paths |= {
        f"/generator/{name}": _post(operation, summary, _object(body, *body), answer)
        for name, operation, summary, body, answer in _GENERATOR
    }
    for verb in ("approve", "refuse"):
        summary = f"{verb.capitalize()} what waits"
        decided = _operation(f"{verb}Pending", summary, "Pending", parameters=[pending])
        paths[f"/pending/{{id}}/{verb}"] = {"post": decided}
    return paths


def key_schemas() -> Schema:
    """Return the schemas of bodies and answers."""
    refusal = {
        "error": _LONG,
        **dict.fromkeys(("message", "path", "rule", "condition", "signed", "signature"), _TEXT),
        "line": _LONG,
    }
    error = {"type": "object", "properties": refusal, "required": ["error", "message"]}
    return {"KeyError": error, **_request_schemas(), **_answer_schemas()}


def _request_schemas() -> Schema:
    place = {"type": "integer", "minimum": 0, "maximum": MAX_PROOF_PLACE}
    things = {kind.value: {**_OBJECT, "description": text} for kind, text in _DESCRIPTIONS.items()}
    one = _object({**things, "proofAt": place})
    wanted = {
        "key": {**_TEXT, "description": "A name, an address or a public key."},
        "id": {**_TEXT, "description": "Signed once under this id.", "maxLength": 128},
        **things,
        "proofAt": place,
        "package": {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_PACKAGE},
    }
    sent = {
        "confirmations": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_CONFIRMATIONS},
                {"type": "string", "enum": [FINALIZED]},
            ]
        },
        "timeout": {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS},
    }
    password = {**_TEXT, "format": "password", "writeOnly": True}
    seconds = {"type": "integer", "minimum": 1, "maximum": MAX_UNLOCKED_SECONDS}
    unlock = {"password": password, "seconds": seconds, "keys": _KEYS}
    return {
        "SignRequest": _object(wanted),
        "SendRequest": _object({**wanted, **sent}),
        "UnlockRequest": _object(unlock, "password"),
    }


def _answer_schemas() -> Schema:
    signed = {"oneOf": [_OBJECT, {"type": "array", "items": _OBJECT}]}
    key = {
        **dict.fromkeys(("name", "address", "publicKey"), _TEXT),
        "locked": {"type": "boolean"},
        "unlockedFor": {**_LONG, "description": "Seconds."},
        "stored": {"type": "boolean", "description": "In a store that signs."},
    }
    texts: Schema = {"type": "array", "items": _TEXT}
    rows: Schema = {"type": "array", "items": _OBJECT}
    waiting = {
        **dict.fromkeys(("pending", "caller", "key", "rule", "refusedBy"), _TEXT),
        "state": {"enum": ["waiting", "signed", "refused", "expired"]},
        **dict.fromkeys(("told", "ids", "approved", "approvers"), texts),
        "asked": {"type": "array", "items": _OBJECT},
        **dict.fromkeys(("needed", "askedAt", "expiresIn"), _LONG),
        "signed": signed,
        **dict.fromkeys(("totals", "decided", "windows"), rows),
        **dict.fromkeys(("refusal", "broadcast"), _OBJECT),
    }
    simulated = {"pending": _TEXT, "simulated": rows}
    confirmed = {
        **dict.fromkeys(("id", "applicationStatus"), _TEXT),
        **dict.fromkeys(("height", "confirmations"), _LONG),
        "finalized": {"type": "boolean"},
    }
    rule = _object({"name": _TEXT, "line": _LONG}, "name", "line")
    policy = {
        **dict.fromkeys(("file", "hash", "source"), _TEXT),
        "rules": {"type": "array", "items": rule},
        "audit": _object({"lines": _LONG, "head": _TEXT}, "lines", "head"),
    }
    every = {"type": "array", "items": openapi.ref("Pending")}
    sent = {"signed": signed, "confirmed": {"type": "array", "items": _object(confirmed)}}
    return {
        "Signed": _object({"signed": signed}, "signed"),
        "Sent": _object(sent, "signed"),
        "Keys": _object({"keys": {"type": "array", "items": _object(key, *key)}}, "keys"),
        "Pending": _object(waiting, "pending", "state"),
        "Simulated": _object(simulated, *simulated),
        "AllPending": _object({"pending": every}, "pending"),
        "Policy": _object(policy, *policy),
        **_log_schemas(rows),
        "Proof": _object({"proof": _TEXT}, "proof"),
        "BlockSignature": _object({"signature": _TEXT}, "signature"),
        "MicroblockSignatures": _object(
            dict.fromkeys(("totalSignature", "signature", "announcement"), _TEXT),
            *("totalSignature", "signature", "announcement"),
        ),
    }


def _log_schemas(rows: Schema) -> Schema:
    verified = {
        "sound": {"type": "boolean"},
        **dict.fromkeys(("at", "first", "lines", "signatures"), _LONG),
        **dict.fromkeys(("head", "message"), _TEXT),
    }
    audit = {
        "lines": rows,
        "head": _object({"number": _LONG, "hash": _TEXT}, "number", "hash"),
        "rulesSince": {**_LONG, "description": "The first line of the rules that are in force."},
        "verified": {"oneOf": [openapi.ref("Verified"), {"type": "null"}]},
    }
    caller = {"name": _TEXT, "may": {"type": "array", "items": _TEXT}, "rate": _LONG}
    return {
        "Verified": _object(verified, "sound", "at"),
        "Audit": _object(audit, *audit),
        "Caller": _object(caller, *caller),
    }


def key_security() -> Schema:
    """Return the security scheme: the header with the API key."""
    return {"ApiKey": openapi.api_key("X-API-Key", "The key of one of signer.callers.")}


def _post(name: str, summary: str, body: Schema, answer: str) -> Schema:
    content = {"required": True, "content": openapi.content(body)}
    operation = _operation(name, summary, answer, body=content)
    if name in ("sign", "signAndBroadcast"):
        operation["responses"]["202"] = {
            "description": "It needs approval.",
            "content": openapi.content(openapi.ref("Pending")),
        }
    return {"post": operation}


def _operation(name: str, summary: str, answer: str, **more: Any) -> Schema:  # noqa: ANN401
    responses: Schema = {
        "200": {"description": "Done.", "content": openapi.content(openapi.ref(answer))}
    }
    faults = [fault for fault in (*FAULTS, *KEY_FAULTS) if fault is not NO_SUCH_METHOD]
    for status in sorted({fault.status for fault in faults}):
        rows = [f"{fault.code}: {fault.meaning}" for fault in faults if fault.status == status]
        responses[str(status)] = {
            "description": " ".join(rows),
            "content": openapi.content(openapi.ref("KeyError")),
        }
    return openapi.operation(name, summary, responses, tag="keys", security=SECURITY, **more)


def _object(properties: Schema, *required: str) -> Schema:
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | {"required": list(required)} if required else found
