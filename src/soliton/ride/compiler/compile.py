"""From a source to a script.

What lives here: the one function that everybody calls, and the limits of size. What does not: how
complexity is found (``soliton.ride.estimators``).

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
    Estimate,
    Estimator,
    FullEstimate,
    Place,
    estimate_compiled,
    estimator,
)
from soliton.ride.estimators.choice import check_limits
from soliton.ride.expressions import (
    DEFAULT_FUNCTION,
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
"""The name that an expression that is called has for its invocation."""
FIRST_VERSION_WITH_FUNCTIONS: Final = 3

MakeChecker = Callable[[Source, Library], Checker]
_KINDS: Final = {
    heads.ACCOUNT: ScriptKind.ACCOUNT,
    heads.ASSET: ScriptKind.ASSET,
    heads.CALL: ScriptKind.CALL,
}


class Compiled(msgspec.Struct, frozen=True):
    """A script, what its source said that it is, and its complexity if that was asked for, with
    that of every declaration of a dApp in ``parts``.
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
    """The script of a source; raises ``CompileError``.

    ``libraries`` are the texts of what the source imports, by the names it gives them. ``compact``
    and ``remove_unused`` make dApps smaller and do nothing to expressions. ``check_complexity``
    refuses what no chain with all features would take, by its estimator. ``script_type`` and
    ``content_type`` hold in place of what the source says about that. ``watch`` is called again and
    again while this goes on, and raises to stop it.
    """
    if len(text) > MAX_SOURCE_CHARS:
        raise CompileError(f"the source has more than {MAX_SOURCE_CHARS} characters")
    said = read_directives(text, default_version)
    if script_type is not None:
        said = msgspec.structs.replace(said, script=script_type)
    if content_type is not None:
        said = msgspec.structs.replace(said, content=content_type)
    source = linked(text, said, libraries or {}, watch)
    content: Expression | DApp
    # As in ``compile_content``, without a frame of the stack more.
    with bounded():
        if said.content == heads.DAPP:
            content = _dapp(source, said, Checker, compact=compact, remove_unused=remove_unused)
        else:
            content = _expression(source, said, Checker)
    script = make_script(said.version, content)
    _check_size(script, said)
    if not check_complexity:
        return Compiled(script, said)
    try:
        numbers, parts = estimate_source(script, said, LATEST_ESTIMATOR, watch)
    except RideError as error:
        raise CompileError(str(error), "split it into several functions or calls") from None
    return Compiled(script, said, numbers, parts)


def kind_of(said: Directives) -> ScriptKind:
    """What a script is for, by its directives."""
    return ScriptKind.DAPP if said.content == heads.DAPP else _KINDS[said.script]


def linked(
    text: str,
    said: Directives,
    libraries: Mapping[str, str],
    watch: Callable[[], None] | None = None,
) -> Source:
    """The source with what it imports; raises ``CompileError``."""
    source = link(text, said, libraries, watch)
    if len(source.text) > MAX_SOURCE_CHARS:
        raise CompileError(f"source and libraries have more than {MAX_SOURCE_CHARS} characters")
    return source


def compile_content(
    source: Source,
    said: Directives,
    *,
    checker: MakeChecker,
    remove_unused: bool = False,
) -> Expression | DApp:
    """The tree of a source by a ``checker`` that notes more than it has to; raises
    ``CompileError``.
    """
    with bounded():
        if said.content == heads.DAPP:
            return _dapp(source, said, checker, compact=False, remove_unused=remove_unused)
        return _expression(source, said, checker)


def estimate_source(
    script: Script,
    said: Directives,
    by: Estimator,
    watch: Callable[[], None] | None = None,
    *,
    reduced_verifier_limit: bool = True,
) -> tuple[Estimate, FullEstimate | None]:
    """The complexity of what was compiled, as the reference's compiler tells it; raises
    ``EstimationError`` beyond the limits.

    ``reduced_verifier_limit`` gives verifiers of accounts the limit of their own.
    """
    place = Place.FREE_CALL if said.script == heads.CALL else Place.EXPRESSION
    numbers, parts = estimate_compiled(by, script, place, watch)
    check_limits(script, numbers, reduced_verifier_limit and said.script != heads.ASSET, place)
    if said.content == heads.LIBRARY:
        numbers = Estimate(numbers.max, 0, {})
    return numbers, parts


def compile_value(
    text: str, version: int = heads.LAST_VERSION, *, kind: ScriptKind = ScriptKind.ACCOUNT
) -> tuple[Script, Type]:
    """The script of an expression of any type, without directives, and that type.

    Such a script can be run and is no use on a chain. Raises ``CompileError``.
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
    source: Source, said: Directives, make: MakeChecker, *, compact: bool, remove_unused: bool
) -> DApp:
    checker = make(source, library(said.version, ScriptKind.DAPP))
    dapp = compile_contract(checker, parse_contract(source, said.version))
    if remove_unused:
        dapp = without_unused(dapp)
    return compacted(dapp) if compact else dapp


def _expression(source: Source, said: Directives, make: MakeChecker) -> Expression:
    checker = make(source, library(said.version, _KINDS[said.script]))
    if said.script == heads.CALL:
        return _called_expression(checker, source, said)
    if said.content == heads.LIBRARY:
        text = source.text + "\nunit"
        source = Source(text, source.imported, source.watch, source.libraries)
        checker = make(source, _without_transaction(checker.library))
        return checker.expression(parse_expression(source, said.version)).expression
    result = checker.expression(parse_expression(source, said.version))
    if result.type is not BOOLEAN:
        raise CompileError(
            f"the script gives {result.type.name}, it has to give Boolean",
            "end it with a condition, or begin it with {-# CONTENT_TYPE DAPP #-}",
        )
    if said.version < FIRST_VERSION_WITH_FUNCTIONS and _has_functions(result.expression):
        raise CompileError(
            f"version {said.version} has no functions", "write {-# STDLIB_VERSION 3 #-} or later"
        )
    return result.expression


def _without_transaction(known: Library) -> Library:
    """Declarations that others import do not see the transaction."""
    variables = {name: of for name, of in known.variables.items() if name != "tx"}
    return msgspec.structs.replace(known, variables=variables)


def _called_expression(checker: Checker, source: Source, said: Directives) -> Expression:
    """An expression that gives what a callable function gives."""
    node = parse_expression(source, said.version)
    function = FunctionNode(node.start, node.end, DEFAULT_FUNCTION, (), node)
    binding = ((FREE_CALL_INVOCATION, node.start),)
    annotation = Annotation(node.start, node.end, "Callable", binding)
    whole = ContractNode((), (AnnotatedNode((annotation,), function),), node.end)
    return compile_contract(checker, whole).callables[0].function.body


def _has_functions(expression: Expression) -> bool:
    """Whether a block of the later form comes before the first leaf, level by level: the reference
    looks no further.
    """
    waiting = deque([expression])
    while waiting:
        node = waiting.popleft()
        match node:
            case Block(declaration, body, True):
                assert isinstance(declaration, Let)
                waiting.extend((declaration.value, body))
            case Block():
                return True
            case GetField(subject):
                waiting.append(subject)
            case If(condition, then, otherwise):
                waiting.extend((condition, then, otherwise))
            case Call(_, arguments):
                waiting.extend(arguments)
            case _:
                return False
    return False


def _check_size(script: Script, said: Directives) -> None:
    limit = MAX_EXPRESSION_BYTES
    if said.content == heads.DAPP:
        limit = MAX_DAPP_BYTES
    elif said.script == heads.CALL:
        limit = MAX_CALL_BYTES
    if len(script.source) > limit:
        raise CompileError(
            f"the script has {len(script.source)} bytes, {limit} are allowed",
            "compile with compaction and without unused declarations",
        )
