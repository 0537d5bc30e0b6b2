"""A script as everybody outside of this package holds it: parsed once, known by its bytes.

What lives here: the record, parsing with a cache, and questions about the whole tree. What does
not: the format (``serialization``) and running (``evaluator``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/script/Script.scala``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

import msgspec

from soliton.caching import kept
from soliton.ride.errors import ScriptFormatError
from soliton.ride.expressions import (
    Block,
    Call,
    DApp,
    Expression,
    GetField,
    If,
    Let,
    ListConst,
)
from soliton.ride.serialization import read_script, write_script

MAX_KEPT_BYTES: Final = 128 * 1024**2
"""What parsed scripts that are kept take; the busy dApps of a chain come again in every block."""
TREE_FACTOR: Final = 26
"""The tree of a script takes so many times its bytes, at most."""
TREE_OVERHEAD: Final = 1_024
"""And so much however short it is."""
BASE64_PREFIX: Final = "base64:"


class Script(msgspec.Struct, frozen=True):
    """A script: language version, content, and the bytes that it was read from; one that was made
    for a single run has none.
    """

    version: int
    content: Expression | DApp
    source: bytes

    @property
    def is_dapp(self) -> bool:
        """Whether it is a dApp and no plain expression."""
        return isinstance(self.content, DApp)


def _weight(source: bytes) -> int:
    return TREE_OVERHEAD + TREE_FACTOR * len(source)


@kept(MAX_KEPT_BYTES, _weight)
def parse_script(source: bytes) -> Script:
    """The script that bytes stand for; raises ``ScriptFormatError``."""
    version, content = read_script(source)
    return Script(version, content, source)


def parse_script_text(text: str) -> Script:
    """The script in base64 with or without the prefix ``base64:``; raises ``ScriptFormatError``."""
    try:
        source = base64.b64decode(text.removeprefix(BASE64_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ScriptFormatError(f"Unable to decode base64: {error}") from error
    return parse_script(source)


def make_script(version: int, content: Expression | DApp) -> Script:
    """The script with a content; raises ``ScriptFormatError`` for what cannot be written."""
    return Script(version, content, write_script(version, content))


def expressions(content: Expression | DApp) -> tuple[Expression, ...]:
    """The expressions that a content consists of: itself, or the bodies of all declarations."""
    if not isinstance(content, DApp):
        return (content,)
    annotated = (
        content.callables
        if content.verifier is None
        else (
            *content.callables,
            content.verifier,
        )
    )
    return (
        *(each.value if isinstance(each, Let) else each.body for each in content.declarations),
        *(each.function.body for each in annotated),
    )


def nodes(content: Expression | DApp) -> Iterator[Expression]:
    """Every expression of a content, each before what is in it."""
    stack = list(reversed(expressions(content)))
    while stack:
        node = stack.pop()
        yield node
        match node:
            case If(condition, then, otherwise):
                stack.extend((otherwise, then, condition))
            case GetField(inner):
                stack.append(inner)
            case Call(_, arguments):
                stack.extend(reversed(arguments))
            case Block(declaration, body):
                stack.append(body)
                stack.append(
                    declaration.value if isinstance(declaration, Let) else declaration.body
                )
            case _:
                pass


def has_lists(content: Expression | DApp) -> bool:
    """Whether a list is written down in it, which older rules refuse."""
    return any(isinstance(node, ListConst) for node in nodes(content))


def has_later_blocks(content: Expression | DApp) -> bool:
    """Whether it uses the form of blocks that came with functions; every dApp counts as such."""
    return isinstance(content, DApp) or any(
        isinstance(node, Block) and not node.old for node in nodes(content)
    )
