"""An account with a script mines from feature 17 on only.

Expected values: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/mining/Miner.scala``
(``isAllowedForMining``), which ``state/appender/package.scala`` (``validateBlock``) asks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.chain.features import Feature
from soliton.chain.transactions.set_script import SetScript
from soliton.ledger import headers
from soliton.ledger.errors import BlockRejected
from soliton.node.miner import CannotMine, next_slot
from soliton.ride.compiler.compile import compile_source
from tests.node.chains import RICH, forge, mine, now, old_network, open_chain, signed

SCRIPT = compile_source("{-# STDLIB_VERSION 2 #-}\ntrue").script.source
WORDS = "is scripted and not allowed to forge blocks"


@pytest.mark.parametrize("allowed", [False, True])
def test_a_scripted_account_mines_since_ride_6(
    allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = [each for each in Feature if each < Feature.RIDE_V6 + allowed]
    chain = open_chain(tmp_path, old_network(features))
    script = signed(RICH, 13, SetScript(SCRIPT), version=1, fee=1_000_000, timestamp=now(chain))
    mine(chain, [script])
    if allowed:
        mine(chain)
    else:
        with pytest.raises(CannotMine, match=WORDS):
            next_slot(chain, RICH)
        with monkeypatch.context() as patched:
            patched.setattr(headers, "check_generator", lambda _chain, _generator: None)
            block = forge(chain)
        with pytest.raises(BlockRejected, match=WORDS):
            chain.append(block)
        assert chain.height == 2
    chain.store.close()
