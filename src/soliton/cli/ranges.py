"""Kinds of numbers in the options of commands."""

from __future__ import annotations

import math
from typing import Any

import click


class Seconds(click.FloatRange):
    """So many seconds in a range; unlike the library's range it has no place for ``nan``."""

    name = "float range"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - the library's type
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number; fails for others."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number", param, ctx)
        return number
