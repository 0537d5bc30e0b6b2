"""``POST /devnet/record``: the steps of a transaction's scripts, for a debugger.

What lives here: running a confirmed or a new transaction with an observer. What does not: the
record (``soliton.ride.recording``), and the row (``devnet``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import node_of, transaction_id
from soliton.api.rest import examples
from soliton.api.rest.pending import next_block
from soliton.api.rest.simulation import read_transaction
from soliton.api.route_table import json_body
from soliton.api.translate import refusal, state_refusal
from soliton.chain.json_schemas import list_of, shape
from soliton.chain.transactions.model import AnyTransaction
from soliton.controls.control import Controls
from soliton.controls.errors import ControlRefused
from soliton.controls.recording import observe_again
from soliton.errors import SolitonError
from soliton.ledger.transactions import apply_transaction, refuse_failure
from soliton.node.node import Node
from soliton.ride.errors import RideError
from soliton.ride.faults import SourceText
from soliton.ride.observation import Observer
from soliton.ride.recording import Recording, recording
from soliton.ride.script import parse_script_text
from soliton.ride.source_map import map_known_source
from soliton.storage.errors import NotBelow


def record(request: Request, controls: Controls) -> Recording:
    """Replay a confirmed transaction, or run a new one, and return every step."""
    node, body = node_of(request), request.json()
    name, new = body.get("id"), body.get("transaction")
    observer = Observer(record=True)
    if isinstance(name, str) and new is None:
        try:
            error = observe_again(controls.chain, transaction_id(name, node), observer)
        except ControlRefused as problem:
            raise errors.invalid_request(str(problem)) from problem
    elif isinstance(new, dict) and name is None:
        try:
            transaction, signed = read_transaction(node, new)
        except SolitonError as problem:
            raise refusal(problem, node.network.family) from problem
        error = _observe(node, transaction, observer, signed=signed)
    else:
        raise errors.invalid_request("one of: `id` of a transaction, `transaction`")
    return recording(observer, request.context.sources, error)


def remember(request: Request) -> bool:
    """Remember the source of a script; False if it does not compile to the script."""
    body = request.json()
    script, source, imports = body.get("script"), body.get("source"), body.get("imports", {})
    if not isinstance(script, str) or not isinstance(source, str) or not isinstance(imports, dict):
        raise errors.invalid_request("`script` and `source` are texts, `imports` an object")
    file = body.get("name")
    libraries = {name: str(text) for name, text in imports.items()}
    known = SourceText(source, libraries, file if isinstance(file, str) else "")
    try:
        parsed = parse_script_text(script)
    except RideError as problem:
        raise errors.invalid_request(f"`script`: {problem}") from problem
    fits = map_known_source(parsed, known.text, known.libraries) is not None
    if fits:
        request.context.sources.remember(parsed.source, known)
    return fits


def _observe(node: Node, transaction: AnyTransaction, observer: Observer, *, signed: bool) -> str:
    """Run a transaction after those of the pool; return its error, or an empty string."""
    context = next_block(node.chain, node.clock())
    context = msgspec.structs.replace(context, observer=observer, draft=not signed)
    try:
        applied = apply_transaction(
            transaction, node.pool.state(), context, verify_signature=signed
        )
        refuse_failure(applied)
    except NotBelow:
        raise
    except SolitonError as problem:
        return state_refusal(problem, transaction, node.network.family).message
    return ""


BODY: Final = json_body(
    "The `id` of a confirmed transaction, or a `transaction`, signed or not, as for "
    "`/transactions/simulate`",
    {"transaction": examples.FEE_REQUEST},
    shape("id?: string, transaction?: object"),
)
SOURCE_BODY: Final = json_body(
    "A script in base64, its source, the sources of its imports by name, and the `name` of its "
    "file",
    {"script": examples.RIDE_SCRIPT, "source": examples.RIDE_SOURCE},
    shape("script: string, source: string, imports?: object, name?: string"),
)
SCHEMA: Final = shape(
    "scripts, names, steps, error?: string, fault?: object, truncated?: boolean",
    scripts=list_of(shape("script: string, source: string, files?: object, name?: string")),
    names=list_of(shape("name: string, value: string")),
    steps=list_of(
        shape(
            "script: integer, depth: integer, function: string, line: integer, column: integer, "
            "endLine: integer, endColumn: integer, file?: string, value?: string, "
            "names?: integer[], parent?: integer"
        )
    ),
)
EXAMPLE: Final = {
    "scripts": [{"script": examples.ADDRESS, "source": "known", "files": {"": "height > 3"}}],
    "names": [],
    "steps": [
        {
            "script": 0,
            "depth": 0,
            "function": "",
            "line": 1,
            "column": 1,
            "endLine": 1,
            "endColumn": 11,
            "value": "true",
        }
    ],
}
