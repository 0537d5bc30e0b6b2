"""Scripts: compiling, and asking dApps without sending anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from soliton.chain.function_calls import FunctionCall, call_json
from soliton.client.errors import NodeBroken, script_refusal
from soliton.client.making import Value, Whom, argument
from soliton.client.records import Compiled, Evaluated
from soliton.client.routes.accounts import address_of
from soliton.client.steps import (
    TEXT,
    UNREADABLE,
    Core,
    Request,
    Steps,
    ask,
    call,
    post,
    query,
    refused,
)

Json = dict[str, Any]


def compile(  # noqa: A001 - it is a method
    core: Core, source: str, *, imports: Mapping[str, str] | None = None, compact: bool = False
) -> Steps[Compiled]:
    """A source compiled, with the libraries that it imports by their names; raises
    ``NodeRefused`` with what is wrong with it.
    """
    if imports is not None:
        body = {"script": source, "imports": dict(imports)}
        return (yield from post(core, "/utils/script/compileWithImports", body, Compiled))
    path = "/utils/script/compileCode" + query(compact=True if compact else None)
    return (yield from ask(core, Request("POST", path, source.encode(), TEXT), Compiled))


def decompile(core: Core, script: str) -> Steps[str]:
    """The source of a compiled script in base64, as far as it can be found again."""
    request = Request("POST", "/utils/script/decompile", script.encode(), TEXT)
    told = yield from ask(core, request, Json)
    return str(told["script"])


def estimate(core: Core, script: str) -> Steps[Compiled]:
    """What a compiled script in base64 costs."""
    request = Request("POST", "/utils/script/estimate", script.encode(), TEXT)
    return ask(core, request, Compiled)


def evaluate(core: Core, dapp: Whom, expression: str, *, trace: bool = False) -> Steps[Evaluated]:
    """What an expression comes to within a dApp, which sees its names: ``balance(user)``; raises
    ``ScriptRefused``.
    """
    return _evaluate(core, dapp, {"expr": expression}, trace)


def evaluate_call(
    core: Core,
    dapp: Whom,
    function: str,
    *arguments: Value,
    sender: Whom | None = None,
    options: Mapping[str, Any] | None = None,
    trace: bool = False,
) -> Steps[Evaluated]:
    """What a call of a dApp's function would come to and change; ``options`` are further members of
    the request (``payment``, ``senderPublicKey``, ``fee``...). Raises ``ScriptRefused``.
    """
    body: Json = {"call": call_json(FunctionCall(function, tuple(map(argument, arguments))))}
    if sender is not None:
        body["sender"] = sender if isinstance(sender, str) else sender.address
    return _evaluate(core, dapp, {**body, **(options or {})}, trace)


def _evaluate(core: Core, dapp: Whom, body: Json, trace: bool) -> Steps[Evaluated]:
    path = f"/utils/script/evaluate/{address_of(dapp)}" + query(trace=True if trace else None)
    headers = (("Content-Type", "application/json"),)
    answer = yield from call(core, Request("POST", path, msgspec.json.encode(body), headers))
    if answer.status != 200:
        raise refused(answer)
    try:
        told = msgspec.json.decode(answer.body, type=dict[str, Any])
        # What fails within the script comes with status 200.
        if "error" in told:
            code, message = told["error"], str(told.get("message", ""))
            raise script_refusal(code, message, status=200, details=told)
        return msgspec.convert(told, Evaluated)
    except UNREADABLE as error:
        raise NodeBroken(f"no answer of a node: {error}") from error
