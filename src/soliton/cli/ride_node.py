"""``soliton ride deploy``, ``invoke``, ``trace`` and ``debug``: scripts on a node.

What lives here: options and printing. What does not: the work (``soliton.workshop``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soliton.cli.quantities import WholeRange
from soliton.cli.ride import SOURCE, libraries_of, reporting_errors, ride, source_text
from soliton.cli.signing_key import read_chain_id, read_keys, signing_options
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.ride.faults import SourceText
    from soliton.ride.recording import Recording
    from soliton.workshop.remote import Remote
    from soliton.workshop.sending import LocalFiles

group = ride
"""The commands, those of ``soliton.cli.ride`` among them."""
_NODE = click.option(
    "--node", "url", default="http://127.0.0.1:6869", show_default=True, help="The node."
)
_SOURCES = click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A source file: errors and steps show its lines if a script was compiled from it.",
)
_FEE = click.option("--fee", type=WholeRange(min=1), help="Default: what the node requires.")
_MAX_FEE = click.option(
    "--max-fee",
    type=WholeRange(min=1),
    help="The limit on that. Default: twice the minimum of the network's rules.",
)
_CHAIN = click.option(
    "--chain-id", help="The chain to sign for, a letter or number; required for a remote node."
)


@ride.command()
@SOURCE
@_NODE
@signing_options
@_CHAIN
@_FEE
@_MAX_FEE
@click.option("--compact", is_flag=True, help="Shorten the names of a dApp's declarations.")
@click.option("--remove-unused", is_flag=True, help="Leave out a dApp's unused declarations.")
def deploy(
    source: Path,
    url: str,
    account: int | None,
    key: str | None,
    store: Path,
    password_file: Path | None,
    chain_id: str | None,
    fee: int | None,
    max_fee: int | None,
    compact: bool,
    remove_unused: bool,
) -> None:
    """Compile SOURCE and set it as the script of an account.

    The signing key: --key, --account, or the seed phrase in SOLITON_SEED.
    """
    from soliton.chain.addresses import address_text
    from soliton.chain.json_kinds import encode_base64
    from soliton.ride.compiler import compile_source
    from soliton.ride.faults import SourceText
    from soliton.workshop.remote import Remote
    from soliton.workshop.sending import Sender, remember_source, send

    text = source_text(source)
    known = SourceText(text, libraries_of(source, text), source.name)
    with reporting_errors(source):
        compiled = compile_source(
            known.text, libraries=known.libraries, compact=compact, remove_unused=remove_unused
        )
    keys = read_keys(account, key, store, password_file)
    with Remote(url) as remote, _printing_faults(remote, {source: known}):
        sender = Sender(remote, keys, chain_id=read_chain_id(chain_id), max_fee=max_fee)
        script = compiled.script.source
        sent = send(remote, sender.set_script(script, fee))
        remember_source(remote, encode_base64(script), known)
        click.echo(f"{address_text(sender.address)} has {source}: {len(script)} bytes")
        click.echo(f"transaction {sent['id']} at height {sent['height']}, fee {sent['fee']}")


@ride.command()
@click.argument("dapp")
@click.argument("call")
@_NODE
@signing_options
@_CHAIN
@_FEE
@_MAX_FEE
@click.option("--payment", "payments", multiple=True, help="AMOUNT or AMOUNT:ASSET.")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and send nothing.")
@_SOURCES
def invoke(
    dapp: str,
    call: str,
    url: str,
    account: int | None,
    key: str | None,
    store: Path,
    password_file: Path | None,
    chain_id: str | None,
    fee: int | None,
    max_fee: int | None,
    payments: tuple[str, ...],
    dry_run: bool,
    sources: tuple[Path, ...],
) -> None:
    """Call the dApp at an address or alias: CALL is written 'buy(7, "x")'.

    The signing key: --key, --account, or the seed phrase in SOLITON_SEED.
    """
    from soliton.workshop.remote import Remote
    from soliton.workshop.sending import Sender, read_call, read_payment, send, validate
    from soliton.workshop.tracing import changes_lines

    parsed, paid = read_call(call), tuple(map(read_payment, payments))
    keys = read_keys(account, key, store, password_file)
    with Remote(url) as remote, _printing_faults(remote, _source_texts(sources)):
        sender = Sender(remote, keys, chain_id=read_chain_id(chain_id), max_fee=max_fee)
        transaction = sender.invoke(dapp, parsed, paid, fee)
        result = validate(remote, transaction) if dry_run else send(remote, transaction)
        state = "would be taken" if dry_run else f"at height {result['height']}"
        status = result.get("applicationStatus", "succeeded")
        click.echo(f"transaction {result['id']} {state}, fee {result['fee']}: {status}")
        for line in changes_lines(result.get("stateChanges") or {}):
            click.echo(line)


@ride.command()
@click.argument("transaction", metavar="ID")
@_NODE
@_SOURCES
def trace(transaction: str, url: str, sources: tuple[Path, ...]) -> None:
    """Print the calls and effects of a transaction; on a devnet every function with its values."""
    from soliton.workshop.remote import Remote
    from soliton.workshop.sending import LocalFiles
    from soliton.workshop.tracing import function_lines, transaction_lines

    with Remote(url) as remote:
        info = remote.get(f"/transactions/info/{transaction}")
        for line in transaction_lines(info):
            click.echo(line)
        record = _recorded(remote, {"id": transaction})
        if record is not None:
            files = LocalFiles(remote, _source_texts(sources))
            for each in record.scripts:
                files.map_of(each.script)
            for line in function_lines(record, files.names):
                click.echo(line)


@ride.command()
@click.argument("target")
@click.argument("call", required=False)
@_NODE
@signing_options
@_CHAIN
@click.option("--payment", "payments", multiple=True, help="AMOUNT or AMOUNT:ASSET.")
@_SOURCES
def debug(
    target: str,
    call: str | None,
    url: str,
    account: int | None,
    key: str | None,
    store: Path,
    password_file: Path | None,
    chain_id: str | None,
    payments: tuple[str, ...],
    sources: tuple[Path, ...],
) -> None:
    """Step through a transaction of a devnet, forward and backward: TARGET is its id.

    With CALL, 'buy(7)', TARGET is a dApp that is called by the signing key; nothing is sent.
    """
    from soliton.chain.transactions.codec import to_json
    from soliton.workshop.debugger import Debugger
    from soliton.workshop.remote import Remote
    from soliton.workshop.sending import LocalFiles, Sender, read_call, read_payment

    with Remote(url) as remote:
        known = _source_texts(sources)
        if call is None:
            request: dict[str, object] = {"id": target}
        else:
            keys = read_keys(account, key, store, password_file)
            paid = tuple(map(read_payment, payments))
            sender = Sender(remote, keys, chain_id=read_chain_id(chain_id))
            signed = sender.invoke(target, read_call(call), paid)
            request = {"transaction": to_json(signed)}
        record = _recorded(remote, request)
        if record is None:
            raise InputError(f"{url} is no devnet of soliton: only that records every step")
        files = LocalFiles(remote, known)
        if known and _upload_sources(remote, files, record):
            # The devnet now knows the sources, and describes the steps by them.
            record = _recorded(remote, request) or record
        debugger = Debugger(record, click.echo, files.names)
        debugger.session(_lines(debugger.commands()))


def _upload_sources(remote: Remote, files: LocalFiles, record: Recording) -> bool:
    """Send a devnet the sources of its scripts; true if it did not know one of them."""
    from soliton.workshop.sending import remember_source

    is_new = False
    for each in record.scripts:
        source = files.source_of(each.script)
        if source is not None and each.source != "known":
            is_new |= remember_source(remote, *source)
    return is_new


def _recorded(remote: Remote, request: dict[str, object]) -> Recording | None:
    import msgspec

    from soliton.api.errors import NO_CONTROLS
    from soliton.ride.recording import Recording
    from soliton.workshop.remote import RemoteRefusal

    try:
        found = remote.post("/devnet/record", request)
    except RemoteRefusal as refusal:
        if refusal.code in (0, NO_CONTROLS.code):
            return None
        raise
    return msgspec.convert(found, Recording)


def _lines(commands: list[str]) -> Iterator[str]:
    """Yield the lines that are typed, or lines of a file, echoed as if they were typed."""
    from soliton.workshop.debugger import PROMPT

    if sys.stdin.isatty():
        from soliton.workshop.prompts import typed_lines

        yield from typed_lines(PROMPT, "debug", lambda: commands)
        return
    for line in sys.stdin:
        click.echo(f"{PROMPT}{line.rstrip()}")
        yield line


# --- keys, files, faults --------------------------------------------------------------------------


def _source_texts(paths: tuple[Path, ...]) -> dict[Path, SourceText]:
    from soliton.ride.faults import SourceText

    texts = {path: source_text(path) for path in paths}
    return {
        path: SourceText(text, libraries_of(path, text), path.name) for path, text in texts.items()
    }


class _printing_faults:  # noqa: N801 - it is used as a function
    """Prints the place of a script's fault before the exception propagates."""

    def __init__(self, remote: Remote, sources: Mapping[Path, SourceText]) -> None:
        self._remote = remote
        self._sources = sources

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        from soliton.ride.faults import lines_of
        from soliton.workshop.remote import RemoteRefusal
        from soliton.workshop.sending import LocalFiles

        if isinstance(error, RemoteRefusal) and error.fault is not None:
            files = LocalFiles(self._remote, self._sources)
            report = files.mapped(error.fault)
            for line in lines_of(report, files.names):
                click.echo(line, err=True)
