"""Quantities on the command line: numbers, durations such as ``60s``, shares such as ``5%``."""

from __future__ import annotations

import math
import re
from typing import Any, Final, Literal, TypeAlias

import click

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "": 1_000}
_TIME: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(ms|s|m|h|)")
_SHARE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(%?)")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
MAX_SHARE: Final = 0.5
FINALIZED: Final = "finalized"
Confirmations: TypeAlias = int | Literal["finalized"]
"""The number of blocks above a block, or the wait until it is final."""
MAX_CONFIRMATIONS: Final = 10_000


class _Milliseconds(click.ParamType[int]):
    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the milliseconds in ``60s``, ``1.5m``, ``200ms``; the default unit is seconds."""
        if isinstance(value, int):
            return value
        found = _TIME.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is not a length of time such as 60s or 200ms", param, ctx)
        return math.floor(float(found[1]) * _UNITS[found[2]])


class _Share(click.ParamType[float]):
    name = "share"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share in ``5%`` or ``0.05``, at most a half."""
        if isinstance(value, float):
            return value
        found = _SHARE.fullmatch(str(value))
        share = math.nan
        if found is not None:
            share = float(found[1]) / (100 if found[2] else 1)
        if not 0 <= share <= MAX_SHARE:
            self.fail(f"{value!r} is not a share from 0% to {MAX_SHARE:.0%}", param, ctx)
        return share


class WholeRange(click.IntRange):
    """``click.IntRange`` for digits alone: without underscores, spaces and digits of other scripts,
    all of which ``int`` takes.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as its base
        """Return the number."""
        if isinstance(value, str) and _WHOLE.fullmatch(value) is None:
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return super().convert(value, param, ctx)


class _Confirmations(click.ParamType[Confirmations]):
    name = "confirmations"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Confirmations:
        """Return a number of blocks, or ``finalized``."""
        if value == FINALIZED:
            return FINALIZED
        text = str(value)
        if _WHOLE.fullmatch(text) is None or not 0 <= int(text) <= MAX_CONFIRMATIONS:
            self.fail(
                f"{value!r} is not a number from 0 to {MAX_CONFIRMATIONS}, or {FINALIZED}",
                param,
                ctx,
            )
        return int(text)


CONFIRMATIONS: Final = _Confirmations()
MILLISECONDS: Final = _Milliseconds()
SHARE: Final = _Share()
WHOLE: Final = WholeRange()
