"""Numbers in texts are digits, with a sign or a point: nothing else that Python would read."""

from __future__ import annotations

from decimal import Decimal

import click
import pytest

from soliton import Account, AmountError, NodeBroken, units
from soliton.cli.node_options import read_coins
from soliton.cli.quantities import SHARE, WHOLE
from soliton.client.steps import Answer, retry_after
from soliton.client.streams import MatcherStream
from soliton.errors import InputError

ALICE = Account.from_seed("soliton devnet account 1", "R")
STRANGE = (
    *("1_000", "_1", "1_0.0", "0x10", "1e3", "1E3", "1e-8", " 1", "1 ", "1\n", "\u0661\u0662"),
    *("\uff11", "\u00b2", "1,000", "1.2.3", ".", "", "-", "+", "--1", "nan", "NaN", "inf", "sNaN"),
)


@pytest.mark.parametrize("text", STRANGE)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(AmountError):
        units(text)
    with pytest.raises(AmountError):
        ALICE.transfer(ALICE, text)
    with pytest.raises(AmountError):
        ALICE.buy("1", None, text, None, matcher=ALICE.public_key)
    with pytest.raises(InputError):
        read_coins(text)
    with pytest.raises(click.BadParameter):
        WHOLE.convert(text, None, None)
    with pytest.raises(click.BadParameter):
        SHARE.convert(text, None, None)
    stream = MatcherStream([(None, None)])
    message = {"T": "ob", "S": "A-B", "U": 0, "b": [[text, "1"]], "a": []}
    import msgspec

    with pytest.raises(NodeBroken):
        stream.received(msgspec.json.encode(message))
    assert retry_after(Answer(503, b"", {b"retry-after": text.encode()})) == 0


def test_what_is_one() -> None:
    assert [units(text) for text in ("1", "1.5", "+1", ".5", "1.", "0.00000001", "-2")] == [
        *(10**8, 150_000_000, 10**8, 50_000_000, 10**8, 1, -2 * 10**8),
    ]
    assert units(Decimal("1e2")) == 10**10
    assert WHOLE.convert("-15", None, None) == -15
    assert retry_after(Answer(503, b"", {b"retry-after": b"15"})) == 15
    assert read_coins("1000 wavelets") == 1000
