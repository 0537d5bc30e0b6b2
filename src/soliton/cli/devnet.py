"""``soliton devnet``: the options of a private chain.

What lives here: reading them. What does not: the devnet (``soliton.devnet``), which is imported
when the command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from soliton.cli.logs import log_options
from soliton.cli.quantities import WHOLE, WholeRange
from soliton.cli.ranges import Seconds

if TYPE_CHECKING:
    from soliton.devnet.features import Wanted
    from soliton.devnet.fork.options import ForkOptions
    from soliton.devnet.options import DevnetOptions

_COIN: Final = 10**8
_MOST: Final = 2**63
_MAX_NODES: Final = 16


class _Coins(click.ParamType[int]):
    """A decimal number of coins, converted to the smallest unit."""

    name = "coins"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the amount in the smallest unit."""
        if isinstance(value, int):
            return value * _COIN
        from soliton.client.amounts import units
        from soliton.client.errors import AmountError

        text = str(value)
        try:
            wavelets = units(text)
        except AmountError:
            wavelets = -1
        if not 0 <= wavelets < _MOST:
            self.fail(f"{text[:80]!r} is not a number of coins with at most 8 decimals", param, ctx)
        return wavelets


_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--nodes",
    type=WholeRange(1, _MAX_NODES),
    default=1,
    show_default=True,
    help="Mining nodes, each a process; they communicate over loopback.",
)
@click.option("--accounts", default=10, show_default=True, help="Funded accounts.")
@click.option(
    "--balance", type=_Coins(), default=1_000_000, show_default=True, help="Coins of each account."
)
@click.option(
    "--seed",
    default="soliton devnet account",
    show_default=True,
    help="The seed phrases are this text and a number.",
)
@click.option(
    "--config-out", type=_FILE, help="Write addresses, accounts and keys to this file, as JSON."
)
@click.option("--json", "as_json", is_flag=True, help="Print the same as one line of JSON.")
@click.option(
    "--scenario",
    metavar="NAME|FILE.toml",
    help="The initial state: dex, or a scenario file.",
)
@click.option("--fork", metavar="URL", help="Fork the chain of this node, which is read as needed.")
@click.option(
    "--height", type=WholeRange(min=1), help="With --fork: the block to fork at, not the last."
)
@click.option(
    "--fork-cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --fork: the cache of what was read (default: ~/.cache/soliton/forks).",
)
@click.option(
    "--fork-newer",
    is_flag=True,
    help="With --fork: accept entries that the node has changed since the fork.",
)
@click.option(
    "--features",
    metavar="LIST",
    help="The features that are active, such as 1-14,16 (default: 1-25, or "
    "those of the chain that is kept).",
)
@click.option(
    "--until",
    type=click.Choice(("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")),
    help="The same: those of this version of the reference node.",
)
@click.option(
    "--generation-period",
    type=WholeRange(min=1, max=1_000_000),
    metavar="BLOCKS",
    help="The length of generation periods, to which miners commit (default: 100; with --nodes 5).",
)
@click.option("--no-maker", is_flag=True, help="Disable the scenario's market makers.")
@click.option(
    "--state", type=_FILE, help="Load the chain from this file if it exists; save it at the end."
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the chain here (default: a temporary directory, removed at the end).",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=6869, show_default=True, help="REST API; 0 chooses a free one.")
@click.option(
    "--signer-port", default=6888, show_default=True, help="Signer; 0 chooses a free one."
)
@click.option(
    "--matcher-port", default=6886, show_default=True, help="Matcher; 0 chooses a free one."
)
@click.option(
    "--data-service",
    type=WHOLE,
    metavar="PORT",
    help="Also serve /v0 on this port; 0 chooses a free one.",
)
@click.option(
    "--grpc-port",
    type=WHOLE,
    metavar="PORT",
    help="Also serve the node's gRPC API on this port; 0 chooses a free one.",
)
@click.option(
    "--grpc-updates-port",
    type=WHOLE,
    metavar="PORT",
    help="Also serve BlockchainUpdates on this port; 0 chooses a free one.",
)
@click.option(
    "--block-time",
    type=Seconds(min=0.05, max=86_400),
    help="Seconds between blocks; by default each transaction is mined at once.",
)
@click.option("--no-mining", is_flag=True, help="Generate blocks only on request.")
@click.option(
    "--heartbeat",
    type=Seconds(min=0, max=86_400),
    default=10.0,
    show_default=True,
    help="Seconds without a transaction before an empty block is generated; 0 for never.",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="URL",
    help="Let pages of this origin use the controls under /devnet; may be repeated.",
)
@click.option(
    "--workers",
    type=WholeRange(min=0, max=64),
    default=0,
    show_default=True,
    help="Worker processes that serve the REST API.",
)
@log_options
def devnet(**given: Any) -> None:  # noqa: ANN401 - named and typed by the options above
    """Run a private chain: node, REST API, signer and matcher in one process."""
    options = _options(given)
    if options.nodes > 1:
        from soliton.devnet.several import run_several

        run_several(options)
        return
    from soliton.devnet.main import run_devnet

    run_devnet(options)


def _options(given: dict[str, Any]) -> DevnetOptions:
    from soliton.devnet.accounts import Funding
    from soliton.devnet.options import DevnetOptions, Ports, Rhythm

    return DevnetOptions(
        ports=Ports(
            given["port"],
            given["signer_port"],
            given["matcher_port"],
            given["data_service"],
            given["grpc_port"],
            given["grpc_updates_port"],
        ),
        rhythm=Rhythm(given["block_time"], given["heartbeat"], given["no_mining"]),
        funding=Funding(given["accounts"], given["balance"], given["seed"]),
        host=given["host"],
        origins=given["allow_origin"],
        data_dir=given["data_dir"],
        workers=given["workers"],
        state=given["state"],
        config_out=given["config_out"],
        as_json=given["as_json"],
        nodes=given["nodes"],
        scenario=given["scenario"],
        maker=not given["no_maker"],
        fork=_fork(given),
        wanted=_wanted(given["features"], given["until"], given["generation_period"]),
    )


def _wanted(listed: str | None, until: str | None, period: int | None) -> Wanted:
    from soliton.devnet.features import UNTIL, Wanted, read_features

    if listed is not None and until is not None:
        raise click.UsageError("--features and --until: give one of them")
    features = None if listed is None else read_features(listed)
    return Wanted(features if until is None else UNTIL[until], period)


def _fork(given: dict[str, Any]) -> ForkOptions | None:
    from soliton.devnet.fork.options import ForkOptions

    if given["fork"] is None:
        for name in ("height", "fork_cache", "fork_newer"):
            if given[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} goes with --fork")
        return None
    return ForkOptions(given["fork"], given["height"], given["fork_cache"], given["fork_newer"])
