"""``soliton ride``: scripts on the command line, without a chain.

What lives here: reading files, printing results. What does not: the work (``soliton.ride``).
Expressions that are evaluated here see no chain: asking for one ends in an error.
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import click

from soliton.cli.helping import Commands
from soliton.errors import InputError

LIBRARY_BYTES_LIMIT: Final = 1_000_000
_PROMPT: Final = "> "
_SOURCE = click.argument("source", type=click.Path(path_type=Path, dir_okay=False, exists=True))
_VERSION = click.option(
    "--version",
    "version",
    type=click.IntRange(1, 8),
    default=8,
    show_default=True,
    help="Version of the library.",
)


@click.group(cls=Commands)
def ride() -> None:
    """Compile, decompile, estimate, evaluate and format scripts."""


@ride.command("compile")
@_SOURCE
@click.option("--compact", is_flag=True, help="Give declarations of a dApp short names.")
@click.option("--remove-unused", is_flag=True, help="Leave out what a dApp does not use.")
@click.option("--any-complexity", is_flag=True, help="Do not refuse what is too complex.")
def compile_command(source: Path, compact: bool, remove_unused: bool, any_complexity: bool) -> None:
    """Print the script of SOURCE in base64. Libraries are looked for beside it."""
    from soliton.ride.compiler import compile_source

    text = _text(source)
    with _telling_where(source):
        compiled = compile_source(
            text,
            libraries=_libraries(source, text),
            compact=compact,
            remove_unused=remove_unused,
            check_complexity=not any_complexity,
        )
    click.echo("base64:" + base64.b64encode(compiled.script.source).decode())


@ride.command("decompile")
@click.argument("script")
def decompile_command(script: str) -> None:
    """Print a source of SCRIPT: base64, a file with it, or - for standard input."""
    from soliton.ride.decompiler import decompile
    from soliton.ride.script import parse_script

    click.echo(decompile(parse_script(_script_bytes(script))), nl=False)


@ride.command("estimate")
@_SOURCE
@click.option("--declarations", is_flag=True, help="Tell that of all functions and values as well.")
def estimate_command(source: Path, declarations: bool) -> None:
    """Print how complex SOURCE can get, function by function."""
    from soliton.ride.compiler import compile_source

    text = _text(source)
    with _telling_where(source):
        compiled = compile_source(text, libraries=_libraries(source, text))
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
    """Print type and value of EXPRESSION, and what it took."""
    click.echo(_evaluated(expression, version))


@ride.command("repl")
@_VERSION
def repl_command(version: int) -> None:
    """Evaluate line after line; declarations stay for the lines after them."""
    from soliton.ride.errors import RideError

    declared: list[str] = []
    while True:
        try:
            line = input(_PROMPT if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if not line:
            continue
        is_declaration = line.startswith(("let ", "func ", "strict "))
        whole = "\n".join([*declared, line, *(["unit"] if is_declaration else [])])
        try:
            answer = _evaluated(whole, version)
        except RideError as error:
            click.echo(str(error))
            continue
        if is_declaration:
            declared.append(line)
        else:
            click.echo(answer)


def _evaluated(expression: str, version: int) -> str:
    from soliton.cli.no_chain import NoChain
    from soliton.ride.compiler import compile_value
    from soliton.ride.evaluator import evaluate
    from soliton.ride.functions.printing import nested_text

    script, type_ = compile_value(expression, version)
    outcome = evaluate(script, NoChain(), _no_transaction)
    return f"{type_.name} = {nested_text(outcome.value)}   (complexity {outcome.spent})"


def _no_transaction() -> NoReturn:
    from soliton.ride.errors import EvaluationError

    raise EvaluationError("there is no transaction here")


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
    """Print SOURCES in the one layout; - is standard input. Lines end where they did."""
    from soliton.ride.formatter import format_source

    changed = False
    for source in sources:
        is_input = str(source) == "-"
        text = sys.stdin.read() if is_input else _text(source)
        with _telling_where("<stdin>" if is_input else source):
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


# --- files ----------------------------------------------------------------------------------------


def _text(path: Path) -> str:
    try:
        # Line ends stay as they are: names of hidden variables contain offsets.
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


@contextmanager
def _telling_where(source: Path | str) -> Iterator[None]:
    """Errors of a source begin with FILE:LINE:COL, which editors and terminals know."""
    from soliton.ride.compiler import CompileError

    try:
        yield
    except CompileError as error:
        place = f"{source}:{error.line}:{error.column}" if error.line else f"{source}"
        advice = f" ({error.advice})" if error.advice else ""
        raise InputError(f"{place}: {error.problem}{advice}") from error


def _replace(path: Path, text: str) -> None:
    """Write a file so that it is never there in part."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(text.encode())
        beside.chmod(path.stat().st_mode)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error}") from error


def _libraries(source: Path, text: str) -> dict[str, str]:
    """The texts of what a source imports, from the directory that it is in."""
    from soliton.ride.compiler.directives import read_directives

    found = {}
    for name in read_directives(text).imports:
        path = source.parent / name
        if path.is_file() and path.stat().st_size <= LIBRARY_BYTES_LIMIT:
            found[name] = _text(path)
    return found


def _script_bytes(script: str) -> bytes:
    text = script
    if script == "-":
        text = sys.stdin.read()
    elif len(script) < 256 and Path(script).is_file():
        text = _text(Path(script))
    try:
        return base64.b64decode(text.strip().removeprefix("base64:"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"this is neither a file nor base64: {error}") from error
