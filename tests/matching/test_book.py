"""The matching loop, by text tables (see ``tests/matching/tables.py``)."""

from __future__ import annotations

import pytest

from tests.matching.tables import run

ROUNDING = """
# The vectors of the reference's own suite of rounding issues.
m: buy 3100000000 @238
    added m
t: sell 425532 @235
    added t
    executed t m 420169 @238 fees 296219 40 taker-done
    =bids 238 3099579831
    =asks
---
m: buy 923431000 @31887
    added m
t: sell 223345000 @31887
    added t
    executed t m 223344937 @31887 fees 299999 72559 taker-done
    =bids 31887 700086063
---
a: sell 98333333 @60
    added a
b: sell 100000000 @70
    added b
t: buy 100000000 @1000
    added t
    executed t a 96666667 @60 fees 290000 294915 maker-done
    executed t b 2857143 @70 fees 8571 8571
    canceled t BecameUnmatchable 476190 left   # counts as filled
    =asks 70 97142857
"""


@pytest.mark.parametrize("table", ROUNDING.split("---\n"))
def test_rounding(table: str) -> None:
    run(table)
