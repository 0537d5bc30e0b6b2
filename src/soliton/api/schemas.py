"""JSON schemas of transactions and blocks for the OpenAPI document, made from their declarations.

What lives here: the schemas of each transaction type as clients send it (unsigned and signed) and
receive it (unconfirmed and confirmed), their unions, which ``type`` tells apart, and the schemas of
blocks and headers. Members that only some versions have are optional. What does not: single values
(``soliton.chain.kinds``), what scripts and the state add (``state_schemas``, and
``json_transactions`` for each type), and the document (``openapi``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from soliton.api import state_schemas
from soliton.api.json_transactions import STATE_MEMBERS
from soliton.api.state_schemas import APPLICATION_STATUSES
from soliton.chain.fields import Field
from soliton.chain.json_kinds import ASSET_SCHEMA, BASE58_SCHEMA
from soliton.chain.json_schemas import (
    INTEGER_SCHEMA,
    LONG_SCHEMA,
    TEXT_SCHEMA,
    Named,
    Schema,
    described,
    list_of,
    object_of,
    or_null,
)
from soliton.chain.transactions import codec, issue
from soliton.chain.transactions.model import ProtobufForm, TransactionType
from soliton.chain.transactions.table import registered
from soliton.web.openapi import ref

Members = dict[str, Schema | Named]

_STATUS: Final[Schema] = {"type": "string", "enum": list(APPLICATION_STATUSES)}
_TIME: Final = described(LONG_SCHEMA, "Milliseconds since 1970")
_CHAIN_ID: Final = described(INTEGER_SCHEMA, "The network's number: the code of a letter")


# --- transactions that clients receive ------------------------------------------------------------


def shown(kind: TransactionType) -> Schema:
    """A transaction of this type, in any version, as ``codec.to_json`` writes it."""
    always: Members = {
        "type": _constant(kind),
        "id": BASE58_SCHEMA,
        "fee": LONG_SCHEMA,
        "timestamp": _TIME,
    }
    sometimes: Members = {"applicationStatus": described(_STATUS, "Of what is in a block")}
    versions = _versions(kind)
    if kind.versioned:
        always["version"] = _version(kind)
    with_chain_id = [
        version
        for version in versions
        if codec.is_protobuf(kind, version) or version in kind.chain_id_versions
    ]
    _add(always, sometimes, "chainId", _CHAIN_ID, with_chain_id, versions)
    if kind.senderless:
        always["signature"] = BASE58_SCHEMA
    else:
        always |= {"feeAssetId": ASSET_SCHEMA, "sender": TEXT_SCHEMA}
        always["senderPublicKey"] = BASE58_SCHEMA
        if isinstance(kind.protobuf, ProtobufForm):
            always["proofs"] = list_of(BASE58_SCHEMA)
            signed = [version for version in versions if version in kind.signature_versions]
            _add(always, sometimes, "signature", BASE58_SCHEMA, signed, versions)
    for field in kind.fields:
        later = [version for version in versions if version >= field.since]
        _add(always, sometimes, field.key, field.kind.json.schema, later, versions)
    always |= kind.derived_schemas
    if kind.repeats_fee_asset:
        always["feeAsset"] = described(ASSET_SCHEMA, "The same as `feeAssetId`")
    if kind.type_id in STATE_MEMBERS:
        sometimes |= STATE_MEMBERS[kind.type_id].sometimes
    return object_of(always, sometimes)


def confirmed(kind: TransactionType) -> Schema:
    """A confirmed transaction, with its height, its outcome and the additions of the state."""
    base = shown(kind)
    more: Members = {
        "height": described(INTEGER_SCHEMA, "Of the block that it is in"),
        "applicationStatus": described(_STATUS, "On networks and since blocks that tell it"),
        "spentComplexity": described(LONG_SCHEMA, "Of the scripts that it ran"),
    }
    if kind.type_id in STATE_MEMBERS:
        more |= STATE_MEMBERS[kind.type_id].confirmed
    properties = {**base["properties"], **more}
    return {**base, "properties": properties, "required": [*base["required"], "height"]}


def _add(
    always: Members,
    sometimes: Members,
    name: str,
    schema: Schema | Named,
    having: list[int],
    versions: list[int],
) -> None:
    """Add a member that the versions ``having`` have: required if that is all, else optional."""
    if having == versions:
        always[name] = schema
    elif having:
        which = ", ".join(map(str, having))
        text = f"Only in version{'s' if len(having) > 1 else ''} {which}"
        if versions[-1] in having:
            text = f"From version {having[0]} on"
        sometimes[name] = _of_versions(schema, text)


def _of_versions(schema: Schema | Named, text: str) -> Schema:
    if isinstance(schema, Named):
        return {"allOf": [schema], "description": text}
    own = schema.get("description")
    return {**schema, "description": text if own is None else f"{own}. {text}"}


def _constant(kind: TransactionType) -> Schema:
    return {"type": "integer", "const": kind.type_id}


def _versions(kind: TransactionType) -> list[int]:
    return list(range(1, kind.max_version + 1))


def _version(kind: TransactionType) -> Schema:
    known = _versions(kind)
    text = f"{known[0]} to {known[-1]} are known" if len(known) > 1 else "1 is known"
    return {**INTEGER_SCHEMA, "description": text}


# --- transactions that clients send ---------------------------------------------------------------


def sendable() -> tuple[TransactionType, ...]:
    """The types that clients can send as JSON."""
    return tuple(
        kind for kind in registered() if kind.versioned and isinstance(kind.protobuf, ProtobufForm)
    )


def sent(kind: TransactionType, *, signed: bool, with_type: bool = True) -> Schema:
    """A transaction of this type as a client sends it: signed, or to be signed or priced.

    Older routes have the type in the path and not in the body (``with_type=False``).
    """
    form = kind.request
    needed = {"senderPublicKey", *form.required} if signed else set()
    if signed and form.fee_required:
        needed.add("fee")
    number = described(INTEGER_SCHEMA, f"{form.default_version if signed else 1} if left out")
    envelope: Members = {
        "version": number if signed else {**number, "type": ["integer", "string"]},
        "chainId": _CHAIN_ID,
        "sender": described(TEXT_SCHEMA, "Address"),
        "senderPublicKey": BASE58_SCHEMA,
        "fee": LONG_SCHEMA,
        "timestamp": _TIME,
        "proofs": list_of(BASE58_SCHEMA),
        "signature": described(BASE58_SCHEMA, "In place of one proof"),
    }
    if kind.fee_in_asset:
        envelope["feeAssetId"] = ASSET_SCHEMA
    properties: Members = {"type": _constant(kind)} if with_type else {}
    properties |= {
        name: schema if name in needed else or_null(schema) for name, schema in envelope.items()
    }
    required = [name for name in properties if name == "type" or name in needed]
    either: list[Schema] = []
    for field in kind.fields:
        _add_field(field, properties, required, either)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return schema if not either else {**schema, "allOf": either}


def _add_field(
    field: Field, properties: Members, required: list[str], either: list[Schema]
) -> None:
    of_json = field.kind.json
    schema = of_json.schema if of_json.sent is None else of_json.sent
    optional = field.is_optional
    if optional or field.aliases:
        properties[field.key] = or_null(schema)
    else:
        properties[field.key] = schema
    for name in field.aliases:
        properties[name] = {**or_null(schema), "description": f"An older name of `{field.key}`"}
    if optional:
        return
    if field.aliases:
        names = (field.key, *field.aliases)
        either.append({"anyOf": [{"required": [name]} for name in names]})
    else:
        required.append(field.key)


# --- blocks ---------------------------------------------------------------------------------------

_VOTES: Final[Members] = {
    "features": described(list_of(INTEGER_SCHEMA), "From version 3 on: features voted for"),
    "desiredReward": described(LONG_SCHEMA, "From version 4 on; -1 for none"),
    "stateHash": described(BASE58_SCHEMA, "Where feature 22 is active"),
}
_ENDORSEMENT: Final = object_of(
    {
        "endorserIndex": INTEGER_SCHEMA,
        "finalizedBlockId": BASE58_SCHEMA,
        "finalizedHeight": INTEGER_SCHEMA,
        "endorsedBlockId": BASE58_SCHEMA,
        "signature": BASE58_SCHEMA,
    }
)
_VOTING: Final[Members] = {
    "finalizationVoting": described(
        object_of(
            {},
            {
                "endorserIndexes": list_of(INTEGER_SCHEMA),
                "aggregatedEndorsementSignature": BASE58_SCHEMA,
                "finalizedHeight": INTEGER_SCHEMA,
                "conflictEndorsements": list_of(_ENDORSEMENT),
            },
        ),
        "Where feature 25 is active: the endorsements of the block before",
    )
}
_GENERATOR: Final[Members] = {"generator": TEXT_SCHEMA, "generatorPublicKey": BASE58_SCHEMA}
_ALWAYS: Final[Members] = {
    "version": INTEGER_SCHEMA,
    "timestamp": _TIME,
    "reference": described(BASE58_SCHEMA, "The id of the block before"),
    "nxt-consensus": object_of({"base-target": LONG_SCHEMA, "generation-signature": BASE58_SCHEMA}),
    "id": BASE58_SCHEMA,
    **_GENERATOR,
    "signature": BASE58_SCHEMA,
    "blocksize": INTEGER_SCHEMA,
    "transactionCount": INTEGER_SCHEMA,
    "height": INTEGER_SCHEMA,
    "totalFee": LONG_SCHEMA,
}
_SOMETIMES: Final[Members] = {
    "transactionsRoot": described(BASE58_SCHEMA, "From version 5 on"),
    **_VOTES,
    "challengedHeader": object_of(
        {"headerSignature": BASE58_SCHEMA, **_GENERATOR}, {**_VOTES, **_VOTING}
    ),
    **_VOTING,
    "reward": LONG_SCHEMA,
    "rewardShares": described(
        {"type": "object", "additionalProperties": LONG_SCHEMA}, "Address to share of the reward"
    ),
    "VRF": described(BASE58_SCHEMA, "From version 5 on"),
}


# --- all of them ----------------------------------------------------------------------------------


def shapes() -> Iterator[tuple[str, Schema]]:
    """The schemas for ``components/schemas``, by name. Each is made when the caller takes it."""
    found: dict[str, Schema] = {}
    yielded = 0
    for name, make in _makers():
        # A schema within another one has been found with that.
        if name not in found:
            _keep(name, make(), found)
        fresh = list(found.items())[yielded:]
        yielded = len(found)
        yield from fresh


def _keep(name: str, schema: Schema, found: dict[str, Schema]) -> None:
    # The name is taken first, because some schemas contain themselves.
    found[name] = {}
    found[name] = _resolved(schema, found)


def _makers() -> Iterator[tuple[str, Callable[[], Schema]]]:
    kinds, ours = registered(), sendable()
    for kind in kinds:
        yield kind.title, partial(shown, kind)
        yield f"Confirmed{kind.title}", partial(confirmed, kind)
    for kind in ours:
        yield f"Unsigned{kind.title}", partial(sent, kind, signed=False)
        yield f"Signed{kind.title}", partial(sent, kind, signed=True)
    yield "Transaction", partial(_one_of, "", kinds)
    yield "ConfirmedTransaction", partial(_one_of, "Confirmed", kinds)
    yield "UnsignedTransaction", partial(_one_of, "Unsigned", ours)
    yield "SignedTransaction", partial(_one_of, "Signed", ours)
    yield "BlockHeader", partial(object_of, _ALWAYS, _SOMETIMES)
    more: Members = {"fee": LONG_SCHEMA, "transactions": list_of(ref("Transaction"))}
    yield "Block", partial(object_of, {**_ALWAYS, **more}, _SOMETIMES)
    yield "AssetBalanceOfAccount", _asset_balance
    for each in state_schemas.NAMED:
        yield each.name, partial(getattr, each, "schema")


def _asset_balance() -> Schema:
    """The reference writes null for the chain id of an issue that has none."""
    issued = shown(issue.TYPE)
    properties = {**issued["properties"], "chainId": or_null(_CHAIN_ID)}
    return state_schemas.asset_balance({**issued, "properties": properties})


def _one_of(prefix: str, kinds: Iterable[TransactionType]) -> Schema:
    """A union. The constant ``type`` tells the members apart; OpenAPI's discriminator cannot,
    because it has to be a string.
    """
    return {"oneOf": [ref(f"{prefix}{kind.title}") for kind in kinds]}


def _resolved(schema: Any, found: dict[str, Schema]) -> Any:  # noqa: ANN401 - any JSON value
    """The schema with references instead of named schemas, which are added to ``found``."""
    if isinstance(schema, Named):
        if schema.name not in found:
            _keep(schema.name, schema.schema, found)
        return ref(schema.name)
    if isinstance(schema, Mapping):
        return {name: _resolved(member, found) for name, member in schema.items()}
    if isinstance(schema, list | tuple):
        return [_resolved(item, found) for item in schema]
    return schema


TRANSACTION: Final = ref("Transaction")
CONFIRMED_TRANSACTION: Final = ref("ConfirmedTransaction")
UNSIGNED_TRANSACTION: Final = ref("UnsignedTransaction")
SIGNED_TRANSACTION: Final = ref("SignedTransaction")
TRACED_TRANSACTION: Final[Schema] = {
    "allOf": [TRANSACTION, object_of({}, {"trace": list_of(ref("Trace"))})]
}
BLOCK: Final = ref("Block")
BLOCK_HEADER: Final = ref("BlockHeader")
LEASE: Final = ref("Lease")
DATA_ENTRY: Final = ref("DataEntry")
ASSET: Final = ref("Asset")
TRANSACTION_SNAPSHOT: Final = ref("TransactionSnapshot")
STATE_CHANGES: Final = ref("StateChanges")
TRACE: Final = ref("Trace")


def request_of(type_id: int, *, signed: bool) -> Schema:
    """The body of a route that has the type in its path."""
    kind = next(kind for kind in sendable() if kind.type_id == type_id)
    resolved: Schema = _resolved(sent(kind, signed=signed, with_type=False), {})
    return resolved
