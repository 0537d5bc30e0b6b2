"""Jobs on untrusted texts and scripts, for processes that can be killed.

What lives here: jobs and results as serialisable records, and running a job. What does not: the
processes (``soliton.parallel.killable``), submitting jobs (``texts``), and the responses
(``rest.scripts``, ``rest.evaluation``).
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from soliton.ride import faults
from soliton.ride.compiler.compile import MAX_DAPP_BYTES, compile_source, estimate_source
from soliton.ride.compiler.directives import CALL
from soliton.ride.compiler.fragment import compile_fragment
from soliton.ride.decompiler import decompile
from soliton.ride.errors import RideError, ScriptFormatError
from soliton.ride.estimators import CodeKind, Estimate, Estimator, estimate
from soliton.ride.estimators.choice import EstimationRules, check_limits
from soliton.ride.expressions import DApp
from soliton.ride.faults import SourceText, locate
from soliton.ride.script import parse_script, parse_script_text
from soliton.ride.serialization import write_expression
from soliton.ride.tree_text import tree_text

T_co = TypeVar("T_co", covariant=True)


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The message of a ``RideError``: the text is wrong."""

    message: str


class Compiled(msgspec.Struct, frozen=True, tag=True):
    """A compiled script and its estimate."""

    script: bytes
    numbers: Estimate


class Estimated(msgspec.Struct, frozen=True, tag=True):
    """The estimate of a script, and its tree as the reference prints it."""

    numbers: Estimate
    tree: str


class Decompiled(msgspec.Struct, frozen=True, tag=True):
    """The source of a script, its version, and whether it is a dApp."""

    version: int
    is_dapp: bool
    source: str


class Fragment(msgspec.Struct, frozen=True, tag=True):
    """The bytes of an expression."""

    expression: bytes


class Located(msgspec.Struct, frozen=True, tag=True):
    """Positions of a script's expressions in its source."""

    found: faults.Located


class Work(msgspec.Struct, Generic[T_co], frozen=True, tag=True):
    """A job with a result of type ``T_co``."""


class Compile(Work[Compiled], frozen=True, tag=True):
    """Compile a source and estimate the script. ``with_calls`` admits scripts of invoke-expression
    transactions.
    """

    source: str
    estimator: Estimator
    reduced_verifier_limit: bool
    default_version: int
    libraries: dict[str, str] = {}
    compact: bool = False
    with_calls: bool = False
    script_type: str | None = None
    content_type: str | None = None

    def do(self) -> Compiled:
        """Raises ``RideError``."""
        compiled = compile_source(
            self.source,
            libraries=self.libraries,
            compact=self.compact,
            check_complexity=False,
            default_version=self.default_version,
            script_type=self.script_type,
            content_type=self.content_type,
        )
        directives, script = compiled.directives, compiled.script
        if directives.script == CALL and not self.with_calls:
            raise RideError("Invoke Expression Transaction is not activated yet")
        numbers, _ = estimate_source(
            script, directives, self.estimator, reduced_verifier_limit=self.reduced_verifier_limit
        )
        return Compiled(script.source, numbers)


class EstimateText(Work[Estimated], frozen=True, tag=True):
    """Estimate a script in base64."""

    text: str
    rules: EstimationRules

    def do(self) -> Estimated:
        """Raises ``RideError``."""
        script, rules = parse_script_text(self.text), self.rules
        numbers = estimate(
            rules.current, script, old_verifier=rules.old_verifier, kind=CodeKind.ANY
        )
        check_limits(script, numbers, reduced_verifier_limit=False)
        return Estimated(numbers, tree_text(script))


class Decompile(Work[Decompiled], frozen=True, tag=True):
    """Decompile a script in base64."""

    text: str

    def do(self) -> Decompiled:
        """Raises ``RideError``."""
        script = parse_script_text(self.text)
        return Decompiled(script.version, script.is_dapp, decompile(script))


class CompileFragment(Work[Fragment], frozen=True, tag=True):
    """Compile an expression that may use the definitions of a dApp."""

    source: str
    dapp: bytes

    def do(self) -> Fragment:
        """Raises ``RideError``."""
        script = parse_script(self.dapp)
        if not isinstance(script.content, DApp):
            raise ScriptFormatError("this is no dApp")
        code = compile_fragment(self.source, script.version, script.content)
        expression = write_expression(code, script.version)
        if len(expression) > MAX_DAPP_BYTES:
            raise RideError(f"an expression has at most {MAX_DAPP_BYTES} bytes")
        return Fragment(expression)


class Locate(Work[Located], frozen=True, tag=True):
    """Find expressions of a script, by number, in its source or in its decompiled form."""

    script: bytes
    numbers: tuple[int, ...]
    known: SourceText | None = None

    def do(self) -> Located:
        """Raises ``RideError``."""
        return Located(locate(self.script, self.numbers, self.known))


AnyWork = Compile | EstimateText | Decompile | CompileFragment | Locate
AnyResult = Compiled | Estimated | Decompiled | Fragment | Located | Refused
encode_work: Final = msgspec.msgpack.Encoder().encode
decode_result: Final = msgspec.msgpack.Decoder(AnyResult).decode
_decode_work: Final = msgspec.msgpack.Decoder(AnyWork).decode
_encode_result: Final = msgspec.msgpack.Encoder().encode


def answer(request: bytes) -> bytes:
    """Run an encoded job and return its encoded result."""
    return _encode_result(_run(_decode_work(request)))


def _run(work: AnyWork) -> AnyResult:
    try:
        return work.do()
    except RideError as error:
        return Refused(str(error))
    except RecursionError:
        return Refused("this is nested too deeply")
