"""What can go wrong with a script: its bytes, and its run.

What lives here: the errors that reading and running scripts raise. What does not: those of the
compiler and of the estimators; and what a broken run means for a transaction (``soliton.ledger``).

Functions of the library raise ``EvaluationError`` (the usual failure), ``ThrownError``,
``NativeCrash`` or ``InvocationFailed``; the evaluator fills in ``remaining``.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/ExecutionError.scala`` and
``v1/evaluator/EvaluatorV2.scala``.
"""

from __future__ import annotations

from soliton.errors import InputError, SolitonError


class RideError(InputError):
    """Anything wrong with a script."""


class ScriptFormatError(RideError):
    """Bytes that are no script."""


class EvaluationError(RideError):
    """A run that ended in a failure; ``remaining`` is the complexity that was left (it may be
    negative), ``spent`` what was used up, counted from the limit of the run.
    """

    remaining: int = 0
    spent: int = 0

    @property
    def message(self) -> str:
        """What went wrong, in words."""
        return str(self)


class NotCallable(EvaluationError):
    """A call of a function that a dApp does not have, or that takes other arguments."""


class ThrownError(EvaluationError):
    """A failure inside of a few functions (Merkle roots, arguments of invocations) that before the
    light-node feature used up the whole limit, or nothing of it.
    """


class NativeCrash(EvaluationError):
    """A failure that the reference's library did not foresee: an exception of its host. It uses up
    all complexity.
    """


class EvaluationEscaped(EvaluationError):
    """A failure outside of any function that the reference did not foresee (a field that an object
    does not have, an object too heavy to be made): nothing counts as used.
    """


class InvocationFailed(EvaluationError):
    """A call of another dApp that failed; ``cause`` is the error of the ledger when there is one.

    ``remaining`` is set by who raises it: the complexity that the call left over.
    """

    def __init__(self, message: str, remaining: int, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.remaining = remaining
        self.cause = cause


class FailOrReject(EvaluationError):
    """A failure that makes the transaction fail or be rejected by a rule of its own, whatever was
    spent.
    """

    def __init__(self, message: str, remaining: int = 0) -> None:
        super().__init__(message)
        self.remaining = remaining


class ComplexityExceeded(EvaluationError):
    """A run that was stopped because the limit did not suffice; there is no result."""


class Interrupted(SolitonError):
    """A run that its surroundings stopped (see ``Setting.watch``): this says nothing about the
    script.
    """
