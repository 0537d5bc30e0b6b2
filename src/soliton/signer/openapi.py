"""The OpenAPI document of the signer.

What lives here: the document, made from the table of errors, the limits and the network, and the
example that the page also shows. What does not: the page, and the operations on stored keys
(``key_openapi``).
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from soliton import __version__
from soliton.chain.transactions.data import MAX_ENTRIES, TYPE
from soliton.signer.errors import BODY_TOO_LARGE, BODY_TOO_SLOW, FAULTS, WRONG_SHAPE, Fault
from soliton.signer.settings import SignerSettings
from soliton.web import openapi

WARNING: Final = (
    "For proofs of concept only: a seed phrase that travels in requests is known to everybody on "
    "the way. Never send one of an account with anything of value."
)

EXAMPLE: Final[dict[str, object]] = {
    "seed": "the words of a throw-away account",
    "data": [
        {"key": "temperature", "value": -4},
        {"key": "door open", "value": False},
        {"key": "note", "value": "checked by hand"},
        {"key": "raw", "value": [1, 2, 253]},
    ],
}

_TEXT: Final[dict[str, object]] = {"type": "string"}
_LONG: Final[dict[str, object]] = {"type": "integer", "format": "int64"}
_NOT_OF_DATA: Final = (404, 405)


def openapi_document(settings: SignerSettings) -> dict[str, object]:
    """Return the document."""
    network = settings.network
    answers = {"200": "It does; with its height.", "503": "It does not, with the reason."}
    paths = {
        "/data": {"post": _data_operation(network.fees.base[TYPE.type_id])},
        "/health": {"get": _simple("health", "Whether the signer runs", {"200": "It does."})},
        "/ready": {"get": _simple("ready", "Whether its node answers", answers)},
        "/livez": {"get": _simple("livez", "Whether the signer runs", {"200": "It does."})},
        "/readyz": {
            "get": _simple(
                "readyz",
                "Whether the signer can sign",
                {
                    "200": "A key is unlocked, and the audit log can be written; for a signer "
                    "without keys, its node answers.",
                    "503": "It cannot; `reasons` has why.",
                },
            )
        },
        "/metrics": {
            "get": _simple("metrics", "Metrics, for Prometheus", {"200": "The text format."})
        },
    }
    components = {"schemas": _schemas(settings.limits.seed_characters)}
    if settings.keys is not None:
        # A signer without stored keys does not load what these describe.
        from soliton.signer.key_openapi import key_paths, key_schemas, key_security

        paths |= key_paths()
        components["schemas"] |= key_schemas()
        components["securitySchemes"] = key_security()
    return openapi.document(f"Signer for {network.name}", __version__, WARNING, paths, components)


def _simple(name: str, summary: str, answers: dict[str, str]) -> dict[str, object]:
    responses: dict[str, object] = {
        status: {"description": text} for status, text in answers.items()
    }
    return openapi.operation(name, summary, responses | _refusals(_OF_EVERY_PATH))


_OF_EVERY_PATH: Final = (WRONG_SHAPE, BODY_TOO_LARGE, BODY_TOO_SLOW)


def _refusals(faults: Iterable[Fault]) -> dict[str, object]:
    """Return the responses for errors, by status."""
    by_status: dict[int, list[Fault]] = {}
    for fault in faults:
        by_status.setdefault(fault.status, []).append(fault)
    return {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}. {_description(rows, status)}",
            "content": openapi.content(openapi.ref("Error")),
        }
        for status, rows in sorted(by_status.items())
    }


def _data_operation(fee: int) -> dict[str, object]:
    responses: dict[str, object] = {
        "200": {
            "description": "Signed, and accepted by the node.",
            "content": openapi.content(openapi.ref("DataTransaction")),
        }
    }
    responses |= _refusals(fault for fault in FAULTS if fault.status not in _NOT_OF_DATA)
    request = openapi.content(openapi.ref("DataRequest"), EXAMPLE)
    return openapi.operation(
        "signData",
        "Sign a data transaction with the seed's first account and broadcast it",
        responses,
        description=f"{WARNING} The fee is {fee} for each started KiB of the signed bytes.",
        body={"required": True, "content": request},
    )


def _description(rows: Iterable[Fault], status: int) -> str:
    node = " Or the node's own code and message, for what it refuses." if status == 400 else ""
    return " ".join(f"{row.code}: {row.meaning}" for row in rows) + node


def _schemas(max_seed_characters: int) -> dict[str, object]:
    byte_array = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}}
    request_value = {"oneOf": [_LONG, {"type": "boolean"}, _TEXT, byte_array]}
    kind = {"enum": ["integer", "boolean", "string", "binary"]}
    entry = {"key": _TEXT, "value": request_value, "type": {**kind, "description": "Inferred."}}
    seed = {"type": "string", "minLength": 1, "maxLength": max_seed_characters}
    answered = {"type": kind, "key": _TEXT, "value": {"oneOf": [_LONG, {"type": "boolean"}, _TEXT]}}
    return {
        "DataRequest": _object(
            {
                "seed": {**seed, "format": "password", "writeOnly": True},
                "data": {**_list_of(_object(entry, "key", "value")), "minItems": 1},
            },
            "seed",
            "data",
        ),
        "DataTransaction": _object(
            {
                "type": {"const": TYPE.type_id},
                "version": {"const": 1},
                "senderPublicKey": _TEXT,
                "fee": _LONG,
                "timestamp": {**_LONG, "description": "Milliseconds since 1970."},
                "proofs": _list_of(_TEXT),
                "id": _TEXT,
                "data": _list_of(_object(answered, *answered)),
            },
        ),
        "Error": _object(
            {
                "error": {"type": "integer"},
                "message": _TEXT,
                "path": {"type": "string", "description": "The member of the request."},
                "id": {"type": "string", "description": "The transaction that may have arrived."},
                "source": {"const": "node", "description": "The node's code and message."},
                "details": {"type": "object", "description": "The node's reasons by address."},
            },
            "error",
            "message",
        ),
    }


def _list_of(schema: dict[str, object]) -> dict[str, object]:
    return {"type": "array", "items": schema, "maxItems": MAX_ENTRIES}


def _object(properties: dict[str, object], *required: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required or properties),
        "additionalProperties": False,
    }
