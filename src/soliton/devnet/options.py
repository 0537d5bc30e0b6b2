"""The options of a private chain.

What lives here: the records, and conflicts between options. What does not: the command line
(``soliton.cli``), and their effects (``main``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.controls.mining import MANUAL, MiningMode
from soliton.devnet.accounts import Funding
from soliton.devnet.features import Wanted
from soliton.devnet.fork.options import ForkOptions
from soliton.errors import InputError

API_KEY: Final = "waves-private-node"


class OptionsRefused(InputError):
    """Options that conflict."""


class Ports(NamedTuple):
    """The ports of the parts; 0 for a free one, ``None`` to leave a part out."""

    node: int
    signer: int
    matcher: int
    data_service: int | None = None
    grpc: int | None = None
    grpc_updates: int | None = None


class Rhythm(NamedTuple):
    """When blocks are generated: every ``block_time`` seconds or, without it, for each transaction
    and after ``heartbeat`` seconds without one (0: only for transactions); only on request if it is
    ``manual``.
    """

    block_time: float | None
    heartbeat: float
    manual: bool = False

    def mode(self) -> MiningMode:
        """Return the mode of the chain's controls; raises ``OptionsRefused``."""
        if self.manual:
            if self.block_time is not None:
                raise OptionsRefused("--no-mining and --block-time: cannot be combined")
            return MANUAL
        if self.block_time is None:
            return MiningMode("instant", self.heartbeat)
        return MiningMode("interval", self.block_time)


class DevnetOptions(msgspec.Struct, frozen=True):
    """All options of a devnet of ``nodes`` nodes.

    Without ``data_dir`` the chain is in a temporary directory; ``state`` is a file that is loaded
    at the start, if it exists, and saved at the end.
    """

    ports: Ports
    rhythm: Rhythm
    funding: Funding = Funding()
    host: str = "127.0.0.1"
    origins: tuple[str, ...] = ()
    """Origins of pages that may use the controls, besides those of this machine."""
    data_dir: Path | None = None
    workers: int = 0
    state: Path | None = None
    config_out: Path | None = None
    as_json: bool = False
    nodes: int = 1
    scenario: str | None = None
    maker: bool = True
    fork: ForkOptions | None = None
    wanted: Wanted = Wanted()
    """The features that are active from the first block, and the length of generation periods."""

    def check(self) -> None:
        """Raise ``OptionsRefused`` for options that conflict."""
        self.rhythm.mode()
        if self.state is not None and self.data_dir is not None:
            raise OptionsRefused(
                "--state and --data-dir: the chain is kept in a file or in a directory"
            )
        if self.scenario is not None and self.data_dir is not None:
            raise OptionsRefused(
                "--scenario and --data-dir: a scenario begins with an empty chain; --state keeps it"
            )
        if self.fork is not None:
            self._check_fork()

    def _check_fork(self) -> None:
        others = {
            "--nodes": self.nodes > 1,
            "--workers": self.workers > 0,
            "--data-dir": self.data_dir is not None,
            "--state": self.state is not None,
            "--scenario": self.scenario is not None,
            "--features": self.wanted.features is not None,
            "--generation-period": self.wanted.generation_period is not None,
            "--grpc-port": self.ports.grpc is not None,
            "--grpc-updates-port": self.ports.grpc_updates is not None,
        }
        for option in [name for name, is_given in others.items() if is_given]:
            raise OptionsRefused(f"--fork and {option}: a fork is one process, and begins anew")


def mining_text(mode: MiningMode) -> str:
    """Describe when blocks are generated."""
    if mode.mode == "manual":
        return "a block when somebody asks for it"
    if mode.mode == "interval":
        return f"a block every {mode.seconds:g} s"
    if not mode.seconds:
        return "a block for each transaction"
    return f"a block for each transaction, and after {mode.seconds:g} s without one"
