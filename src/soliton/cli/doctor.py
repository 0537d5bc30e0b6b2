"""``soliton doctor``: what is wrong with a node and its machine, and what to do.

What lives here: options, the order of checks, output. What does not: the checks (``diagnosis``,
``diagnosis_of_nodes``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from soliton.cli.helping import printable
from soliton.cli.ranges import Seconds

if TYPE_CHECKING:
    from soliton.cli.diagnosis import Finding
    from soliton.client.node import Node
    from soliton.node.settings import Settings

_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared only
_STATE_CHARS: Final = 8


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The node's configuration file.",
)
@click.option("--network", help="A preset such as waves-mainnet or devnet.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="The node's data directory.",
)
@click.option("--node", metavar="URL", help="The running node (default: that of the settings).")
@click.option(
    "--against", multiple=True, metavar="URL", help="Compare the chain with that of another node."
)
@click.option("--api-key", envvar="SOLITON_API_KEY", help="The API key, or SOLITON_API_KEY.")
@click.option("--offline", is_flag=True, help="Ask no time server and no peers.")
@click.option(
    "--timeout",
    type=Seconds(0.1, 600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of an answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    node: str | None,
    against: tuple[str, ...],
    api_key: str | None,
    offline: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Check a node and its machine, and say what to do.

    Settings, clock, disk, limits, ports, files with keys, API key, peers, features that this
    version lacks, forks. Exits with code 1 if there is a fault.
    """
    from soliton.client.node import Node

    found = []
    with ExitStack() as stack:

        def opened(url: str) -> Node:
            made = Node(url, api_key=api_key, timeout=timeout, retries=1)
            return stack.enter_context(made)

        others = [opened(url) for url in against]
        findings = _findings(config, network, data_dir, node, others, api_key, opened, offline)
        for each in findings:
            found.append(each)
            if not as_json:
                _print(each)
    faults, warnings = (sum(each.state == state for each in found) for state in _COUNTED)
    if as_json:
        shown = {"faults": faults, "warnings": warnings, "findings": msgspec.to_builtins(found)}
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    else:
        click.echo(f"{len(found)} checks: {faults} faults, {warnings} warnings")
    if faults:
        sys.exit(1)


_COUNTED: Final = ("fault", "warning")


def _print(found: Finding) -> None:
    state = click.style(found.state.ljust(_STATE_CHARS), fg=_COLOURS.get(found.state))
    click.echo(f"{state} {printable(found.check)}: {printable(found.text)}")
    if found.advice:
        click.echo(f"{'':{_STATE_CHARS}} -> {printable(found.advice)}")


_COLOURS: Final = {"ok": "green", "warning": "yellow", "fault": "red"}


def _findings(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    node_url: str | None,
    others: list[Node],
    api_key: str | None,
    opened: Callable[[str], Node],
    offline: bool,
) -> Iterator[Finding]:
    from soliton.cli import diagnosis, diagnosis_of_nodes
    from soliton.cli.start_checks import listeners
    from soliton.node.versions import interface_version

    settings, findings = _settings(config, network, data_dir)
    yield from findings
    if settings is None:
        return
    yield from diagnosis.versions(settings)
    yield from diagnosis.clock(settings, offline=offline)
    yield from diagnosis.disk(settings)
    yield from diagnosis.files()
    url = node_url or _url_of(settings)
    node = None if url is None else opened(url)
    runs = node is not None and _answers(node)
    is_chosen = (config, network) != (None, None)
    if is_chosen:
        yield from diagnosis.ports(listeners(settings), runs=runs)
    yield from diagnosis.secret_files(settings, config)
    yield from diagnosis.api_key(settings, api_key)
    attempt = diagnosis_of_nodes.attempt
    expected = settings.network.chain_id if is_chosen else None
    if node is not None and runs:
        yield from attempt("node", diagnosis_of_nodes.readiness(node, expected))
        if settings.peers.enable:
            own = interface_version(settings.network.family)
            known = settings.peers.known_peers
            yield from attempt("peers", diagnosis_of_nodes.peers_of(node, own, known))
    else:
        where = "" if url is None else f" at {url}"
        options = {"--config": config, "--network": network, "--data-dir": data_dir}
        given = "".join(f" {name} {value}" for name, value in options.items() if value is not None)
        advice = f"start it: soliton run{given}"
        state = diagnosis.NOTE if node_url is None else diagnosis.FAULT
        yield diagnosis.Finding("node", state, f"none answers{where}", advice)
        if settings.peers.enable and not offline:
            yield from diagnosis_of_nodes.dial_known(settings.peers.known_peers)
    source = node if node is not None and runs else next(iter(others), None)
    if source is not None:
        block_ms = settings.network.genesis.average_block_delay_ms
        yield from attempt("features", diagnosis_of_nodes.features(source, block_ms))
    for other in others:
        yield from attempt("clock", diagnosis_of_nodes.clock_against(other))
    yield from attempt("chain", _forks(settings, node if runs else None, others))


def _forks(settings: Settings, node: Node | None, others: list[Node]) -> Iterator[Finding]:
    from soliton.cli.comparing import NodeSide
    from soliton.cli.diagnosis import NOTE, Finding
    from soliton.cli.diagnosis_of_nodes import fork, stored_side

    if not others:
        yield Finding("chain", NOTE, "compared with no other", "--against URL compares it")
        return
    pairs = zip(others, [*others[1:], None], strict=True)
    if node is not None:
        for other, third in pairs:
            yield from fork(NodeSide(node), other, third)
        return
    with stored_side(settings) as side:
        if side is None:
            yield Finding("chain", NOTE, f"there is none in {settings.data_directory}")
            return
        for other, third in pairs:
            yield from fork(side, other, third)


def _answers(node: Node) -> bool:
    from soliton.client.errors import ClientError

    try:
        node.height()
    except ClientError:
        return False
    return True


def _url_of(settings: Settings) -> str | None:
    """The URL of the node of the settings on this machine, ``None`` if it has no known port."""
    from soliton.web.ports import url_of

    rest = settings.rest_api
    if not rest.enable or not rest.port:
        return None
    host = "127.0.0.1" if rest.bind_address in _ANY_ADDRESS else rest.bind_address
    return url_of(host, rest.port)


def _settings(
    config: Path | None, network: str | None, data_dir: Path | None
) -> tuple[Settings | None, list[Finding]]:
    """The settings, ``None`` if they cannot be read, and what is wrong with them."""
    from soliton.cli.config_reports import examine
    from soliton.cli.diagnosis import FAULT, NOTE, OK, WARNING, Finding
    from soliton.errors import SolitonError
    from soliton.node.settings import load_settings

    findings = []
    if config is not None:
        found = examine(config, network)
        edit = "edit the file; soliton config explain KEY says what a setting means"
        findings = [Finding("settings", FAULT, text, edit) for text in found.problems]
        findings += [Finding("settings", WARNING, text, edit) for text in found.notes]
    try:
        settings = load_settings(config, network, data_dir=data_dir)
    except SolitonError as error:
        if not findings:
            findings.append(Finding("settings", FAULT, str(error), "check the options"))
        return None, findings
    if config is None:
        text = f"defaults of {settings.network.name}"
        findings.append(Finding("settings", NOTE, text, "--config FILE checks the node's own"))
    elif not findings:
        findings.append(Finding("settings", OK, f"{config}: {settings.network.name}"))
    return settings, findings
