"""``soliton ride deploy``, ``invoke``, ``trace`` and ``debug``: scripts on a node.

What lives here: options and printing. What does not: the work (``soliton.workshop``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from soliton.cli.helping import printable
from soliton.cli.node_options import (
    Asking,
    Delivery,
    WouldBeRefused,
    Writing,
    asking_options,
    connected,
    deliver,
    node_option,
    read_sum,
    recipient_text,
    show,
    signing,
    writing_options,
)
from soliton.cli.ride import SOURCE, libraries_of, reporting_errors, ride, source_text
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.chain.function_calls import FunctionCall
    from soliton.client.account import Account
    from soliton.client.node import Node
    from soliton.client.transaction import Transaction
    from soliton.ride.faults import SourceText
    from soliton.ride.recording import Recording
    from soliton.workshop.local_files import LocalFiles

group = ride
"""The commands, those of ``soliton.cli.ride`` among them."""
_SUCCEEDED = "succeeded"
_SOURCES = click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A source file: errors and steps show its lines if a script was compiled from it.",
)
_PAYMENT = click.option(
    "--payment",
    "payments",
    multiple=True,
    metavar="AMOUNT",
    help='A payment such as "0.5 WAVES", "35 wavelets" or "10 USDT"; may be repeated.',
)


@ride.command()
@SOURCE
@writing_options
@click.option("--compact", is_flag=True, help="Shorten the names of a dApp's declarations.")
@click.option("--remove-unused", is_flag=True, help="Leave out a dApp's unused declarations.")
def deploy(source: Path, compact: bool, remove_unused: bool, how: Writing) -> None:
    """Compile SOURCE, set it as the script of an account, and wait for its block.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """
    from soliton.chain.json_kinds import encode_base64
    from soliton.ride.compiler import compile_source
    from soliton.ride.faults import SourceText
    from soliton.workshop.local_files import remember_source

    text = source_text(source)
    known = SourceText(text, libraries_of(source, text), source.name)
    with reporting_errors(source):
        compiled = compile_source(
            known.text, libraries=known.libraries, compact=compact, remove_unused=remove_unused
        )
    script = compiled.script.source
    with signing(how) as (node, sender), _printing_faults(node, {source: known}):
        delivery = deliver(_to_the_block(how), node, sender.set_script(script))
        delivery.check()
        if not how.dry_run:
            remember_source(node, encode_base64(script), known)
    if how.as_json:
        show(delivery.facts, as_json=True)
        return
    verb = "would have" if how.dry_run else "has"
    click.echo(f"{sender.address} {verb} {source}: {len(script)} bytes")
    click.echo(_sentence(delivery))


@ride.command()
@click.argument("dapp")
@click.argument("call")
@writing_options
@_PAYMENT
@_SOURCES
def invoke(
    dapp: str, call: str, payments: tuple[str, ...], sources: tuple[Path, ...], how: Writing
) -> None:
    """Call the dApp at an address or alias:NAME, and wait for its block: CALL is 'buy(7, "x")'.

    The signing key: --key, --account, or the seed in SOLITON_SEED_FILE or SOLITON_SEED.
    """
    from soliton.workshop.calls import read_call
    from soliton.workshop.tracing import changes_lines

    parsed = read_call(call)
    with signing(how) as (node, sender), _printing_faults(node, _source_texts(sources)):
        made = _call_of(node, sender, dapp, parsed, payments)
        delivery = deliver(_to_the_block(how), node, made)
        delivery.check()
        status, changes = _effects(node, delivery)
    if how.as_json:
        show({**delivery.facts, "status": status, "stateChanges": changes}, as_json=True)
        return
    click.echo(f"{_sentence(delivery)}: {status}")
    for line in changes_lines(changes):
        click.echo(printable(line))


def _to_the_block(how: Writing) -> Writing:
    """The options with a wait for the block, unless they name a longer one."""
    return how if how.depth is not None else how._replace(depth=0)


def _call_of(
    node: Node, sender: Account, dapp: str, call: FunctionCall, payments: tuple[str, ...]
) -> Transaction:
    paid = [read_sum(each, node, sender.address) for each in payments]
    return sender.invoke(
        recipient_text(dapp, node.chain_id),
        call.function,
        *call.args,
        payments=[(each.units, each.asset) for each in paid],
    )


def _effects(node: Node, delivery: Delivery) -> tuple[str, Mapping[str, Any]]:
    """The status of a call and its state changes."""
    if delivery.verdict is not None:
        return delivery.verdict.application_status or _SUCCEEDED, delivery.verdict.state_changes
    info = node.transaction(delivery.transaction.id)
    return info.application_status or _SUCCEEDED, info.state_changes or {}


def _sentence(delivery: Delivery) -> str:
    place = "would be taken" if delivery.mined is None else f"at height {delivery.mined.height}"
    return f"transaction {delivery.transaction.id} {place}, fee {delivery.transaction.fee}"


@ride.command()
@click.argument("transaction", metavar="ID")
@node_option
@_SOURCES
def trace(transaction: str, url: str, sources: tuple[Path, ...]) -> None:
    """Print the calls and effects of a transaction; on a devnet every function with its values."""
    from soliton.workshop.local_files import LocalFiles
    from soliton.workshop.tracing import function_lines, transaction_lines

    with connected(url) as node:
        for line in transaction_lines(node.transaction(transaction).json):
            click.echo(line)
        record = _recorded(node, {"id": transaction})
        if record is not None:
            files = LocalFiles(node, _source_texts(sources))
            for each in record.scripts:
                files.map_of(each.script)
            for line in function_lines(record, files.names):
                click.echo(line)


@ride.command()
@click.argument("target")
@click.argument("call", required=False)
@asking_options
@_PAYMENT
@_SOURCES
def debug(
    target: str,
    call: str | None,
    payments: tuple[str, ...],
    sources: tuple[Path, ...],
    how: Asking,
) -> None:
    """Step through a transaction of a devnet, forward and backward: TARGET is its id.

    With CALL, 'buy(7)', TARGET is a dApp that is called by the signing key; nothing is sent.
    """
    if call is None:
        with connected(how.url) as node:
            _debug(node, {"id": target}, sources)
        return
    from soliton.workshop.calls import read_call

    parsed = read_call(call)
    with signing(how) as (node, sender):
        signed = _call_of(node, sender, target, parsed, payments)
        _debug(node, {"transaction": signed.to_json()}, sources)


def _debug(node: Node, request: dict[str, object], sources: tuple[Path, ...]) -> None:
    from soliton.workshop.debugger import Debugger
    from soliton.workshop.local_files import LocalFiles

    known = _source_texts(sources)
    record = _recorded(node, request)
    if record is None:
        raise InputError(f"{node.url} is no devnet of soliton: only that records every step")
    files = LocalFiles(node, known)
    if known and _upload_sources(node, files, record):
        # The devnet now knows the sources, and describes the steps by them.
        record = _recorded(node, request) or record
    debugger = Debugger(record, click.echo, files.names)
    debugger.session(_lines(debugger.commands()))


def _upload_sources(node: Node, files: LocalFiles, record: Recording) -> bool:
    """Send a devnet the sources of its scripts; true if it did not know one of them."""
    from soliton.workshop.local_files import remember_source

    is_new = False
    for each in record.scripts:
        source = files.source_of(each.script)
        if source is not None and each.source != "known":
            is_new |= remember_source(node, *source)
    return is_new


def _recorded(node: Node, request: dict[str, object]) -> Recording | None:
    import msgspec

    from soliton.api.errors import NO_CONTROLS
    from soliton.client.errors import NodeBroken, NodeRefused
    from soliton.ride.recording import Recording

    try:
        return msgspec.convert(node.post_json("/devnet/record", request), Recording)
    except NodeRefused as refused:
        if refused.code in (0, NO_CONTROLS.code):
            return None
        raise
    except msgspec.ValidationError as error:
        raise NodeBroken(f"invalid response from the node: {error}") from error


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


@contextmanager
def _printing_faults(node: Node, sources: Mapping[Path, SourceText]) -> Iterator[None]:
    """Print the place of a script's fault before the exception propagates."""
    from soliton.client.errors import ScriptRefused
    from soliton.ride.faults import lines_of, read_members
    from soliton.workshop.local_files import LocalFiles

    try:
        yield
    except (ScriptRefused, WouldBeRefused) as error:
        with suppress(ValueError):
            files = LocalFiles(node, sources)
            for line in lines_of(files.mapped(read_members(error.fault)), files.names):
                click.echo(line, err=True)
        raise
