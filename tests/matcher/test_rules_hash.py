"""Equal settings of trading are equal in a topic, others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.cli.matcher_config import matcher_settings
from soliton.matcher.rules_hash import rules_hash

BASE = """
soliton { blockchain.type = devnet, matcher {
  account-storage.in-mem.seed-in-base-64 = "c29tZXRoaW5n"
  %s
} }
"""
PAIR = "WAVES-25FEqEjRkqK6yCkiT7Lz6SAYz7gUFCtxfCChnrVFD5AT"
PLAIN = f"""
  price-assets = [WAVES]
  blacklisted-names = ["scam.*"]
  matching-rules {{ "{PAIR}" = [{{ start-offset = 5, tick-size = 0.1 }}] }}
  order-restrictions {{ "{PAIR}" {{ min-amount = 0.001, max-amount = 1000 }} }}
  order-fee {{ "-1" {{ mode = percent, percent {{ asset-type = amount, min-fee = 0.1 }} }} }}
"""


def hash_of(directory: Path, text: str) -> bytes:
    path = directory / "matcher.conf"
    path.write_text(BASE % text)
    return rules_hash(matcher_settings(path, None, None).trading)


def test_the_same_in_other_words(tmp_path: Path) -> None:
    other = PLAIN.replace("0.1 }", "0.10 }").replace("1000 }", "1000.0 }") + "rest-api.port = 1"
    assert hash_of(tmp_path, PLAIN) == hash_of(tmp_path, other)


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("start-offset = 5", "start-offset = 6"),
        ("tick-size = 0.1", "tick-size = 0.2"),
        ("scam", "fraud"),
        ("[WAVES]", "[]"),
        ("1000", "1001"),
        ("min-fee = 0.1", "min-fee = 0.2"),
    ],
)
def test_whatever_differs_makes_another(tmp_path: Path, words: str, others: str) -> None:
    assert words in PLAIN
    assert hash_of(tmp_path, PLAIN) != hash_of(tmp_path, PLAIN.replace(words, others))
