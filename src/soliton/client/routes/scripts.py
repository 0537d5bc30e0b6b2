"""Routes about scripts: compiling, and evaluating without sending a transaction."""

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
    JSON,
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
    """Compile a source, with the sources that it imports by name; raises ``NodeRefused`` with the
    compiler's error.
    """
    if imports is not None:
        body = {"script": source, "imports": dict(imports)}
        return (yield from post(core, "/utils/script/compileWithImports", body, Compiled))
    path = "/utils/script/compileCode" + query(compact=True if compact else None)
    return (yield from ask(core, Request("POST", path, source.encode(), TEXT), Compiled))


def decompile(core: Core, script: str) -> Steps[str]:
    """Decompile a script in base64."""
    request = Request("POST", "/utils/script/decompile", script.encode(), TEXT)
    reply = yield from ask(core, request, Json)
    return str(reply["script"])


def estimate(core: Core, script: str) -> Steps[Compiled]:
    """The complexity of a compiled script in base64."""
    request = Request("POST", "/utils/script/estimate", script.encode(), TEXT)
    return ask(core, request, Compiled)


def evaluate(core: Core, dapp: Whom, expression: str, *, trace: bool = False) -> Steps[Evaluated]:
    """Evaluate an expression in the scope of a dApp's script: ``balance(user)``; raises
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
    """Evaluate a call of a dApp's function: its result and its effects. ``options`` are further
    members of the request (``payment``, ``senderPublicKey``, ``fee``...). Raises ``ScriptRefused``.
    """
    body: Json = {"call": call_json(FunctionCall(function, tuple(map(argument, arguments))))}
    if sender is not None:
        body["sender"] = sender if isinstance(sender, str) else sender.address
    return _evaluate(core, dapp, {**body, **(options or {})}, trace)


def _evaluate(core: Core, dapp: Whom, body: Json, trace: bool) -> Steps[Evaluated]:
    path = f"/utils/script/evaluate/{address_of(dapp)}" + query(trace=True if trace else None)
    answer = yield from call(core, Request("POST", path, msgspec.json.encode(body), JSON))
    if answer.status != 200:
        raise refused(answer)
    try:
        reply = msgspec.json.decode(answer.body, type=dict[str, Any])
        # A failure within the script has status 200.
        if "error" in reply:
            code, message = reply["error"], str(reply.get("message", ""))
            raise script_refusal(code, message, status=200, details=reply)
        return msgspec.convert(reply, Evaluated)
    except UNREADABLE as error:
        raise NodeBroken(f"invalid response from the node: {error}") from error
