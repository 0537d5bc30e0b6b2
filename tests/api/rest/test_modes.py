"""What routes answer for records that the mode of a node does not keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain.networks.sections import InvalidSetting
from soliton.chain.transactions import set_script
from soliton.crypto import base58
from soliton.node.pruning import prune_all
from soliton.node.settings import SettingsError, load_settings
from soliton.p2p.history import NodeHistory
from soliton.ride.compiler import compile_source
from soliton.storage import keeping, layout
from soliton.storage.errors import NotKept
from soliton.storage.keeping import Keeping
from soliton.wire import messages
from soliton.wire.versions import ANNOUNCED
from tests.api.chain import OTHER_ADDRESS, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.blocks import all_blocks

PAGE = "docs/how-to/choose-a-mode.md"
HEIGHT, FROM = 40, 31
DAPP = "{-# STDLIB_VERSION 5 #-}\n{-# CONTENT_TYPE DAPP #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"


@pytest.fixture
def pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateChain]:
    monkeypatch.setattr(keeping, "GENERATING_BLOCKS", 5)
    monkeypatch.setattr(keeping, "LEAST_BLOCKS", 5)
    monkeypatch.setattr("soliton.storage.store.NETWORK_ROLLBACK", 5)
    chain = PrivateChain(
        tmp_path, functionality={"generation_balance_depth_from_50_to_1000_after_height": 10**6}
    )
    chain.node.store._keep(Keeping("pruned", blocks=10, rollback_depth=100))
    script = compile_source(DAPP).script.source
    chain.send(chain.sign(set_script.TYPE, set_script.SetScript(script), 2, fee=10**7))
    chain.mine()
    while chain.node.chain.height < HEIGHT:
        chain.send(chain.transfer(fee=500_000))
        chain.mine()
    chain.node.store._keep(Keeping("pruned", blocks=10, rollback_depth=5))
    prune_all(chain.node.store)
    chain.node.chain._forget()
    yield chain
    chain.node.close()


async def test_routes_name_the_mode_that_has_what_is_gone(pruned: PrivateChain) -> None:
    chain = pruned.node.chain
    assert chain.store.kept.blocks_from == FROM
    old, new = (base58.encode(chain.meta(height).id) for height in (6, FROM))
    for path in (
        "/blocks/at/6", f"/blocks/{old}", "/blocks/seq/6/8",
        f"/blocks/address/{RICH_ADDRESS}/6/8", "/debug/stateHash/6",
        f"/transactions/address/{OTHER_ADDRESS}/limit/10",
    ):  # fmt: skip
        answer = await pruned.get(path, **WITH_KEY)
        found: Any = answer.json()
        assert (answer.status, found["error"]) == (410, 4102), path
        assert "db.mode = full" in found["message"], path
    for path in (
        "/blocks/at/1", f"/blocks/at/{FROM}", f"/blocks/{new}", f"/blocks/seq/{FROM}/{HEIGHT}",
        "/blocks/headers/at/6", f"/blocks/headers/{old}", "/blocks/headers/seq/2/9",
        f"/blocks/height/{old}", f"/debug/stateHash/{FROM}", "/blocks/last",
        f"/addresses/balance/{RICH_ADDRESS}", f"/leasing/active/{RICH_ADDRESS}",
    ):  # fmt: skip
        assert (await pruned.get(path, **WITH_KEY)).status == 200, path
    events = await pruned.get("/events?from=6")
    assert (events.status, f"from can be {FROM}" in str(events.json())) == (410, True)


def test_a_peer_is_not_left_waiting_for_blocks_that_are_gone(pruned: PrivateChain) -> None:
    chain = pruned.node.chain
    told, version = NodeHistory(chain), ANNOUNCED["waves"]
    old, new = chain.meta(6).id, chain.meta(FROM).id
    for request in (
        messages.GetBlock(old),
        messages.GetBlockIds((old,)),
        messages.GetBlockSnapshot(old),
    ):
        with pytest.raises(NotKept):
            told.answer(request, version)
    assert told.answer(messages.GetBlock(new), version) is not None
    ids = told.answer(messages.GetBlockIds((chain.meta(FROM - 1).id,)), version)
    assert isinstance(ids, messages.BlockIds) and len(ids.ids) == HEIGHT - FROM + 2


def test_the_page_shows_settings_and_an_error_as_they_are(tmp_path: Path) -> None:
    texts = {each.language: each.text for each in all_blocks(PAGE)}
    path = tmp_path / "node.conf"
    path.write_text(texts["hocon"])
    db = load_settings(path, data_dir=tmp_path).db
    assert (db.keeping.mode, db.keeping.last_blocks, db.max_rollback_depth) == (
        "pruned",
        2000,
        1000,
    )
    with pytest.raises(NotKept) as caught:
        keeping.Kept("pruned", 8001).need_block(6)
    assert msgspec.json.decode(texts["json"]) == {"error": 4102, "message": str(caught.value)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("mode = small", "archive, full, pruned"),
        ("mode = prunned", "did you mean pruned"),
        ("pruned-blocks = 1099, max-rollback-depth = 100", "1100"),
        ("pruned-blocks = 2000, max-rollback-depth = 2000", "2001"),
        ("mode = pruned, store-transactions-by-address = yes", "a pruned store has no such list"),
        ("cleanup-interval = 0", "1"),
        ("store-lease-states-by-address = perhaps", "yes or no"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "node.conf"
    path.write_text(f"soliton {{ blockchain.type = devnet, db {{ {line} }} }}")
    with pytest.raises((SettingsError, InvalidSetting), match=reason):
        load_settings(path, data_dir=tmp_path)


async def test_a_script_that_asks_for_a_transaction_that_is_gone_gets_no_wrong_answer(
    pruned: PrivateChain,
) -> None:
    for name, gone in ((_id_at(pruned, 6), True), (_id_at(pruned, FROM), False)):
        expression = f"isDefined(transferTransactionById(base58'{base58.encode(name)}'))"
        path = f"/utils/script/evaluate/{RICH_ADDRESS}"
        answer = await pruned.post(path, {"expr": expression})
        found: Any = answer.json()
        assert "db.mode = full" in str(found) if gone else found["result"]["value"] is True


def _id_at(pruned: PrivateChain, height: int) -> bytes:
    """The id of the transaction of the block at a height, also where the block is gone."""
    store = pruned.node.chain.store
    prefix = layout.TRANSACTION
    for key, raw in store.scan(prefix, prefix):
        if layout.decode_location(raw).height == height:
            return key[len(prefix) :]
    raise KeyError(height)
