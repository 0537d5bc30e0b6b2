"""The first bytes of a serialised script, which formats and rules without state inspect.

What does not live here: the language (``soliton.ride``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/script/ScriptReader.scala``.
"""

from __future__ import annotations

from typing import Final

_DAPP_MARK: Final = 0
_FIRST_VERSION_WITH_KIND: Final = 6
_DAPP_KIND: Final = 2


def is_dapp(script: bytes) -> bool:
    """Whether a script is a dApp, and not an expression, according to its first two bytes.

    The first byte is zero up to version 5 of the language, and the version from 6 on; the second
    byte is the kind.
    """
    if len(script) < 2:
        return False
    kinded = script[0] == _DAPP_MARK or script[0] >= _FIRST_VERSION_WITH_KIND
    return kinded and script[1] == _DAPP_KIND
