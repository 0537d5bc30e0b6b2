"""Compilation of a source to a script.

What lives here: the compiler's entry points, and limits of size. What does not: the calculation of
complexity (``soliton.ride.estimators``).

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/API.scala`` and
``v1/BaseGlobal.scala``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from soliton.ride.compiler import directives as heads
from soliton.ride.compiler.checker import Checker
from soliton.ride.compiler.compaction import compacted, without_unused
from soliton.ride.compiler.contract import compile_contract
from soliton.ride.compiler.directives import Directives, link, read_directives
from soliton.ride.compiler.errors import CompileError, Source, bounded
from soliton.ride.compiler.library import Library, ScriptKind, library
from soliton.ride.compiler.parser import parse_contract, parse_expression
from soliton.ride.compiler.syntax import AnnotatedNode, Annotation, ContractNode, FunctionNode
from soliton.ride.errors import RideError
from soliton.ride.estimators import (
    CodeKind,
    Estimate,
    Estimator,
    FullEstimate,
    estimate_compiled,
    estimator,
)
from soliton.ride.estimators.choice import check_limits
from soliton.ride.expressions import (
    DEFAULT_FUNCTION,
    LAST_VERSION,
    Block,
    Call,
    DApp,
    Expression,
    GetField,
    If,
    Let,
)
from soliton.ride.script import Script, make_script
from soliton.ride.types import BOOLEAN, Type

MAX_SOURCE_CHARS: Final = 1_000_000
MAX_EXPRESSION_BYTES: Final = 8_192
MAX_CALL_BYTES: Final = 32_768
MAX_DAPP_BYTES: Final = 163_840
LATEST_ESTIMATOR: Final = estimator(4, let_fixes=True)
FREE_CALL_INVOCATION: Final = "i"
"""The name of the invocation in a called expression."""
FIRST_VERSION_WITH_FUNCTIONS: Final = 3

MakeChecker = Callable[[Source, Library], Checker]
_KINDS: Final = {
    heads.ACCOUNT: ScriptKind.ACCOUNT,
    heads.ASSET: ScriptKind.ASSET,
    heads.CALL: ScriptKind.CALL,
}


class Compiled(msgspec.Struct, frozen=True):
    """A script, the directives of its source, and its complexity if that was checked. ``parts`` has
    the complexity of every declaration of a dApp.
    """

    script: Script
    directives: Directives
    estimate: Estimate | None = None
    parts: FullEstimate | None = None


def compile_source(
    text: str,
    *,
    libraries: Mapping[str, str] | None = None,
    compact: bool = False,
    remove_unused: bool = False,
    check_complexity: bool = True,
    default_version: int = heads.DEFAULT_VERSION,
    script_type: str | None = None,
    content_type: str | None = None,
    watch: Callable[[], None] | None = None,
) -> Compiled:
    """Compile a source; raise ``CompileError`` if it has a fault.

    ``libraries`` has the texts of the imported libraries, by the names in the source. ``compact``
    and ``remove_unused`` apply to dApps only. ``check_complexity`` enforces the limits of a chain
    with all features active, with its estimator. ``script_type`` and ``content_type`` override the
    directives of the source. ``watch`` is called repeatedly, and may raise to cancel.
    """
    if len(text) > MAX_SOURCE_CHARS:
        raise CompileError(f"the source has more than {MAX_SOURCE_CHARS} characters")
    directives = read_directives(text, default_version)
    if script_type is not None:
        directives = msgspec.structs.replace(directives, script=script_type)
    if content_type is not None:
        directives = msgspec.structs.replace(directives, content=content_type)
    source = linked(text, directives, libraries or {}, watch)
    content: Expression | DApp
    # Not ``compile_content``: its stack frame would count towards the recursion limit.
    with bounded():
        if directives.content == heads.DAPP:
            content = _dapp(
                source, directives, Checker, compact=compact, remove_unused=remove_unused
            )
        else:
            content = _expression(source, directives, Checker)
    script = make_script(directives.version, content)
    _check_size(script, directives)
    if not check_complexity:
        return Compiled(script, directives)
    try:
        numbers, parts = estimate_source(script, directives, LATEST_ESTIMATOR, watch)
    except RideError as error:
        raise CompileError(str(error), "split it into several functions or calls") from None
    return Compiled(script, directives, numbers, parts)


def kind_of(directives: Directives) -> ScriptKind:
    """Return the kind of a script by its directives."""
    return ScriptKind.DAPP if directives.content == heads.DAPP else _KINDS[directives.script]


def linked(
    text: str,
    directives: Directives,
    libraries: Mapping[str, str],
    watch: Callable[[], None] | None = None,
) -> Source:
    """Return the source with its imported libraries; raise ``CompileError`` if one is missing."""
    source = link(text, directives, libraries, watch)
    if len(source.text) > MAX_SOURCE_CHARS:
        raise CompileError(f"source and libraries have more than {MAX_SOURCE_CHARS} characters")
    return source


def compile_content(
    source: Source,
    directives: Directives,
    *,
    checker: MakeChecker,
    remove_unused: bool = False,
) -> Expression | DApp:
    """Compile a source with a custom ``checker``; raise ``CompileError`` for a fault."""
    with bounded():
        if directives.content == heads.DAPP:
            return _dapp(source, directives, checker, compact=False, remove_unused=remove_unused)
        return _expression(source, directives, checker)


def estimate_source(
    script: Script,
    directives: Directives,
    by: Estimator,
    watch: Callable[[], None] | None = None,
    *,
    reduced_verifier_limit: bool = True,
) -> tuple[Estimate, FullEstimate | None]:
    """Return the complexity that the reference's compiler reports; raise ``EstimationError`` beyond
    the limits.

    ``reduced_verifier_limit`` applies the lower limit of account verifiers.
    """
    kind = CodeKind.FREE_CALL if directives.script == heads.CALL else CodeKind.EXPRESSION
    numbers, parts = estimate_compiled(by, script, kind, watch)
    check_limits(script, numbers, reduced_verifier_limit and directives.script != heads.ASSET, kind)
    if directives.content == heads.LIBRARY:
        numbers = Estimate(numbers.max, 0, {})
    return numbers, parts


def compile_value(
    text: str, version: int = LAST_VERSION, *, kind: ScriptKind = ScriptKind.ACCOUNT
) -> tuple[Script, Type]:
    """Compile an expression of any type, without directives; return the script and the type.

    The script can be evaluated but is not valid on a chain. Raises ``CompileError``.
    """
    if len(text) > MAX_SOURCE_CHARS:
        raise CompileError(f"the source has more than {MAX_SOURCE_CHARS} characters")
    source = Source(text)
    with bounded():
        result = Checker(source, library(version, kind)).expression(
            parse_expression(source, version)
        )
    return make_script(version, result.expression), result.type


def _dapp(
    source: Source, directives: Directives, make: MakeChecker, *, compact: bool, remove_unused: bool
) -> DApp:
    checker = make(source, library(directives.version, ScriptKind.DAPP))
    dapp = compile_contract(checker, parse_contract(source, directives.version))
    if remove_unused:
        dapp = without_unused(dapp)
    return compacted(dapp) if compact else dapp


def _expression(source: Source, directives: Directives, make: MakeChecker) -> Expression:
    checker = make(source, library(directives.version, _KINDS[directives.script]))
    if directives.script == heads.CALL:
        return _called_expression(checker, source, directives)
    if directives.content == heads.LIBRARY:
        text = source.text + "\nunit"
        source = Source(text, source.imported, source.watch, source.libraries)
        checker = make(source, _without_transaction(checker.library))
        return checker.expression(parse_expression(source, directives.version)).expression
    result = checker.expression(parse_expression(source, directives.version))
    if result.type is not BOOLEAN:
        raise CompileError(
            f"the script gives {result.type.name}, it has to give Boolean",
            "end it with a condition, or begin it with {-# CONTENT_TYPE DAPP #-}",
        )
    if directives.version < FIRST_VERSION_WITH_FUNCTIONS and _has_functions(result.expression):
        raise CompileError(
            f"version {directives.version} has no functions",
            "write {-# STDLIB_VERSION 3 #-} or later",
        )
    return result.expression


def _without_transaction(known: Library) -> Library:
    """Return the library without ``tx``, which imported declarations cannot use."""
    variables = {name: of for name, of in known.variables.items() if name != "tx"}
    return msgspec.structs.replace(known, variables=variables)


def _called_expression(checker: Checker, source: Source, directives: Directives) -> Expression:
    """Compile an expression as the body of a callable function."""
    node = parse_expression(source, directives.version)
    function = FunctionNode(node.start, node.end, DEFAULT_FUNCTION, (), node)
    binding = ((FREE_CALL_INVOCATION, node.start),)
    annotation = Annotation(node.start, node.end, "Callable", binding)
    whole = ContractNode((), (AnnotatedNode((annotation,), function),), node.end)
    return compile_contract(checker, whole).callables[0].function.body


def _has_functions(expression: Expression) -> bool:
    """Whether a block of the later form comes before the first leaf, breadth first. Like the
    reference, this stops at the first leaf.
    """
    pending = deque([expression])
    while pending:
        node = pending.popleft()
        match node:
            case Block(declaration, body, True):
                assert isinstance(declaration, Let)
                pending.extend((declaration.value, body))
            case Block():
                return True
            case GetField(subject):
                pending.append(subject)
            case If(condition, then, otherwise):
                pending.extend((condition, then, otherwise))
            case Call(_, arguments):
                pending.extend(arguments)
            case _:
                return False
    return False


def _check_size(script: Script, directives: Directives) -> None:
    limit = MAX_EXPRESSION_BYTES
    if directives.content == heads.DAPP:
        limit = MAX_DAPP_BYTES
    elif directives.script == heads.CALL:
        limit = MAX_CALL_BYTES
    if len(script.source) > limit:
        raise CompileError(
            f"the script has {len(script.source)} bytes, {limit} are allowed",
            "compile with compaction and without unused declarations",
        )
