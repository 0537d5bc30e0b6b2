"""The errors of parsing and evaluating scripts.

What does not live here: the errors of the compiler and the estimators, and the effect of a failed
run on a transaction (``soliton.ledger``).

Library functions raise ``EvaluationError`` (the usual failure), ``ThrownError``, ``NativeCrash`` or
``InvocationFailed``; the evaluator sets ``remaining``.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/ExecutionError.scala`` and
``v1/evaluator/EvaluatorV2.scala``.
"""

from __future__ import annotations

from soliton.errors import InputError, SolitonError


class RideError(InputError):
    """The base of all errors of scripts."""


class ScriptFormatError(RideError):
    """The bytes are no valid script."""


class EvaluationError(RideError):
    """A run failed. ``remaining`` is the remaining complexity, which may be negative; ``spent`` is
    the limit of the run minus that.
    """

    remaining: int = 0
    spent: int = 0

    @property
    def message(self) -> str:
        """The error message."""
        return str(self)


class NotCallable(EvaluationError):
    """The dApp has no such function, or it takes another number of arguments."""


class ThrownError(EvaluationError):
    """A few functions failed (Merkle roots, arguments of invocations). Before the light-node
    feature, this used up the whole limit, or nothing of it.
    """


class NativeCrash(EvaluationError):
    """A failure that is an unexpected JVM exception in the reference; it uses up all complexity."""


class EvaluationEscaped(EvaluationError):
    """A failure outside of functions that is unexpected in the reference, such as a missing field
    or an object that is too heavy; it uses no complexity.
    """


class InvocationFailed(EvaluationError):
    """A call of another dApp failed. ``cause`` is the ledger's error, if any; ``remaining`` is the
    complexity after the call.
    """

    def __init__(self, message: str, remaining: int, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.remaining = remaining
        self.cause = cause


class FailOrReject(EvaluationError):
    """A failure for which a rule of its own, not the complexity spent, decides whether the
    transaction fails or is rejected.
    """

    def __init__(self, message: str, remaining: int = 0) -> None:
        super().__init__(message)
        self.remaining = remaining


class ComplexityExceeded(EvaluationError):
    """The run exceeded its complexity limit."""


class Interrupted(SolitonError):
    """The run was cancelled (see ``Setting.watch``), for no reason in the script."""
