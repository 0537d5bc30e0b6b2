"""The library as the evaluator needs it: what a name or a number means in a running script.

What lives here: the records, and how they are put together for a version, a kind of script and a
chain. What does not: the functions themselves (``functions``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/impl/waves/WavesContext.scala``
and ``node/src/main/scala/com/wavesplatform/transaction/smart/BlockchainContext.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import msgspec

from soliton.ride.environment import CallContext
from soliton.ride.expressions import Expression
from soliton.ride.values import Value

Implementation = Callable[[Sequence[Value], CallContext], Value]
Variable = Callable[[CallContext], Value]


class Kind(Enum):
    """What a script belongs to."""

    ACCOUNT = "account"
    ASSET = "asset"
    DAPP = "dapp"
    """Callable functions and verifiers of dApps alike."""


class Native(msgspec.Struct, frozen=True):
    """A function that is called by number; ``name`` is what it is called in sources."""

    name: str
    cost: int
    implementation: Implementation


class Named(msgspec.Struct, frozen=True):
    """A function of the library that is made of others; ``cost`` counts in the newer way only."""

    name: str
    cost: int
    parameters: tuple[str, ...]
    body: Expression


class Library(msgspec.Struct, frozen=True):
    """All that a script of one version and kind can name; ``constructors`` gives the fields of
    types, ``variables`` those that depend on the run, ``constants`` those that do not.
    """

    version: int
    kind: Kind
    chain_id: int
    natives: dict[int, Native]
    named: dict[str, Named]
    constructors: dict[str, tuple[str, ...]]
    constants: dict[str, Value]
    variables: dict[str, Variable]

    @property
    def key(self) -> tuple[int, Kind, int]:
        """What ``load_library`` makes it from."""
        return self.version, self.kind, self.chain_id
