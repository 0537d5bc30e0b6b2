"""The first bytes of a serialised script: all that formats and rules without state ask of it.

What does not live here: the language (``soliton.ride``); to everything else a script is bytes.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/script/ScriptReader.scala``.
"""

from __future__ import annotations

from typing import Final

_DAPP_MARK: Final = 0
_FIRST_VERSION_WITH_KIND: Final = 6
_DAPP_KIND: Final = 2


def is_dapp(script: bytes) -> bool:
    """Whether these bytes say of themselves that they are a dApp and no plain expression.

    Up to version 5 of the language a zero comes first, from version 6 on the version; the kind is
    the second byte.
    """
    if len(script) < 2:
        return False
    kinded = script[0] == _DAPP_MARK or script[0] >= _FIRST_VERSION_WITH_KIND
    return kinded and script[1] == _DAPP_KIND
