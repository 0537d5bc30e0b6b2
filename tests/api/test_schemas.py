"""The shapes of transactions and blocks: true to what the reference answers and clients send.

What lives here: recorded answers and transactions of all types and versions against the document,
with no member undeclared; broken ones, which do not fit. What does not: answers of our own routes,
which all tests of the API hold against the document (``declared``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from soliton.api.app import all_routes
from soliton.api.openapi import openapi_document
from soliton.api.routes import CompiledRoute, Route
from soliton.chain import blocks, orders
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction, ProtobufForm
from soliton.chain.transactions.table import registered
from soliton.web.routing import Router
from tests.api.client import make_context
from tests.api.declared import SHAPES, faults
from tests.node import recorded
from tests.vectors import load_vectors, report

DOCUMENT = msgspec.json.decode(msgspec.json.encode(openapi_document(make_context(), all_routes())))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
RECORDED = (
    "chain", "transactions-info", "transactions-snapshot", "transactions-status",
    "merkle-proof", "state-addresses", "state-assets", "state-leases",
)  # fmt: skip
MAX_DOCUMENT_BYTES = 1_000_000


def closed(schema: Any) -> Any:
    """The same schema, but for members that it does not name, which do not fit it."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {
        name: {key: closed(each) for key, each in member.items()}
        if name == "properties"
        else closed(member)
        for name, member in schema.items()
    }
    return {"additionalProperties": False, **inner} if "properties" in schema else inner


CLOSED: dict[str, Any] = {name: closed(schema) for name, schema in SCHEMAS.items()}


def check(value: object, name: str, *, shapes: Mapping[str, Any] = CLOSED) -> list[str]:
    return list(faults(value, {"$ref": name}, shapes))


def test_the_document_is_valid() -> None:
    """That of all networks together; each of them has a part of it."""
    assert len(msgspec.json.encode(DOCUMENT)) < MAX_DOCUMENT_BYTES
    assert not [error.message for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()]


def test_the_example_of_every_route_fits_its_schema() -> None:
    for route in all_routes():
        if route.documented and isinstance(route.response, Mapping):
            found = list(faults(plain(route.example), plain(route.response), SCHEMAS))
            assert not found, (route.path, found)
        if route.documented and route.body and isinstance(route.body.schema, Mapping):
            found = list(faults(plain(route.body.example), plain(route.body.schema), SCHEMAS))
            assert not found, (route.path, found)


def plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


# --- what the reference answered ------------------------------------------------------------------


def answers(golden: Path) -> Iterator[tuple[str, object]]:
    for height, block in enumerate(recorded.load(golden / "blocks.json.gz"), 1):
        yield f"/blocks/at/{height}", block
    for name in RECORDED:
        for row in recorded.lines(golden / f"{name}.jsonl.gz"):
            # Some answers are a sentence, or nothing at all, in plain text.
            if row["status"] == 200 and row["body"] != "":
                yield row["path"], row["body"]


def test_recorded_answers_fit_the_schemas_of_their_routes(shared: Path) -> None:
    """Nothing the reference answered is undeclared, nothing declared as there is missing."""
    compiled = (CompiledRoute(each, 0) for each in all_routes() if "GET" in each.methods)
    router = Router((each.route.path, each) for each in compiled)
    checked: Counter[str] = Counter()
    found: dict[str, str] = {}
    for path, body in answers(shared / "golden" / "waves-r"):
        matches = router.find(path.partition("?")[0])
        route = matches[0][0].route
        if isinstance(route.response, Mapping):
            checked[route.path] += 1
            for fault in faults(body, closed(plain(route.response)), CLOSED):
                found[f"{route.path}: {fault}"] = path
    assert not found
    for path, least in (
        ("/blocks/at/{height}", 82),
        ("/blocks/headers/{id}", 82),
        ("/transactions/info/{id}", 510),
        ("/transactions/snapshot/{id}", 510),
        ("/transactions/address/{address}/limit/{limit}", 790),
        ("/addresses/data/{address}", 790),
        ("/assets/balance/{address}", 790),
        ("/leasing/info/{id}", 14),
    ):
        assert checked[path] >= least, path
    report.ran("golden answers against the schemas of their routes", sum(checked.values()))


# --- transactions of all types and versions -------------------------------------------------------


def recorded_transactions(shared: Path) -> Iterator[AnyTransaction]:
    for name in ("tx_private_chain", "tx_mainnet_payment"):
        for row in load_vectors(name):
            chain_id = ord(row["scheme"])
            if "binary" in row:
                yield codec.decode_legacy(bytes.fromhex(row["binary"]), chain_id)
            elif "protobuf_signed" in row:
                yield codec.decode_protobuf(bytes.fromhex(row["protobuf_signed"]), chain_id)
    for chain, name in (
        ("waves-go-b", "blocks.bin"),
        ("waves-go-c", "blocks.bin"),
        ("waves-r", "blocks-2-82.bin"),
    ):
        chain_id = ord(chain[-1].upper())
        for data in recorded.records(shared / "golden" / chain / name):
            yield from blocks.decode(data, chain_id).transactions


def test_transactions_of_all_recorded_chains(shared: Path) -> None:
    """As they are shown, and sent again as they are."""
    seen: Counter[tuple[int, int]] = Counter()
    for transaction in recorded_transactions(shared):
        shown = plain(codec.to_json(transaction))
        name = (transaction.type_id, transaction.version)
        assert not check(shown, "Transaction"), shown
        if has_requests(transaction.type_id):
            assert not check(shown, "SignedTransaction", shapes=SCHEMAS), shown
            assert not check(shown, "UnsignedTransaction", shapes=SCHEMAS), shown
        seen[name] += 1
    known = {(kind.type_id, version) for kind in registered() for version in versions(kind)}
    # Of type 19 no network has one yet; type 1 is in first blocks, which are among the answers.
    missing = {name for name in known - set(seen) if name[0] not in (1, 19)}
    assert not missing, sorted(missing)
    report.ran("recorded transactions against their schemas", sum(seen.values()))


def versions(kind: Any) -> range:
    return range(1, kind.max_version + 1)


def has_requests(type_id: int) -> bool:
    (kind,) = [each for each in registered() if each.type_id == type_id]
    return kind.versioned and isinstance(kind.protobuf, ProtobufForm)


def test_transactions_of_client_libraries() -> None:
    """What ``@waves/waves-transactions`` signs may be sent."""
    rows = [row for row in load_vectors("tx_js_protobuf") if row["type"] != 18]
    for row in rows:
        # The library writes numbers above 2^53 as texts.
        sent = numbers(row["json"])
        assert not check(sent, "SignedTransaction", shapes=SCHEMAS), sent
    report.ran("transactions of client libraries against their schemas", len(rows))


def numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [numbers(each) for each in value]
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def test_orders(shared: Path) -> None:
    found = json.loads((shared / "vectors" / "matcher-orders.json").read_text())["orders"]
    rows = [row for each in found for row in each.get("orders", [each])] if found else []
    for row in rows:
        ours = plain(orders.to_json(orders.from_json(row, ord("R"))))
        assert not check(ours, "Order"), ours
        assert not check(ours, "OrderToSend", shapes=SCHEMAS), ours
    assert {row["version"] for row in rows} >= {1, 2, 3, 4}


# --- what does not fit ----------------------------------------------------------------------------


def one_of_each_type(shared: Path) -> dict[int, dict[str, Any]]:
    rows = recorded.lines(shared / "golden" / "waves-r" / "transactions-info.jsonl.gz")
    return {row["body"]["type"]: row["body"] for row in rows}


def test_broken_answers_do_not_fit(shared: Path) -> None:
    """Each member left out, of another kind, or with another name; each type under another."""
    found = one_of_each_type(shared)
    assert len(found) >= 17
    for type_id, body in found.items():
        assert not check(body, "ConfirmedTransaction")
        required = SCHEMAS[schema_name(type_id)]["required"]
        for name in body:
            rest = {key: value for key, value in body.items() if key != name}
            assert bool(check(rest, "ConfirmedTransaction")) == (name in required), name
            assert check({**body, name: {"x": [name]}}, "ConfirmedTransaction"), name
            assert check({**rest, f"{name}_": body[name]}, "ConfirmedTransaction"), name
        assert check({**body, "type": 99}, "ConfirmedTransaction")


def schema_name(type_id: int) -> str:
    (kind,) = [each for each in registered() if each.type_id == type_id]
    return f"Confirmed{kind.title}"


def test_another_validator_agrees(shared: Path) -> None:
    """Our checks of shapes find what a public implementation of JSON Schema finds."""
    for type_id, body in one_of_each_type(shared).items():
        name = {"$ref": "#/components/schemas/ConfirmedTransaction"}
        validator = OAS31Validator({**name, "components": {"schemas": SCHEMAS}})
        assert not list(validator.iter_errors(body)), type_id
        for key in body:
            broken = {**body, key: {"x": [key]}}
            theirs = not validator.is_valid(broken)
            assert theirs == bool(check(broken, "ConfirmedTransaction", shapes=SCHEMAS)), key


def test_every_route_about_transactions_and_blocks_says_so() -> None:
    """No such route takes or answers just any object."""
    loose = {"type": "object"}

    def is_loose(schema: Any) -> bool:
        return schema == loose or (schema.get("items") or {}) == loose

    def tells(route: Route) -> bool:
        said = [route.response, route.body.schema if route.body else {}]
        return not any(isinstance(each, Mapping) and is_loose(each) for each in said)

    about = [
        route
        for route in all_routes()
        if route.documented and route.path.startswith(("/transactions", "/blocks", "/leasing"))
    ]
    assert len(about) > 40
    assert not [route.path for route in about if not tells(route)]
    assert set(SHAPES) <= set(SCHEMAS)
