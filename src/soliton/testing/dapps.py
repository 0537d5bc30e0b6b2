"""dApps in tests: compiled, deployed, called.

What lives here: ``Dapp``, and compiling files with what they import. What does not: the compiler
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
"""Far above what a chain takes of a script."""


class Dapp:
    """A dApp on a chain. It has an ``address``, so it is a recipient as an account is one."""

    def __init__(self, account: Account, node: Node, compiled: Compiled) -> None:
        """The fixture ``deploy`` makes one."""
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
        """Call a function, and wait until that is in a block.

        Raises ``ScriptRefused`` where a script says no (``soliton.testing.refused``).
        """
        call = by.invoke(self, function, *arguments, payments=payments, **options)
        return self.node.send(call).wait()

    def data(self, key: str | None = None) -> Any:  # noqa: ANN401 - whatever it has written
        """An entry of its data, or all of them."""
        return self.node.data(self) if key is None else self.node.data_entry(self, key)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - as the node answers
        """What an expression is worth that may use all that the dApp declares."""
        return self.node.evaluate(self, expression)

    def complexities(self) -> dict[str, int]:
        """What its functions may cost at most, as the chain estimates it."""
        estimate = self.compiled.estimate
        return {} if estimate is None else dict(estimate.callables)

    def __repr__(self) -> str:
        return f"<Dapp {self.address}>"


def source_of(source: str | Path) -> SourceText:
    """A source: a text that imports nothing, or a file, beside which stands what it imports. Raises
    ``CompileError``.
    """
    if isinstance(source, str):
        return SourceText(source, {})
    text = _read(source)
    names = read_directives(text).imports
    return SourceText(text, {name: _read(source.parent / name) for name in names})


def compiled_of(source: SourceText) -> Compiled:
    """Its script. Raises ``CompileError``, with the place."""
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
