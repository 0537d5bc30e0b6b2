"""Routes under ``/utils/script`` that compile, decompile and estimate scripts.

What lives here: compiling, decompiling, estimating. What does not: running scripts
(``evaluation``), and the scripts of accounts (``account_data``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/utils/UtilsApiRoute.scala``; 0bsnetwork/Zbs
``src/main/scala/com/zbsnetwork/api/http/UtilsApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.json_reader import wrong_json
from soliton.api.json_transactions import MIDDLE, Members
from soliton.api.lookup import is_oldest, node_of
from soliton.api.rest import examples
from soliton.api.route_table import row, table, text_body
from soliton.api.routes import Body, BodyKind
from soliton.api.text_jobs import Compile, Decompile, EstimateText
from soliton.api.translate import OLDEST
from soliton.chain.features import Feature
from soliton.chain.json_kinds import encode_base64
from soliton.chain.json_schemas import shape
from soliton.ledger.scripts import FREE_VERIFIER_COMPLEXITY
from soliton.node.node import Node
from soliton.ride.compiler.directives import (
    ACCOUNT,
    ASSET,
    DAPP,
    EXPRESSION,
)
from soliton.ride.errors import RideError
from soliton.ride.estimators import Estimate
from soliton.ride.estimators.choice import EstimationRules
from soliton.ride.faults import SourceText

_FIRST_DEFAULT: Final = 3


class Compiled(msgspec.Struct, frozen=True, rename="camel"):
    """A compiled script with its complexity and extra fee."""

    script: str
    complexity: int
    extra_fee: int


# --- compiling ------------------------------------------------------------------------------------


async def compile_code(request: Request) -> Members:
    """Compile a source."""
    node = node_of(request)
    compact = request.flag("compact")
    script, numbers = await _compile(request, request.body_text(), compact=compact)
    return {"script": encode_base64(script)} | _costs(node, numbers)


async def compile_with_imports(request: Request) -> Compiled:
    """Compile a source with the libraries that it imports."""
    node, members = node_of(request), request.json()
    source, imports = members.get("script"), members.get("imports", {})
    if not isinstance(source, str) or not isinstance(imports, dict):
        raise wrong_json("expected a text `script` and an object `imports`")
    libraries = {name: text for name, text in imports.items() if isinstance(text, str)}
    if len(libraries) < len(imports):
        raise wrong_json("expected texts in `imports`")
    script, numbers = await _compile(request, source, libraries, with_calls=True)
    return Compiled(encode_base64(script), numbers.verifier, _full_extra_fee(node))


async def compile_old(request: Request) -> Compiled:
    """Compile the source of an account's or an asset's script."""
    node, source = node_of(request), request.body_text()
    kind = ASSET if request.flag("assetScript") else ACCOUNT
    script, numbers = await _compile(
        request, source, default_version=_FIRST_DEFAULT, script_type=kind
    )
    return Compiled(encode_base64(script), numbers.verifier, _full_extra_fee(node))


async def compile_dapp(request: Request) -> Compiled:
    """Compile the source of a dApp, which needs no directives. The complexity is always 0, as in
    the reference.
    """
    node, source = node_of(request), request.body_text()
    script, _ = await _compile(request, source, default_version=_FIRST_DEFAULT, content_type=DAPP)
    return Compiled(encode_base64(script), 0, _full_extra_fee(node))


async def _compile(
    request: Request,
    source: str,
    libraries: dict[str, str] | None = None,
    *,
    compact: bool = False,
    with_calls: bool = False,
    default_version: int | None = None,
    script_type: str | None = None,
    content_type: str | None = None,
) -> tuple[bytes, Estimate]:
    """Compile a source and estimate it by the current rules.

    ``with_calls`` admits scripts of invoke-expression transactions, which no chain accepts yet.
    """
    node = node_of(request)
    rules = _estimation_rules(node)
    work = Compile(
        source,
        rules.current,
        # The reference's newer compilers always use the reduced limit.
        rules.reduced_verifier_limit or node.network.family not in (OLDEST, MIDDLE),
        _default_version(node) if default_version is None else default_version,
        libraries or {},
        compact,
        with_calls,
        script_type,
        content_type,
    )
    try:
        compiled = await request.context.texts.do(work, request.charge)
    except RideError as error:
        raise errors.SCRIPT_COMPILER_ERROR.error(message=str(error)) from error
    if request.context.obeys:
        request.context.sources.remember(compiled.script, SourceText(source, libraries or {}))
    return compiled.script, compiled.numbers


def _default_version(node: Node) -> int:
    rules = node.chain.rules.at(node.chain.height)
    if rules.has(Feature.SYNCHRONOUS_CALLS):
        return 5
    return 4 if rules.has(Feature.RIDE_4_DAPPS) else _FIRST_DEFAULT


def _estimation_rules(node: Node) -> EstimationRules:
    return node.chain.rules.at(node.chain.height).estimation


# --- costs ----------------------------------------------------------------------------------------


def _costs(node: Node, numbers: Estimate) -> Members:
    """The complexities and the extra fee of a script; the oldest generation has fewer members."""
    rules = node.chain.rules.at(node.chain.height)
    free = numbers.verifier <= FREE_VERIFIER_COMPLEXITY and rules.has(Feature.SYNCHRONOUS_CALLS)
    members: Members = {"complexity": numbers.max}
    if not is_oldest(node):
        members["verifierComplexity"] = numbers.verifier
        members["callableComplexities"] = numbers.callables
    members["extraFee"] = 0 if free else rules.fees.script_extra
    return members


def _full_extra_fee(node: Node) -> int:
    return node.chain.rules.at(node.chain.height).fees.script_extra


async def estimate(request: Request) -> Members:
    """The complexities and the extra fee of a compiled script."""
    node, text = node_of(request), request.body_text()
    work = EstimateText(text, _estimation_rules(node))
    try:
        found = await request.context.texts.do(work, request.charge)
    except RideError as error:
        raise errors.SCRIPT_COMPILER_ERROR.error(message=str(error)) from error
    return {"script": text, "scriptText": found.tree} | _costs(node, found.numbers)


# --- decompiling ----------------------------------------------------------------------------------


async def decompile_script(request: Request) -> Members:
    """The source of a compiled script."""
    work = Decompile(request.body_text().strip())
    try:
        found = await request.context.texts.do(work, request.charge)
    except RideError as error:
        raise errors.invalid_request(f"ScriptParseError({error})") from error
    if is_oldest(node_of(request)):
        return {"script": found.source}
    directives: Members = {"STDLIB_VERSION": found.version}
    if found.is_dapp:
        directives |= {"SCRIPT_TYPE": ACCOUNT, "CONTENT_TYPE": DAPP}
    else:
        directives["CONTENT_TYPE"] = EXPRESSION
    return directives | {"script": found.source}


_SOURCE: Final = text_body("The source", examples.RIDE_SOURCE)
_SCRIPT: Final = text_body("A script in base64", examples.RIDE_SCRIPT)
_WITH_IMPORTS: Final = Body(
    BodyKind.JSON_OR_REJECT,
    "The source, and the sources of its imports by name",
    {"script": examples.RIDE_SOURCE, "imports": {}},
    shape(
        "script: string, imports?",
        imports={"type": "object", "additionalProperties": {"type": "string"}},
    ),
)
_COSTS_SCHEMA: Final = shape(
    "script: string, complexity: integer, verifierComplexity?: integer, callableComplexities?, "
    "extraFee: integer",
    callableComplexities={"type": "object", "additionalProperties": {"type": "integer"}},
)
_COSTS: Final = {
    "complexity": 0,
    "verifierComplexity": 0,
    "callableComplexities": {},
    "extraFee": 0,
}
_COMPILED: Final = {"script": examples.RIDE_SCRIPT, "complexity": 0, "extraFee": 400_000}

_DAPP_SOURCE: Final = """{-# STDLIB_VERSION 5 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func send(to: String) = []
"""
_DAPP: Final = (
    "base64:AAIFAAAAAAAAAAcIAhIDCgEIAAAAAAAAAAEAAAABaQEAAAAEc2VuZAAAAAEAAAACdG8FAAAAA25pbAAAAACj"
    "n3Oq"
)

ROUTES: Final = table("utils", """
compact     | boolean | Shorten the names of a dApp | false
assetScript | boolean | The script is for an asset  | false
""",
    row("POST /utils/script/compileCode?compact", compile_code, "Compile a source", _COSTS_SCHEMA,
        {"script": examples.RIDE_SCRIPT} | _COSTS, "SCRIPT_COMPILER_ERROR SERVER_REQUEST_TIMEOUT",
        body=_SOURCE),
    row("POST /utils/script/compileWithImports", compile_with_imports,
        "Compile a source with the libraries that it imports", Compiled, _COMPILED,
        "SCRIPT_COMPILER_ERROR SERVER_REQUEST_TIMEOUT WRONG_JSON",
        body=_WITH_IMPORTS),
    row("POST /utils/script/compile?assetScript", compile_old,
        "Compile a source; compileCode also returns the complexities of functions", Compiled,
        _COMPILED, "SCRIPT_COMPILER_ERROR SERVER_REQUEST_TIMEOUT", body=_SOURCE),
    row("POST /utils/script/compileContract family=zbs", compile_dapp,
        "Compile the source of a dApp", Compiled, {**_COMPILED, "script": _DAPP},
        "SCRIPT_COMPILER_ERROR SERVER_REQUEST_TIMEOUT",
        body=msgspec.structs.replace(_SOURCE, example=_DAPP_SOURCE)),
    row("POST /utils/script/estimate", estimate,
        "The complexities and the extra fee of a compiled script", _COSTS_SCHEMA,
        {"script": examples.RIDE_SCRIPT, "scriptText": "true"} | _COSTS,
        "SCRIPT_COMPILER_ERROR SERVER_REQUEST_TIMEOUT", body=_SCRIPT),
    row("POST /utils/script/decompile", decompile_script, "The source of a compiled script",
        shape("STDLIB_VERSION?: integer, CONTENT_TYPE?: string, SCRIPT_TYPE?: string, "
            "script: string"),
        {"STDLIB_VERSION": 6, "CONTENT_TYPE": EXPRESSION, "script": examples.RIDE_DECOMPILED},
        "CUSTOM_VALIDATION_ERROR SERVER_REQUEST_TIMEOUT", body=_SCRIPT),
    reads="chain",
)  # fmt: skip
