"""When the library asks again, and what it never sends twice: without a network."""

from __future__ import annotations

import json

import pytest

from soliton import (
    Account,
    ClientError,
    EthereumAccount,
    NodeBroken,
    NodeRefused,
    NodeTimeout,
    NodeUnreachable,
    NotFound,
    OutcomeUnknown,
    ScriptFailed,
    ScriptRefused,
    StillWaiting,
    Transaction,
    TransactionLost,
)
from soliton.client import sending
from soliton.client.records import ride_value
from soliton.client.routes import accounts, blocks, network, scripts, transactions
from soliton.client.steps import Answer
from tests.client.scripted import Scripted, told

ALICE = Account.from_seed("soliton devnet account 1", "R")
BOB = Account.from_seed("soliton devnet account 2", "R")
WALLET = EthereumAccount("0x" + "01" * 32, "R")
BROADCAST = "POST /transactions/broadcast"
STATUS = "POST /transactions/status"
# As the Scala node words it.
TOO_CHEAP = (
    "State check failed. Reason: Transaction sent from smart account. Requires 400000 extra fee. "
    "Fee for TransferTransaction (100000 in WAVES) does not exceed minimal value of 500000 WAVES."
)


def status(name: str, where: str, **more: object) -> Answer:
    return told([{"id": name, "status": where, **more}])


def test_questions_are_asked_again() -> None:
    there = told({"height": 5})
    for trouble in (NodeUnreachable("x"), NodeTimeout("x"), NodeBroken("x")):
        run = Scripted(trouble, there)
        assert run.run(blocks.height) == 5
        assert run.time > 0
    run = Scripted(told({}, 503, retry_after="2"), there)
    assert run.run(blocks.height) == 5 and run.time >= 2
    run = Scripted(told({}, 429, retry_after="nonsense"), there)
    assert run.run(blocks.height) == 5


def test_not_for_ever() -> None:
    run = Scripted(*[NodeTimeout("slow")] * 9, retries=2)
    with pytest.raises(NodeTimeout):
        run.run(blocks.height)
    assert len(run.asked) == 3
    run = Scripted(told({"error": 4290, "message": "Too much"}, 429, retry_after="3600"))
    with pytest.raises(NodeRefused) as refused:
        run.run(blocks.height)
    assert refused.value.code == 4290 and run.time == 0


@pytest.mark.parametrize(
    "trouble",
    [
        NodeTimeout("slow"),
        NodeBroken("lost"),
        told({}, 502),
        # Who answers so is no node, or one behind something that answers for it.
        Answer(200, b"<html>Welcome</html>"),
        Answer(200, b""),
        Answer(200, b'{"id":"\xff"}'),
        Answer(200, b"[" * 100_000),
        told(None),
    ],
)
def test_what_may_have_arrived_is_asked_for(trouble: Answer | NodeTimeout) -> None:
    payment = ALICE.transfer(BOB, 1)
    run = Scripted(trouble, status(payment.id, "unconfirmed"))
    assert run.run(sending.send, payment) == payment
    assert run.paths == [BROADCAST, STATUS]
    # Only where the node does not know it, it is sent again: the very same one.
    run = Scripted(trouble, status(payment.id, "not_found"), told(payment.to_json()))
    assert run.run(sending.send, payment) == payment
    assert run.paths == [BROADCAST, STATUS, BROADCAST]
    assert run.asked[0].body == run.asked[2].body
    # In between it has arrived after all.
    words = f"State check failed. Reason: Transaction {payment.id} is already in the state"
    run = Scripted(
        trouble,
        status(payment.id, "not_found"),
        told({"error": 112, "message": words}, 400),
    )
    assert run.run(sending.send, payment) == payment


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[" * 100_000])
def test_what_a_wallet_has_signed_is_asked_for_too(body: bytes) -> None:
    payment = WALLET.transfer(BOB, 1)
    run = Scripted(Answer(200, body), status(payment.id, "unconfirmed"))
    assert run.run(sending.send, payment) == payment
    assert run.paths == ["POST /eth", STATUS]


def test_a_status_that_is_none() -> None:
    with pytest.raises(NodeBroken, match="no status"):
        Scripted(told([])).run(sending.wait, ALICE.transfer(BOB, 1).id)


def test_nobody_knows() -> None:
    payment = ALICE.transfer(BOB, 1)
    run = Scripted(NodeTimeout("slow"), *[NodeUnreachable("gone")] * 4)
    with pytest.raises(OutcomeUnknown) as unknown:
        run.run(sending.send, payment)
    assert unknown.value.id == payment.id
    assert run.paths == [BROADCAST, *[STATUS] * 4]
    answers: list[Answer | ClientError] = [NodeTimeout("slow"), status(payment.id, "not_found")] * 4
    run = Scripted(*answers)
    with pytest.raises(OutcomeUnknown):
        run.run(sending.send, payment)
    assert run.paths == [BROADCAST, STATUS] * 4


def test_an_answer_that_is_none_may_mean_that_it_has_arrived() -> None:
    payment = EthereumAccount("0x" + "05" * 32, "R").transfer(BOB, 1)
    for body in (b"<html>", b"[]", b""):
        run = Scripted(Answer(200, body), status(payment.id, "unconfirmed"))
        assert run.run(sending.broadcast, payment) == payment.id
        assert run.paths == ["POST /eth", STATUS]
    with pytest.raises(OutcomeUnknown):
        Scripted(NodeTimeout("slow"), told([])).run(sending.send, ALICE.transfer(BOB, 1))


def test_what_never_got_there_is_sent_again() -> None:
    payment = ALICE.transfer(BOB, 1)
    run = Scripted(NodeUnreachable("x"), told(payment.to_json()))
    assert run.run(sending.send, payment) == payment
    assert run.paths == [BROADCAST] * 2


def test_a_fee_that_was_chosen_is_raised() -> None:
    payment = ALICE.transfer(BOB, 1)
    refusal = told({"error": 112, "message": TOO_CHEAP}, 400)
    run = Scripted(refusal, told({}))
    sent = run.run(sending.send, payment)
    assert sent.fee == 500_000 and sent.is_signed and sent.id != payment.id
    assert json.loads(run.asked[1].body)["fee"] == 500_000
    with pytest.raises(NodeRefused):
        Scripted(refusal).run(sending.send, ALICE.transfer(BOB, 1, fee=100_000))
    # One that others have signed stays what it is.
    cosigned = payment.with_proofs(*payment.proofs, BOB.sign(payment.body))
    with pytest.raises(NodeRefused):
        Scripted(refusal).run(sending.send, cosigned)
    # A node that wants more each time is not followed for ever.
    dearer = [
        told({"error": 112, "message": TOO_CHEAP.replace("500000", str(fee))}, 400)
        for fee in range(500_000, 5_000_000, 500_000)
    ]
    with pytest.raises(NodeRefused):
        Scripted(*dearer).run(sending.send, payment)


def test_another_clock_is_followed() -> None:
    """The words are the reference's, for a transaction too far in the past of the node's time."""
    payment = ALICE.transfer(BOB, 1)
    now = payment.timestamp + 10**7
    words = f"Transaction timestamp {payment.timestamp} is more than 7200000ms in the past"
    refusal = told({"error": 303, "message": words}, 400)
    run = Scripted(refusal, told({"system": now, "NTP": now}), told({}), told({}))
    assert run.run(sending.send, payment).timestamp == now
    assert run.paths == [BROADCAST, "GET /utils/time", BROADCAST]
    later = run.run(sending.send, ALICE.transfer(BOB, 1))
    assert abs(later.timestamp - now) < 3_600_000
    given = ALICE.transfer(BOB, 1, timestamp=payment.timestamp)
    with pytest.raises(NodeRefused):
        Scripted(refusal).run(sending.send, given)


def test_equal_payments_stay_two_when_the_clock_is_corrected() -> None:
    """Both are refused, and ask for the time, before either is sent again."""
    core = Scripted().core
    refusal = told({"error": 303, "message": "Transaction timestamp is in the past"}, 400)
    now = ALICE.transfer(BOB, 1).timestamp + 10**7
    steps = [sending.send(core, ALICE.transfer(BOB, 1)) for _ in range(3)]
    for each in steps[:2]:
        next(each)
    for answer in (refusal, told({"NTP": now})):
        for each in steps[:2]:
            each.send(answer)
    next(steps[2])
    found: list[Transaction] = []
    for each in steps:
        with pytest.raises(StopIteration) as end:
            each.send(told({}))
        found.append(end.value.value)
    assert len({each.id for each in found}) == 3
    assert all(abs(each.timestamp - now) < 60_000 for each in found)


def test_waiting_on_a_node_of_others() -> None:
    name = ALICE.transfer(BOB, 1).id
    waiting = status(name, "unconfirmed")
    done = status(name, "confirmed", height=7, confirmations=2, applicationStatus="succeeded")
    run = Scripted(waiting, waiting, done)
    assert run.run(sending.wait, name, 60, 1).height == 7
    assert run.time > 0 and run.paths == [STATUS] * 3
    with pytest.raises(StillWaiting):
        Scripted(*[waiting] * 100).run(sending.wait, name, 10)
    with pytest.raises(TransactionLost):
        Scripted(*[status(name, "not_found")] * 100).run(sending.wait, name, 60)
    with pytest.raises(TransactionLost, match="too late"):
        Scripted(status(name, "not_found", reason="too late")).run(sending.wait, name, 60)


def test_the_last_second_of_waiting_is_not_spent_on_questions() -> None:
    """On a node of ours, which is asked to wait for whole seconds."""
    name = ALICE.transfer(BOB, 1).id
    run = Scripted(*[status(name, "unconfirmed")] * 9)
    run.core.is_soliton = True
    with pytest.raises(StillWaiting):
        run.run(sending.wait, name, 0.9)
    run = Scripted(*[told({"error": 301, "message": "block does not exist"}, 404)] * 9)
    run.core.is_soliton = True
    with pytest.raises(StillWaiting):
        run.run(blocks.wait_for_height, 7, 0.9)


def test_the_oldest_nodes_have_no_status() -> None:
    name = ALICE.transfer(BOB, 1).id
    no_route = Answer(404, b"The requested resource could not be found.")
    info = {"type": 4, "id": name, "timestamp": 1, "fee": 1, "height": 3}
    run = Scripted(no_route, told(info))
    assert run.run(sending.wait, name).height == 3


def test_a_script_that_failed_in_its_block() -> None:
    name = ALICE.transfer(BOB, 1).id
    failed = status(name, "confirmed", height=7, applicationStatus="script_execution_failed")
    info = {
        "type": 16,
        "id": name,
        "timestamp": 1,
        "height": 7,
        "stateChanges": {"error": {"code": 1, "text": "no more"}},
    }
    with pytest.raises(ScriptFailed, match="no more") as error:
        Scripted(failed, told(info)).run(sending.wait, name)
    assert error.value.id == name


def test_answers_that_are_none() -> None:
    for body in (b"", b"<html>", b"[]", b'{"height":"x"}', b"[" * 100_000, b"\xff", b'{"\xff":1}'):
        with pytest.raises(NodeBroken):
            Scripted(Answer(200, body)).run(blocks.height)
    with pytest.raises(NodeRefused):
        Scripted(Answer(400, b'{"message":"\xff"}')).run(blocks.height)
    with pytest.raises(NotFound, match="no such page"):
        Scripted(Answer(404, b"no such page", {b"x-hint": b"look elsewhere"})).run(blocks.height)
    for empty, steps, arguments in (
        ({}, blocks.block_delay, ("x", 5)),
        ({}, network.time, ()),
        ([{}], accounts.balances, (["x"],)),
        ([], transactions.status, ("x",)),
        ([{"type": "integer"}], accounts.data, ("x",)),
    ):
        with pytest.raises(NodeBroken, match="invalid response from the node"):
            Scripted(told(empty)).run(steps, *arguments)
    # The oldest generation refuses with status 200.
    old = told({"status": "error", "details": "No block for this height"})
    with pytest.raises(NotFound, match="No block"):
        Scripted(old).run(blocks.header_at, 5)


def test_a_fault_within_evaluation_comes_with_status_200() -> None:
    answer = told({"error": 306, "message": "/ by zero", "transaction": "", "trace": []})
    with pytest.raises(ScriptRefused, match="by zero"):
        Scripted(answer).run(scripts.evaluate, BOB, "1/0")


def test_the_key_goes_where_it_is_wanted() -> None:
    payment = ALICE.transfer(BOB, 1)
    for key, wanted in ((None, []), ("secret", ["secret"])):
        run = Scripted(told({"valid": True}), told({"height": 1}), told({}))
        run.core.api_key = key
        assert run.run(transactions.validate, payment).valid
        run.run(blocks.height)
        run.run(sending.broadcast, payment)
        shown = [text for each in run.asked for name, text in each.headers if name == "X-API-Key"]
        assert shown == wanted and "X-API-Key" not in dict(run.asked[2].headers)


def test_pages() -> None:
    def row(number: int) -> dict[str, object]:
        return {
            "assetId": str(number),
            "issuer": "x",
            "name": "n",
            "description": "",
            "decimals": 0,
            "quantity": 1,
            "reissuable": False,
        }

    run = Scripted(told([row(1), row(2)]), told([row(3)]))
    page = accounts.nfts(run.core, "addr/ess", 2)
    rows, mark = run._run(page(None))
    more, end = run._run(page(mark))
    assert [each.asset_id for each in (*rows, *more)] == ["1", "2", "3"] and end is None
    assert run.paths == [
        "GET /assets/nft/addr%2Fess/limit/2",
        "GET /assets/nft/addr%2Fess/limit/2?after=2",
    ]


def test_values_of_the_language() -> None:
    """As the Scala node writes them."""
    assert ride_value({"type": "Int", "value": 5}) == 5
    assert ride_value({"type": "ByteVector", "value": "StV1DL6CwTryKyV"}) == b"hello world"
    pair = {"_1": {"type": "Boolean", "value": True}, "_2": {"type": "String", "value": "x"}}
    assert ride_value({"type": "Tuple", "value": pair}) == (True, "x")
    assert ride_value({"type": "Unit", "value": {}}) is None
