"""dApps in tests: compiling and calling.

What lives here: ``Dapp``, and compiling files with their imports. What does not: the compiler
(``soliton.ride``), and deploying (``kit``).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from soliton.client.account import Account
from soliton.client.amounts import Amount, AssetLike
from soliton.client.making import Value
from soliton.client.node import Node
from soliton.client.records import Mined
from soliton.ride.compiler.compile import Compiled, compile_source
from soliton.ride.compiler.directives import read_directives
from soliton.ride.compiler.errors import CompileError
from soliton.ride.faults import SourceText

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Far above the size of a script that a chain accepts."""


class Dapp:
    """A dApp on a chain. It has an ``address``, so it can be a recipient like an account."""

    def __init__(self, account: Account, node: Node, compiled: Compiled) -> None:
        """Tests get one from the fixture ``deploy``."""
        self.account = account
        self.node = node
        self.compiled = compiled

    @property
    def address(self) -> str:
        """The address of its account."""
        return self.account.address

    @property
    def public_key(self) -> str:
        """The public key of its account."""
        return self.account.public_key

    def call(
        self,
        by: Account,
        function: str | None = None,
        *arguments: Value,
        payments: Iterable[tuple[Amount, AssetLike]] = (),
        **options: Any,  # noqa: ANN401 - those of ``Account.invoke``
    ) -> Mined:
        """Call a function and wait until the call is in a block.

        Raises ``ScriptRefused`` if a script rejects it (see ``soliton.testing.refused``).
        """
        call = by.invoke(self, function, *arguments, payments=payments, **options)
        return self.node.send(call).wait()

    def data(self, key: str | None = None) -> Any:  # noqa: ANN401 - whatever it has written
        """A data entry of the dApp, or all of them."""
        return self.node.data(self) if key is None else self.node.data_entry(self, key)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - as the node answers
        """The value of an expression, which may use all definitions of the dApp."""
        return self.node.evaluate(self, expression)

    def complexities(self) -> dict[str, int]:
        """The complexities of the callable functions, as the chain estimates them."""
        estimate = self.compiled.estimate
        return {} if estimate is None else dict(estimate.callables)

    def __repr__(self) -> str:
        return f"<Dapp {self.address}>"


def source_of(source: str | Path) -> SourceText:
    """A source: a text without imports, or a file with its imports in the same directory. Raises
    ``CompileError``.
    """
    if isinstance(source, str):
        return SourceText(source, {})
    text = _read(source)
    names = read_directives(text).imports
    return SourceText(text, {name: _read(source.parent / name) for name in names})


def compiled_of(source: SourceText) -> Compiled:
    """Compile a source. Raises ``CompileError`` with the position."""
    return compile_source(source.text, libraries=source.libraries)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise CompileError(f"{path} has more than {MAX_FILE_BYTES} bytes")
        return data.decode()
    except OSError as error:
        raise CompileError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CompileError(f"{path} is no text: {error}") from error
