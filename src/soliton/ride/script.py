"""Parsed scripts, the form in which other packages hold them.

What lives here: the record, cached parsing, and traversal of the whole tree. What does not: the
format (``serialization``) and evaluation (``evaluator``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/script/Script.scala``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

import msgspec

from soliton.caching import cached_by_weight
from soliton.ride.errors import ScriptFormatError
from soliton.ride.expressions import (
    Block,
    DApp,
    Expression,
    ListConst,
    children,
    declared_expression,
)
from soliton.ride.serialization import NODES_IN_STEP, read_script, write_script
from soliton.steps import pause

MAX_CACHED_BYTES: Final = 128 * 1024**2
"""The size of the cache of parsed scripts."""
TREE_FACTOR: Final = 26
"""The largest size of a tree in memory, per byte of its script."""
TREE_OVERHEAD: Final = 1_024
"""The size of a tree that does not depend on the length of its script."""
BASE64_PREFIX: Final = "base64:"


class Script(msgspec.Struct, frozen=True):
    """A script: language version, content, and its bytes, which are empty for one that was made for
    a single run.
    """

    version: int
    content: Expression | DApp
    source: bytes

    @property
    def is_dapp(self) -> bool:
        """Whether the script is a dApp, not an expression."""
        return isinstance(self.content, DApp)


def _weight(source: bytes) -> int:
    return TREE_OVERHEAD + TREE_FACTOR * len(source)


@cached_by_weight(MAX_CACHED_BYTES, _weight)
def parse_script(source: bytes) -> Script:
    """Parse a script; raise ``ScriptFormatError`` if it is malformed."""
    version, content = read_script(source)
    return Script(version, content, source)


def parse_script_text(text: str) -> Script:
    """Parse a script in base64, with or without the prefix ``base64:``; raise ``ScriptFormatError``
    if it is malformed.
    """
    try:
        source = base64.b64decode(text.removeprefix(BASE64_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ScriptFormatError(f"Unable to decode base64: {error}") from error
    return parse_script(source)


def make_script(version: int, content: Expression | DApp) -> Script:
    """Serialize a content; raise ``ScriptFormatError`` if the format cannot represent it."""
    return Script(version, content, write_script(version, content))


def expressions(content: Expression | DApp) -> tuple[Expression, ...]:
    """Return the content itself, or the bodies of all declarations and functions of a dApp."""
    if not isinstance(content, DApp):
        return (content,)
    verifier = () if content.verifier is None else (content.verifier,)
    return (
        *map(declared_expression, content.declarations),
        *(each.function.body for each in (*content.callables, *verifier)),
    )


def nodes(content: Expression | DApp) -> Iterator[Expression]:
    """Yield every expression of a content in preorder, in steps."""
    stack = list(reversed(expressions(content)))
    count = 0
    while stack:
        if count % NODES_IN_STEP == 0:
            pause()
        count += 1
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def has_lists(content: Expression | DApp) -> bool:
    """Whether the content has a list constant, which older rules reject."""
    return any(isinstance(node, ListConst) for node in nodes(content))


def has_later_blocks(content: Expression | DApp) -> bool:
    """Whether the content has blocks of the form that came with functions, as every dApp does."""
    return isinstance(content, DApp) or any(
        isinstance(node, Block) and not node.old for node in nodes(content)
    )
