"""``soliton ride``: scripts on the command line, without a chain.

What lives here: reading files, printing results. What does not: the work (``soliton.ride``).
Expressions are evaluated without a chain: a function that reads one raises an error.
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.helping import Commands
from soliton.cli.quantities import WholeRange
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.workshop.repl import Session

LIBRARY_BYTES_LIMIT: Final = 1_000_000
SOURCE = click.argument("source", type=click.Path(path_type=Path, dir_okay=False, exists=True))
_VERSION = click.option(
    "--version",
    "version",
    type=WholeRange(1, 8),
    default=8,
    show_default=True,
    help="Version of the library.",
)


@click.group(cls=Commands)
def ride() -> None:
    """Compile, decompile, estimate, evaluate and format scripts."""


@ride.command("compile")
@SOURCE
@click.option("--compact", is_flag=True, help="Shorten the names of a dApp's declarations.")
@click.option("--remove-unused", is_flag=True, help="Leave out a dApp's unused declarations.")
@click.option("--any-complexity", is_flag=True, help="Allow a complexity above the chain's limit.")
def compile_command(source: Path, compact: bool, remove_unused: bool, any_complexity: bool) -> None:
    """Print the script of SOURCE in base64. Libraries are imported from its directory."""
    from soliton.ride.compiler import compile_source

    text = source_text(source)
    with reporting_errors(source):
        compiled = compile_source(
            text,
            libraries=libraries_of(source, text),
            compact=compact,
            remove_unused=remove_unused,
            check_complexity=not any_complexity,
        )
    click.echo("base64:" + base64.b64encode(compiled.script.source).decode())


@ride.command("decompile")
@click.argument("script")
def decompile_command(script: str) -> None:
    """Print the decompiled SCRIPT: base64, a file with it, or - for standard input."""
    from soliton.ride.decompiler import decompile
    from soliton.ride.script import parse_script

    click.echo(decompile(parse_script(_script_bytes(script))), nl=False)


@ride.command("estimate")
@SOURCE
@click.option("--declarations", is_flag=True, help="Include all functions and values.")
def estimate_command(source: Path, declarations: bool) -> None:
    """Print the complexity of SOURCE, function by function."""
    from soliton.ride.compiler import compile_source

    text = source_text(source)
    with reporting_errors(source):
        compiled = compile_source(text, libraries=libraries_of(source, text))
    numbers, parts = compiled.estimate, compiled.parts
    assert numbers is not None
    if declarations and parts is not None:
        for name, number in (parts.values | parts.functions).items():
            click.echo(f"{name}: {number}")
    for name, number in numbers.callables.items():
        click.echo(f"{name}: {number}")
    if numbers.verifier:
        click.echo(f"verifier: {numbers.verifier}")
    click.echo(f"at most: {numbers.max}")


@ride.command("eval")
@click.argument("expression")
@_VERSION
def eval_command(expression: str, version: int) -> None:
    """Print type, value and complexity of EXPRESSION."""
    click.echo(_evaluated(expression, version))


@ride.command("repl")
@_VERSION
@click.option("--node", "url", help="A node whose chain expressions can read.")
@click.option("--as", "address", help="The account on that chain for `this`.")
def repl_command(version: int, url: str | None, address: str | None) -> None:
    """Evaluate line after line; declarations remain in scope. :help lists the commands."""
    from contextlib import ExitStack

    from soliton.chain.addresses import parse_address
    from soliton.client.node import Node
    from soliton.ride.compiler.library import ScriptKind
    from soliton.workshop.no_chain import NoChain
    from soliton.workshop.remote_chain import RemoteChain
    from soliton.workshop.repl import Session

    if (url is None) != (address is None):
        raise InputError("--node and --as belong together: whose account is `this`?")
    with ExitStack() as stack:
        if url is None or address is None:
            session = Session(version, NoChain())
        else:
            node = stack.enter_context(Node(url))
            chain = RemoteChain(node, parse_address(address, node.chain_id))
            session = Session(version, chain, kind=ScriptKind.DAPP)
        for line in _typed(session):
            answers = session.do(line)
            if answers is None:
                return
            for each in answers:
                click.echo(each)


def _typed(session: Session) -> Iterator[str]:
    """Yield the lines that are typed, or complete inputs from standard input."""
    if not sys.stdin.isatty():
        pending = ""
        for line in sys.stdin:
            pending += line
            if session.is_whole(pending):
                yield pending
                pending = ""
        if pending:
            yield pending
        return
    from soliton.workshop.prompts import typed_lines
    from soliton.workshop.repl import PROMPT

    click.echo(":help lists the commands, Tab completes, Ctrl-D ends")
    yield from typed_lines(PROMPT, "repl", session.names, session.is_whole)


def _evaluated(expression: str, version: int) -> str:
    from soliton.ride.compiler import compile_value
    from soliton.ride.evaluator import evaluate
    from soliton.ride.functions.printing import nested_text
    from soliton.workshop.no_chain import NoChain, no_transaction

    script, type_ = compile_value(expression, version)
    outcome = evaluate(script, NoChain(), no_transaction)
    return f"{type_.name} = {nested_text(outcome.value)}   (complexity {outcome.spent})"


@ride.command("format")
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True),
)
@click.option("--write", is_flag=True, help="Write the files instead of printing them.")
@click.option("--check", is_flag=True, help="Only name the files that would change; exit with 1.")
@click.pass_context
def format_command(
    context: click.Context, sources: tuple[Path, ...], write: bool, check: bool
) -> None:
    """Print SOURCES in the standard layout; - is standard input. Line breaks stay."""
    from soliton.ride.formatter import format_source

    changed = False
    for source in sources:
        is_input = str(source) == "-"
        text = sys.stdin.read() if is_input else source_text(source)
        with reporting_errors("<stdin>" if is_input else source):
            formatted = format_source(text)
        if check:
            if formatted != text:
                click.echo(source)
                changed = True
        elif write and not is_input:
            if formatted != text:
                _replace(source, formatted)
        else:
            click.echo(formatted, nl=False)
    context.exit(int(changed))


@ride.command()
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes.")
@click.pass_context
def lint(context: click.Context, sources: tuple[Path, ...], watch: bool) -> None:
    """Print errors and warnings of SOURCES; exit with 1 if there are any.

    Unused names, names that shadow others, conditions that are always the same, complexity.
    """
    from soliton.workshop.reports import lint_lines, watched

    found = False

    def run() -> None:
        nonlocal found
        for source in sources:
            text = source_text(source)
            for line in lint_lines(str(source), text, _libraries_if_any(source, text)):
                found = True
                click.echo(line)
        if watch:
            click.echo(f"{'looked' if found else 'nothing found'}; waits for a change")
            found = False

    if watch:
        watched(lambda: _files_of(sources), run)
    run()
    context.exit(int(found))


@ride.command("test", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--watch", is_flag=True, help="Run the tests again whenever a file changes.")
@click.pass_context
def test_command(context: click.Context, arguments: tuple[str, ...], watch: bool) -> None:
    """Run tests of scripts with pytest and a chain in its process; ARGUMENTS are pytest's.

    Options of pytest come after --.
    """
    import subprocess
    from importlib.util import find_spec

    if find_spec("pytest") is None:
        raise InputError("tests need pytest: pip install pytest")
    # A new process each time, because imported modules would stay as they were.
    command = [sys.executable, "-m", "pytest", *arguments]

    def run() -> int:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - it is pytest

    if watch:
        from soliton.workshop.reports import sources_below, watched

        watched(lambda: sources_below(Path()), run)
    context.exit(run())


@ride.command("lsp")
def lsp_command() -> None:
    """Serve an editor over standard input and output: the Language Server Protocol."""
    try:
        from soliton.workshop.lsp import serve
    except ImportError as error:
        raise InputError("the language server needs pygls: pip install pygls") from error
    serve()


def _files_of(sources: tuple[Path, ...]) -> list[Path]:
    """Return the sources and the files that they may import."""
    return [*sources, *{path for source in sources for path in source.parent.glob("*.ride")}]


# --- files ----------------------------------------------------------------------------------------


def source_text(path: Path) -> str:
    """Return the source in a file; raises ``InputError``."""
    try:
        # Line endings are kept: names of hidden variables contain offsets.
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


@contextmanager
def reporting_errors(source: Path | str) -> Iterator[None]:
    """Turn a ``CompileError`` into an ``InputError`` with all errors of the source, each with
    FILE:LINE:COL, which editors and terminals recognize, and its line.
    """
    from soliton.ride.compiler import CompileError

    try:
        yield
    except CompileError as error:
        lines: list[str] = []
        if isinstance(source, Path):
            from soliton.workshop.reports import fault_lines

            text = source_text(source)
            lines = fault_lines(str(source), text, _libraries_if_any(source, text))
        if not lines:
            place = f"{source}:{error.line}:{error.column}" if error.line else f"{source}"
            advice = f" ({error.advice})" if error.advice else ""
            lines = [f"{place}: {error.problem}{advice}"]
        raise InputError("\n".join(lines)) from error


def _libraries_if_any(source: Path, text: str) -> dict[str, str]:
    from soliton.ride.compiler import CompileError

    try:
        return libraries_of(source, text)
    except CompileError:
        return {}


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(text.encode())
        temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error}") from error


def libraries_of(source: Path, text: str) -> dict[str, str]:
    """Return the libraries that a source imports, by name, from its own directory."""
    from soliton.ride.compiler.directives import read_directives

    found = {}
    for name in read_directives(text).imports:
        path = source.parent / name
        if path.is_file() and path.stat().st_size <= LIBRARY_BYTES_LIMIT:
            found[name] = source_text(path)
    return found


def _script_bytes(script: str) -> bytes:
    text = script
    if script == "-":
        text = sys.stdin.read()
    elif len(script) < 256 and Path(script).is_file():
        text = source_text(Path(script))
    try:
        return base64.b64decode(text.strip().removeprefix("base64:"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"this is neither a file nor base64: {error}") from error
