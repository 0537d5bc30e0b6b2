"""The library and a signer that keeps keys: what is signed there, approved by others, refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest

from soliton import (
    ApprovalNeeded,
    Asset,
    AsyncSigner,
    ClientError,
    NodeRefused,
    Order,
    Signer,
    StillWaiting,
)
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from tests.clients.test_kept_signer import kept
from tests.signer.kept import (
    ALL,
    APPROVED,
    COLD,
    COLD_ADDRESS,
    HOT,
    HOT_ADDRESS,
    HOT_TEXT,
    KEYS,
    PASSWORD,
    Place,
)

RULES: Final = APPROVED + ALL.replace('"transfer", "data"', '"data"')
GOLD: Final = Asset(base58.encode(b"\5" * 32), 2)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = Place(tmp_path_factory.mktemp("kept"), RULES)
    with kept(place, "http://nobody.test") as found:
        with Signer(found, api_key=KEYS["bot"]) as signer:
            known = signer.keys()
            (key,) = [each for each in known if each.name == "hot"]
            assert (key.address, key.public_key, key.locked) == (HOT_ADDRESS, HOT_TEXT, True)
            opened = signer.unlock(PASSWORD, seconds=600)
            assert [each.unlocked_for for each in opened] == [600, 600]
        yield found


def test_what_is_made_comes_back_signed(url: str) -> None:
    with Signer(url, api_key=KEYS["bot"]) as signer:
        hot = signer.account("hot")
        assert (hot.address, hot.can_sign) == (HOT_ADDRESS, False)
        draft = hot.data({"n": 2**62}, fee=100_000)
        signed = signer.sign(draft)
        assert signed.id == draft.id and verify(HOT.public_key, signed.body, signed.proofs[0])
        order = signer.sign(hot.sell("1", GOLD, "2", None, matcher=base58.encode(COLD.public_key)))
        assert isinstance(order, Order) and verify(HOT.public_key, order.body, order.proofs[0])
        first, second = signer.sign_all([draft, {"cancelOrder": {"orderId": order.id}}], key="hot")
        assert first.id == draft.id and second["orderId"] == order.id
        other = signer.account("cold").data({"k": True}, fee=200_000)
        shared = signer.sign(other, key="hot", proof_at=1)
        assert [len(each) for each in shared.proofs] == [0, 64]
        message = signer.sign_message("hello", key=HOT_ADDRESS)
        body = b"\xff\xff\xff\x01hello"
        assert verify(HOT.public_key, body, base58.decode(message["signature"]))
        with pytest.raises(ClientError, match="no such key"):
            signer.account("warm")


def test_others_approve(url: str) -> None:
    bot, alice, bob = (Signer(url, api_key=KEYS[name]) for name in ("bot", "alice", "bob"))
    draft = bot.account("hot").transfer(COLD_ADDRESS, 7, fee=100_000)
    with pytest.raises(ApprovalNeeded) as caught:
        bot.sign(draft, id="once")
    name = caught.value.pending
    (shown,) = [each for each in alice.all_pending() if each.id == name]
    assert (shown.state, shown.needed, shown.caller) == ("waiting", 2, "bot")
    details = alice.pending(name)
    assert details.totals[0]["amount"] == 7 and details.windows[0]["after"] == 7
    with pytest.raises(StillWaiting):
        bot.approved(name, seconds=0)
    assert alice.approve(name).approved == ["alice"]
    assert bob.approve(name).state == "signed"
    assert bot.approved(name).signed["id"] == draft.id
    assert bot.sign(draft, id="once").proofs[0]
    with pytest.raises(ApprovalNeeded) as caught:
        bot.sign(bot.account("hot").transfer(COLD_ADDRESS, 8, fee=100_000))
    assert alice.refuse(caught.value.pending).refused_by == "alice"
    with pytest.raises(ClientError, match="alice has refused it"):
        bot.approved(caught.value.pending)
    for each in (bot, alice, bob):
        each.close()


def test_refusals_name_the_rule(url: str) -> None:
    with Signer(url, api_key=KEYS["bot"]) as signer:
        with pytest.raises(NodeRefused) as caught:
            signer.sign(signer.account("hot").transfer(COLD_ADDRESS, 101, fee=100_000))
        error = caught.value
        told = error.code, error.details["rule"], error.details["condition"]
        assert told == (7028, "large", "amounts")
        assert "operate" in signer.caller().may and signer.policy()["source"] == RULES
        assert signer.audit(limit=1)["lines"][0]["event"] == "refuse"
        assert signer.verify_audit()["sound"] is True
        with pytest.raises(NodeRefused):
            signer.sign_and_broadcast(signer.account("hot").transfer(COLD_ADDRESS, 101, fee=1))


def test_the_same_to_be_awaited(url: str) -> None:
    async def main() -> Any:
        async with AsyncSigner(url, api_key=KEYS["bot"]) as signer:
            hot = await signer.account("hot")
            drafts = [hot.data({"n": number}, fee=100_000) for number in range(5)]
            return drafts, await asyncio.gather(*map(signer.sign, drafts))

    drafts, signed = asyncio.run(main())
    assert [each.id for each in signed] == [each.id for each in drafts]


def test_both_have_the_same_methods() -> None:
    names, others = (
        {name for name in dir(kind) if not name.startswith("_")} for kind in (Signer, AsyncSigner)
    )
    assert names == others


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(Signer("http://127.0.0.1:1", api_key="secret"))
