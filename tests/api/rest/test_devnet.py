"""A private chain obeys: blocks, time, snapshots, other histories and state by hand."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from soliton.api.app import build_app
from soliton.api.rest import devnet
from soliton.chain.transactions import codec
from soliton.controls.clock import MAX_TIME_MS, DevClock
from soliton.controls.control import MAX_IMPERSONATED, MAX_PROVEN, Controls
from soliton.controls.mining import MANUAL
from soliton.controls.reorganizing import MAX_REORG
from soliton.crypto import base58
from soliton.ledger import rules_at
from soliton.ledger.editing import MAX_EDITS
from soliton.ledger.state import ASSET_VOLUMES
from soliton.node.events import BlockAppended, NodeEvent, RolledBack
from soliton.node.node import Node
from soliton.ride.compiler import compile_source
from tests.amounts import times
from tests.api.chain import (
    AMOUNT,
    FEE,
    JSON,
    OTHER,
    OTHER_ADDRESS,
    RICH,
    RICH_ADDRESS,
    PrivateChain,
    context_of,
)
from tests.api.client import call
from tests.api.rest.test_assets import issue

HOUR = 3_600_000
DAPP = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func deposit() = [IntegerEntry("x", 1)]
@Verifier(tx)
func verify() = false
"""


class Obedient(PrivateChain):
    """A private chain with its controls; its machine's clock stands still unless it ticks."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        settings = self.node.settings
        wallet = self.node.wallet
        self.node.close()
        self.clock = DevClock(lambda: self.now)
        self.node = Node(settings, wallet, clock=self.clock, durable=False)
        self.controls = Controls(
            self.node, RICH, self.clock, mode=MANUAL, prepare=lambda: self.mine()
        )
        context = context_of(self.node)
        self.app = build_app(replace(context, controls=self.controls, obeys=True))
        self.mine()

    def records(self) -> dict[bytes, bytes]:
        """All that the store holds."""
        return dict(self.node.store.scan(b"", b""))

    async def do(self, line: str, body: object = None) -> Any:
        """Ask a route that agrees: what it answers."""
        answer = await self.ask(line, body)
        assert answer.status == 200, answer.body
        return answer.json()

    async def ask(self, line: str, body: object = None) -> Any:
        encoded = b"" if body is None else msgspec.json.encode(body)
        return await call(self.app, line, encoded, JSON if body is not None else {})

    async def refusal(self, line: str, body: object = None) -> str:
        """Ask a route that refuses: its message."""
        answer = await self.ask(line, body)
        assert answer.status == 400, answer.body
        message: str = answer.json()["message"]
        return message

    async def balance(self, address: str = OTHER_ADDRESS) -> int:
        found: int = (await self.do(f"GET /addresses/balance/{address}"))["balance"]
        return found


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Obedient]:
    made = Obedient(tmp_path)
    yield made
    made.node.close()


async def test_blocks_are_mined_by_number(chain: Obedient) -> None:
    sent = chain.send(chain.transfer())
    tip = await chain.do("POST /devnet/mine?blocks=3")
    assert tip["height"] == 5
    assert chain.node.store.transaction_height(sent.id) == 3
    assert (await chain.do("GET /blocks/headers/last"))["id"] == tip["id"]


MANY = times(2_000, 10_000)


async def test_thousands_of_blocks_with_an_interval(chain: Obedient) -> None:
    before = (await chain.do("GET /blocks/headers/last"))["timestamp"]
    tip = await chain.do(f"POST /devnet/mine?blocks={MANY}&interval=60000")
    assert tip["height"] == MANY + 2
    assert tip["timestamp"] == before + MANY * 60_000
    # Time goes on from there, and clients with clocks of their own are served as ever.
    assert (await chain.do("GET /utils/time"))["NTP"] >= tip["timestamp"]
    answer = await chain.broadcast(chain.transfer())
    assert answer.status == 200, answer.body
    await chain.do("POST /devnet/mine")
    assert await chain.balance() == AMOUNT
    assert (await chain.do("GET /node/status"))["changedByHand"] == 4


async def test_few_blocks_are_such_as_every_node_accepts(chain: Obedient) -> None:
    await chain.do(f"POST /devnet/mine?blocks={MAX_PROVEN}")
    assert "changedByHand" not in await chain.do("GET /node/status")


@pytest.mark.parametrize(
    ("query", "words"),
    [("blocks=0", "1 to"), ("blocks=1000001", "1 to"), (f"interval={2**62}", "an interval")],
)
async def test_absurd_numbers_of_blocks_are_refused(
    chain: Obedient, query: str, words: str
) -> None:
    assert words in await chain.refusal(f"POST /devnet/mine?{query}")


async def test_mining_changes_its_mode(chain: Obedient) -> None:
    assert await chain.do("POST /devnet/mining?mode=interval&every=5000") == {
        "mode": "interval",
        "seconds": 5.0,
    }
    assert (await chain.do("GET /devnet"))["mining"]["mode"] == "interval"
    assert "there is no mining" in await chain.refusal("POST /devnet/mining?mode=often")
    assert "seconds" in await chain.refusal("POST /devnet/mining?mode=interval&every=1")


async def test_time_travels_stands_and_goes_on(chain: Obedient) -> None:
    start = (await chain.do("GET /devnet/clock"))["time"]
    assert (await chain.do(f"POST /devnet/clock?travel={HOUR}"))["time"] == start + HOUR
    await chain.do("POST /devnet/clock?frozen=true")
    chain.tick(HOUR)
    assert (await chain.do("GET /utils/time"))["NTP"] == start + HOUR
    await chain.do("POST /devnet/clock?frozen=false")
    chain.tick(5)
    assert (await chain.do("GET /utils/time"))["NTP"] == start + HOUR + 5
    await chain.do(f"POST /devnet/clock?nextBlock={start + 9 * HOUR}")
    assert (await chain.do("POST /devnet/mine"))["timestamp"] == start + 9 * HOUR
    chain.tick(7)
    assert (await chain.do("POST /devnet/mine"))["timestamp"] == start + 9 * HOUR + 7


async def test_time_does_not_go_before_the_last_block(chain: Obedient) -> None:
    last = (await chain.do("GET /blocks/headers/last"))["timestamp"]
    for name in ("set", "nextBlock"):
        message = await chain.refusal(f"POST /devnet/clock?{name}={last - 1}")
        assert "before the last block" in message
    assert "one of" in await chain.refusal("POST /devnet/clock")
    assert "one of" in await chain.refusal("POST /devnet/clock?travel=1&frozen=true")
    assert "a time of" in await chain.refusal(f"POST /devnet/clock?travel={2**62}")


async def test_a_snapshot_is_reverted_to_often_and_forward_too(chain: Obedient) -> None:
    first = await chain.do("POST /devnet/snapshots")
    at_first = chain.records()
    chain.send(chain.transfer())
    await chain.do("POST /devnet/mine?blocks=2")
    waiting = chain.send(chain.transfer())
    second, at_second = await chain.do("POST /devnet/snapshots"), chain.records()
    for _ in range(2):
        assert await chain.do(f"POST /devnet/snapshots/{first['id']}/revert") == {"done": True}
        assert chain.records() == at_first
        assert await chain.balance() == 0
        assert not len(chain.node.pool)
        await chain.do("POST /devnet/mine?blocks=5")
    assert await chain.do(f"POST /devnet/snapshots/{second['id']}/revert") == {"done": True}
    assert chain.records() == at_second
    assert await chain.balance() == AMOUNT
    assert [each.id for each in chain.node.pool.transactions()] == [waiting.id]
    listed = (await chain.do("GET /devnet"))["snapshots"]
    assert listed == [first, second]


async def test_unknown_snapshots_are_no_error(chain: Obedient) -> None:
    for name in ("0x7", "7", "f" * 16):
        assert await chain.do(f"POST /devnet/snapshots/{name}/revert") == {"done": False}
    taken = await chain.do("POST /devnet/snapshots")
    assert await chain.do(f"DELETE /devnet/snapshots/{taken['id']}") == {"done": True}
    assert await chain.do(f"POST /devnet/snapshots/{taken['id']}/revert") == {"done": False}
    assert (await chain.do("POST /devnet/snapshots"))["id"] != taken["id"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("POST /devnet/mine?blocks=abc",
         "blocks is 'abc': expected a whole number from 0 to 2147483647"),
        ("POST /devnet/mine?blocks=-1", "blocks is '-1': expected"),
        ("POST /devnet/mine?blocks=1000000000000", "blocks is '1000000000000': expected"),
        ("POST /devnet/mine?blocks=2000000000", "2000000000 blocks: 1 to 1000000 are allowed"),
        ("POST /devnet/mine?blocks=", "blocks is '': expected"),
        ("POST /devnet/mine?block=3", "no parameter is called block: there are blocks, interval"),
        ("POST /devnet/clock?travel=abc", "travel is 'abc': expected a whole number from 0"),
        ("POST /devnet/clock?frozen=perhaps", "frozen is 'perhaps': expected true or false"),
        ("POST /devnet/maker?on=maybe", "on is 'maybe': expected true or false"),
        ("POST /devnet/maker", "on is missing: expected true or false"),
        ("POST /devnet/mining", "mode is missing"),
        ("POST /devnet/reset?hard=yes", "no parameter is called hard: there are none"),
        ("POST /devnet/snapshots/x/revert", "id is 'x': expected an id such as 0x1"),
        ("DELETE /devnet/snapshots/-0x1", "id is '-0x1': expected"),
        ("GET /blocks/wait/x", "height is 'x': expected a whole number"),
        ("GET /blocks/wait/2?timeout=2147483648", "timeout is '2147483648': expected"),
        ("GET /blocks/wait/2?time=1", "no parameter is called time: there are timeout"),
        (f"GET /transactions/wait/{'1' * 32}?confirmations=x", "confirmations is 'x': expected"),
        ("GET /readyz?maxAge=soon", "maxAge is 'soon': expected"),
        ("GET /readyz?maxage=1", "no parameter is called maxage: there are maxAge"),
        ("POST /transactions/simulate?unconfirmed=perhaps", "unconfirmed is 'perhaps': expected"),
        ("POST /devnet/edits", "the body has to be JSON, with `Content-Type: application/json`"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_named(chain: Obedient, line: str, words: str) -> None:
    height = chain.node.chain.height
    answer = await chain.ask(line)
    assert answer.status == 400, answer.body
    assert words in msgspec.json.decode(answer.body)["message"]
    assert chain.node.chain.height == height


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/devnet/reorg", {"depth": 1, "kep": False}, "no member is called 'kep'"),
        ("/devnet/edits", {"edit": []}, "no member is called 'edit': edits"),
    ],
)
async def test_members_without_a_meaning_are_named(
    chain: Obedient, path: str, body: dict[str, object], words: str
) -> None:
    answer = await chain.ask(f"POST {path}", body)
    assert answer.status == 400 and words in msgspec.json.decode(answer.body)["message"]


async def test_reverting_brings_clock_and_mining_back(chain: Obedient) -> None:
    taken = await chain.do("POST /devnet/snapshots")
    before = await chain.do("GET /devnet/clock")
    await chain.do(f"POST /devnet/clock?travel={HOUR}")
    await chain.do("POST /devnet/mining?mode=interval&every=60000")
    await chain.do(f"POST /devnet/impersonated/{OTHER_ADDRESS}")
    await chain.do(f"POST /devnet/snapshots/{taken['id']}/revert")
    assert await chain.do("GET /devnet/clock") == before
    state = await chain.do("GET /devnet")
    assert state["mining"]["mode"] == "manual"
    assert state["impersonated"] == []


async def test_listeners_are_notified_of_what_is_undone(chain: Obedient) -> None:
    told: list[NodeEvent] = []
    taken = await chain.do("POST /devnet/snapshots")
    await chain.do("POST /devnet/mine?blocks=2")
    ahead = await chain.do("POST /devnet/snapshots")
    chain.node.events.subscribe(told.append)
    await chain.do(f"POST /devnet/snapshots/{taken['id']}/revert")
    await chain.do(f"POST /devnet/snapshots/{ahead['id']}/revert")
    heights = [
        (type(each), each.height) for each in told if isinstance(each, RolledBack | BlockAppended)
    ]
    assert heights == [(RolledBack, 2), (BlockAppended, 3), (BlockAppended, 4)]


async def test_a_reorganisation_takes_chosen_transactions(chain: Obedient) -> None:
    first, second = chain.send(chain.transfer()), chain.transfer()
    await chain.do("POST /devnet/mine?blocks=2")
    ids = [base58.encode(chain.node.chain.meta(at).id) for at in (3, 4)]
    done = await chain.do(
        "POST /devnet/reorg", {"depth": 2, "transactions": [[], [codec.to_json(second)]]}
    )
    assert done["height"] == 3
    assert done["removed"] == ids
    assert not set(done["added"]) & set(ids)
    assert done["waiting"] == [base58.encode(first.id)]
    assert chain.node.store.transaction_height(second.id) == 4
    assert first.id in chain.node.pool
    await chain.do("POST /devnet/mine")
    assert await chain.balance() == 2 * AMOUNT


async def test_a_reorganisation_that_cannot_be_changes_nothing(chain: Obedient) -> None:
    await chain.do("POST /devnet/mine?blocks=2")
    before = chain.records()
    poor = chain.transfer(keys=OTHER, to=RICH_ADDRESS)
    body = {"depth": 1, "transactions": [[codec.to_json(poor)]]}
    assert "does not apply at 4" in await chain.refusal("POST /devnet/reorg", body)
    for depth in (0, 4, MAX_REORG + 1, -1):
        assert "are possible" in await chain.refusal("POST /devnet/reorg", {"depth": depth})
    assert "for 2 blocks of 1" in await chain.refusal(
        "POST /devnet/reorg", {"depth": 1, "transactions": [[], []]}
    )
    for wrong in ({"depth": "1"}, {"depth": 1, "keep": 1}, {"depth": 1, "transactions": [1]}):
        await chain.refusal("POST /devnet/reorg", wrong)
    assert chain.records() == before


async def test_a_reorganisation_whose_transactions_do_not_fit_changes_nothing(
    chain: Obedient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chain.do("POST /devnet/mine?blocks=2")
    monkeypatch.setattr(rules_at, "MAX_TRANSACTION_BYTES_IN_BLOCK", 300)
    chain.node.chain.rules = rules_at.RuleBook(chain.node.network)
    before = chain.records()
    body = {"depth": 1, "transactions": [[codec.to_json(chain.transfer()) for _ in range(2)]]}
    assert "do not fit" in await chain.refusal("POST /devnet/reorg", body)
    assert chain.records() == before


async def test_who_is_impersonated_needs_no_proof(chain: Obedient) -> None:
    edits = [
        {"kind": "balance", "address": OTHER_ADDRESS, "amount": 10 * AMOUNT},
        {"kind": "script", "address": OTHER_ADDRESS, "script": script(DAPP)},
    ]
    await chain.do("POST /devnet/edits", {"edits": edits})
    unproven = codec.to_json(chain.transfer(keys=OTHER, to=RICH_ADDRESS, fee=5 * FEE)) | {
        "proofs": []
    }
    refused = await chain.post("/transactions/broadcast", unproven)
    assert refused.status == 400
    assert await chain.do(f"POST /devnet/impersonated/{OTHER_ADDRESS}") == {"done": True}
    taken = await chain.post("/transactions/broadcast", unproven)
    assert taken.status == 200, taken.body
    await chain.do("POST /devnet/mine")
    assert await chain.balance() == 9 * AMOUNT - 5 * FEE
    assert await chain.do(f"DELETE /devnet/impersonated/{OTHER_ADDRESS}") == {"done": True}
    again = codec.to_json(chain.transfer(keys=OTHER, to=RICH_ADDRESS, fee=5 * FEE)) | {"proofs": []}
    assert (await chain.post("/transactions/broadcast", again)).status == 400
    assert "address" in await chain.refusal("POST /devnet/impersonated/3")


async def test_what_waits_unproven_goes_when_its_sender_is_impersonated_no_more(
    chain: Obedient,
) -> None:
    edit = {"kind": "balance", "address": OTHER_ADDRESS, "amount": 10 * AMOUNT}
    await chain.do("POST /devnet/edits", {"edits": [edit]})
    await chain.do(f"POST /devnet/impersonated/{OTHER_ADDRESS}")
    proven = codec.to_json(chain.transfer(keys=OTHER, to=RICH_ADDRESS))
    unproven = codec.to_json(chain.transfer(keys=OTHER, to=RICH_ADDRESS)) | {"proofs": []}
    for each in (unproven, proven):
        answer = await chain.post("/transactions/broadcast", each)
        assert answer.status == 200, answer.body
    await chain.do(f"DELETE /devnet/impersonated/{OTHER_ADDRESS}")
    waiting = await chain.do("GET /transactions/unconfirmed")
    assert [each["id"] for each in waiting] == [proven["id"]]


def script(source: str) -> str:
    return "base64:" + base64.b64encode(compile_source(source).script.source).decode()


async def test_state_is_edited_and_stays_consistent(chain: Obedient) -> None:
    asset = issue(chain, 1_000)
    name = base58.encode(asset)
    key = base58.encode(OTHER.public_key)
    edits: list[dict[str, object]] = [
        {"kind": "balance", "address": OTHER_ADDRESS, "amount": 7 * AMOUNT},
        {"kind": "assetBalance", "address": OTHER_ADDRESS, "assetId": name, "amount": 50},
        {"kind": "data", "address": OTHER_ADDRESS, "key": "n", "type": "integer", "value": 5},
        {"kind": "data", "address": OTHER_ADDRESS, "key": "b", "type": "binary", "value": "AQI="},
        {"kind": "data", "address": OTHER_ADDRESS, "key": "s", "type": "string", "value": "x"},
        {"kind": "data", "address": OTHER_ADDRESS, "key": "t", "type": "boolean", "value": True},
        {"kind": "script", "address": OTHER_ADDRESS, "script": script(DAPP), "publicKey": key},
        {"kind": "alias", "alias": "somebody", "address": OTHER_ADDRESS},
        {"kind": "lease", "senderPublicKey": key, "recipient": RICH_ADDRESS, "amount": AMOUNT},
    ]
    before = await chain.do("GET /blockchain/rewards")
    tip = await chain.do("POST /devnet/edits", {"edits": edits})
    assert tip["height"] == 4
    details = await chain.do(f"GET /addresses/balance/details/{OTHER_ADDRESS}")
    assert (details["regular"], details["available"]) == (7 * AMOUNT, 6 * AMOUNT)
    held = await chain.do(f"GET /assets/balance/{OTHER_ADDRESS}/{name}")
    assert held["balance"] == 50
    assert (await chain.do(f"GET /assets/details/{name}"))["quantity"] == 1_050
    data = await chain.do(f"GET /addresses/data/{OTHER_ADDRESS}")
    assert {each["key"]: each["value"] for each in data} == {
        "n": 5,
        "b": "base64:AQI=",
        "s": "x",
        "t": True,
    }
    info = await chain.do(f"GET /addresses/scriptInfo/{OTHER_ADDRESS}")
    assert list(info["callableComplexities"]) == ["deposit"]
    assert await chain.do(f"GET /alias/by-address/{OTHER_ADDRESS}") == ["alias:R:somebody"]
    leases = await chain.do(f"GET /leasing/active/{OTHER_ADDRESS}")
    assert [each["amount"] for each in leases] == [AMOUNT]
    after = await chain.do("GET /blockchain/rewards")
    reward = after["currentReward"]
    assert after["totalWavesAmount"] - before["totalWavesAmount"] == 7 * AMOUNT + reward
    end = {"kind": "cancelLease", "leaseId": leases[0]["id"]}
    gone = {"kind": "data", "address": OTHER_ADDRESS, "key": "n"}
    none = {"kind": "script", "address": OTHER_ADDRESS, "script": None}
    await chain.do("POST /devnet/edits", {"edits": [end, gone, none]})
    assert await chain.do(f"GET /leasing/active/{OTHER_ADDRESS}") == []
    assert len(await chain.do(f"GET /addresses/data/{OTHER_ADDRESS}")) == 3
    # What was edited is undone with its block, and a chain without it says no more of it.
    assert (await chain.do("GET /node/status"))["changedByHand"] == 4
    chain.node.chain.rollback(3)
    assert await chain.balance() == 0
    assert chain.node.store.get(ASSET_VOLUMES, asset).quantity == 1_000  # type: ignore[union-attr]
    assert "changedByHand" not in await chain.do("GET /node/status")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"kind": "balance", "address": OTHER_ADDRESS, "amount": -1}, "an amount of -1"),
        ({"kind": "balance", "address": OTHER_ADDRESS, "amount": 2**63}, ""),
        ({"kind": "balance", "address": OTHER_ADDRESS, "amount": 2**63 - 1}, "wavelets"),
        ({"kind": "balance", "address": "3x", "amount": 1}, "invalid address"),
        ({"kind": "balance", "address": OTHER_ADDRESS}, "amount"),
        ({"kind": "money", "address": OTHER_ADDRESS}, "money"),
        (
            {"kind": "assetBalance", "address": OTHER_ADDRESS, "assetId": "11", "amount": 1},
            "an asset's id of 2 bytes",
        ),
        ({"kind": "data", "address": OTHER_ADDRESS, "key": ""}, "a key has"),
        (
            {"kind": "data", "address": OTHER_ADDRESS, "key": "k", "type": "integer", "value": "1"},
            "is no integer",
        ),
        ({"kind": "script", "address": OTHER_ADDRESS, "script": "base64:AQ=="}, ""),
        ({"kind": "alias", "alias": "No", "address": OTHER_ADDRESS}, "alias"),
        (
            {
                "kind": "lease",
                "senderPublicKey": base58.encode(OTHER.public_key),
                "recipient": RICH_ADDRESS,
                "amount": 1,
            },
            "Cannot lease more than own",
        ),
        ({"kind": "cancelLease", "leaseId": base58.encode(bytes(range(32)))}, "there is no lease"),
    ],
)
async def test_edits_that_cannot_be_change_nothing(
    chain: Obedient, edit: dict[str, object], words: str
) -> None:
    before = chain.records()
    message = await chain.refusal("POST /devnet/edits", {"edits": [edit]})
    assert words.lower() in message.lower()
    assert chain.records() == before


async def test_edits_have_a_limit(chain: Obedient) -> None:
    one = {"kind": "balance", "address": OTHER_ADDRESS, "amount": 1}
    assert "are allowed" in await chain.refusal(
        "POST /devnet/edits", {"edits": [one] * (MAX_EDITS + 1)}
    )
    assert "no change" in await chain.refusal("POST /devnet/edits", {"edits": []})
    await chain.refusal("POST /devnet/edits", {"edits": 1})


async def test_transactions_are_dropped(chain: Obedient) -> None:
    sent = [chain.send(chain.transfer()) for _ in range(3)]
    name = base58.encode(sent[1].id)
    assert await chain.do(f"POST /devnet/drop?id={name}") == {"dropped": [name]}
    assert len((await chain.do("POST /devnet/drop"))["dropped"]) == 2
    assert not len(chain.node.pool)
    assert await chain.do(f"POST /devnet/drop?id={name}") == {"dropped": []}


async def test_a_reset_begins_anew(chain: Obedient) -> None:
    before = await chain.do("GET /devnet")
    taken = await chain.do("POST /devnet/snapshots")
    chain.send(chain.transfer())
    await chain.do("POST /devnet/mine?blocks=3")
    chain.send(chain.transfer())
    assert (await chain.do("POST /devnet/reset"))["height"] == 2
    assert await chain.balance() == 0
    assert not len(chain.node.pool)
    assert await chain.do(f"POST /devnet/snapshots/{taken['id']}/revert") == {"done": False}
    after = await chain.do("GET /devnet")
    assert (after["instance"], after["resets"]) == (before["instance"], 1)
    assert (await chain.do("POST /devnet/snapshots"))["id"] != taken["id"]


async def test_a_chain_is_dumped_and_loaded(chain: Obedient, tmp_path: Path) -> None:
    chain.send(chain.transfer())
    await chain.do("POST /devnet/mine")
    edit = {"kind": "balance", "address": OTHER_ADDRESS, "amount": 3 * AMOUNT}
    await chain.do("POST /devnet/edits", {"edits": [edit]})
    await chain.do("POST /devnet/mine?blocks=200")
    await chain.do(f"POST /devnet/impersonated/{OTHER_ADDRESS}")
    unproven = codec.to_json(chain.transfer(keys=OTHER, to=RICH_ADDRESS)) | {"proofs": []}
    assert (await chain.post("/transactions/broadcast", unproven)).status == 200
    await chain.do("POST /devnet/mine")
    waiting = chain.send(chain.transfer())
    dumped = (await chain.ask("GET /devnet/state")).body
    records = chain.records()

    other = Obedient(tmp_path / "other")
    answer = await call(other.app, "POST /devnet/state", dumped)
    assert answer.status == 200, answer.body
    found: Any = answer.json()
    assert found["height"] == 205
    assert other.records() == records
    assert [each.id for each in other.node.pool.transactions()] == [waiting.id]
    assert (await other.ask("GET /devnet/state")).body == dumped

    for wrong, words in (
        (b"", "no state"),
        (b"nothing", "no state"),
        (dumped[: len(dumped) // 2], "damaged"),
    ):
        refused = await call(other.app, "POST /devnet/state", wrong)
        assert refused.status == 400
        said: Any = refused.json()
        assert words in said["message"]
    assert other.records() == records
    other.node.close()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"clock": {"offset": 2**63}}, "a time of"),
        ({"clock": {"offset": -(10**18)}}, "a time of"),
        ({"clock": {"frozenAt": MAX_TIME_MS + 1}}, "a time of"),
        ({"clock": {"nextBlock": 2**62}}, "a time of"),
        ({"clock": {"nextBlock": -1}}, "a time of"),
        ({"impersonated": ["AA=="]}, "addressBytes length"),
        ({"impersonated": [base64.b64encode(bytes(26)).decode()]}, "address version"),
        ({"impersonated": ["AA=="] * (MAX_IMPERSONATED + 1)}, "accounts at once"),
        ({"height": -1}, "the state has the hash"),
        ({"version": 2}, "can be read"),
    ],
)
async def test_what_no_chain_can_be_is_not_loaded(
    chain: Obedient, told: dict[str, object], words: str
) -> None:
    first, _, rest = gzip.decompress((await chain.ask("GET /devnet/state")).body).partition(b"\n")
    records, before = chain.records(), await chain.do("GET /devnet")
    hostile = gzip.compress(
        msgspec.json.encode({**msgspec.json.decode(first), **told}) + b"\n" + rest
    )
    answer = await call(chain.app, "POST /devnet/state", hostile)
    said: Any = answer.json()
    assert (answer.status, words in said["message"]) == (400, True), said
    assert chain.records() == records
    assert await chain.do("GET /devnet") == before


@pytest.mark.parametrize("text", [b'{"more":' + b"[" * 100_000, b'{"format":"\xff"}'])
async def test_a_file_that_cannot_be_read_is_refused(chain: Obedient, text: bytes) -> None:
    answer = await call(chain.app, "POST /devnet/state", gzip.compress(text))
    assert answer.status == 400, answer.body


async def test_the_last_time_of_all_does_not_end_a_chain(chain: Obedient) -> None:
    await chain.do(f"POST /devnet/clock?set={MAX_TIME_MS}")
    tip = await chain.do("POST /devnet/mine?blocks=200&interval=1000")
    assert tip["timestamp"] == MAX_TIME_MS + 199_000
    assert (await chain.do("GET /devnet/clock"))["time"] >= tip["timestamp"]
    assert (await chain.do("POST /devnet/reset"))["height"] == 2
    assert (await chain.do("GET /devnet/clock"))["clock"] == {}


async def test_an_interval_takes_no_time_back(chain: Obedient) -> None:
    now = (await chain.do(f"POST /devnet/clock?travel={HOUR}"))["time"]
    await chain.do("POST /devnet/mine?blocks=3&interval=1000")
    last = (await chain.do("GET /devnet"))["height"]
    times = [chain.node.chain.meta(height).timestamp for height in range(last - 2, last + 1)]
    assert times == [now, now + 1_000, now + 2_000]
    assert (await chain.do("GET /devnet/clock"))["time"] == times[-1]


async def test_only_a_chain_that_obeys_has_these_routes(tmp_path: Path) -> None:
    usual = PrivateChain(tmp_path)
    for route in devnet.ROUTES:
        path = route.path.replace("{id}", "0x1").replace("{address}", OTHER_ADDRESS)
        assert (await call(usual.app, f"{route.methods[0]} {path}")).status == 404
    usual.node.close()


PAGES = {
    "another page": ("https://evil.example", "127.0.0.1:6869", 403),
    "a file, or a sandbox": ("null", "127.0.0.1:6869", 403),
    "a page whose name leads here": ("http://evil.example:6869", "evil.example:6869", 403),
    "another port of this machine": ("http://127.0.0.1:8080", "127.0.0.1:6869", 403),
    "a page that is named": ("https://ide.example", "127.0.0.1:6869", 200),
    "the devnet's own page": ("http://127.0.0.1:6869", "127.0.0.1:6869", 200),
    "the same by its name": ("http://localhost:6869", "localhost:6869", 200),
    "the same by IPv6": ("http://[::1]:6869", "[::1]:6869", 200),
    "a program": (None, "devnet:6869", 200),
}


@pytest.mark.parametrize("page", PAGES)
async def test_pages_of_foreign_origins_control_nothing(chain: Obedient, page: str) -> None:
    """They need no key, and a browser sends simple requests without asking first."""
    origin, host, status = PAGES[page]
    chain.controls.pages = frozenset({"https://ide.example"})
    headers = {"Host": host, "Content-Type": "text/plain"}
    headers |= {} if origin is None else {"Origin": origin}
    height = chain.node.chain.height
    answer = await call(chain.app, "POST /devnet/mine?blocks=3", b"", headers)
    assert answer.status == status, answer.body
    if status == 403:
        refusal: Any = answer.json()
        assert refusal["error"] == 4030
    assert chain.node.chain.height == height + 3 * (status == 200)
    for path in ("GET /devnet", "GET /devnet/state", "POST /devnet/snapshots"):
        assert (await call(chain.app, path, b"", headers)).status == status
    body = msgspec.json.encode({"id": 1, "jsonrpc": "2.0", "method": "evm_mine", "params": []})
    reply: Any = (
        await call(chain.app, "POST /eth", body, {**headers, "Content-Type": "application/json"})
    ).json()
    assert ("result" in reply) is (status == 200)
    ask = msgspec.json.encode({"id": 1, "jsonrpc": "2.0", "method": "eth_chainId", "params": []})
    reply = (
        await call(chain.app, "POST /eth", ask, {**headers, "Content-Type": "application/json"})
    ).json()
    assert "result" in reply


@pytest.mark.parametrize("value", ["1", "0x1", "-1", "x", "9" * 40, "%20"])
async def test_a_node_without_controls_says_so_whatever_the_path_has(
    chain: Obedient, value: str
) -> None:
    context = replace(context_of(chain.node), no_controls="a network has none")
    app = build_app(context)
    for line in (f"POST /devnet/snapshots/{value}/revert", f"DELETE /devnet/snapshots/{value}"):
        answer = await call(app, line)
        refusal: Any = answer.json()
        assert (answer.status, refusal["error"]) == (404, 4040), answer.body
        assert "a network has none" in refusal["message"]
