"""What may have been accepted is never called refused, and never sent twice as two."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import msgspec
import pytest

from soliton import (
    Account,
    AsyncSigner,
    NodeBroken,
    NodeRefused,
    NodeTimeout,
    OutcomeUnknown,
    ScriptFailed,
    Signer,
    StillWaiting,
)
from soliton.client import matcher_routes, sending, signer_routes
from soliton.client.errors import ClientError
from soliton.client.steps import Answer
from soliton.errors import InputError
from tests.client.scripted import Scripted, told

ALICE = Account.from_seed("soliton devnet account 1", "R")
BOB = Account.from_seed("soliton devnet account 2", "R")
GOLD = "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"
PAYMENT = ALICE.transfer(BOB, 1)
ORDER = ALICE.buy(1, GOLD, 10**8, None, matcher=BOB.public_key)

UNCERTAIN: list[Answer | ClientError] = [
    *(told({}, status) for status in (302, 408, 425, 429, 500, 502, 503, 504, 520, 599)),
    told({"error": 4290, "message": "Too much"}, 429),
    told({"error": 1, "message": "trouble"}, 503),
    Answer(503, b"<html>"),
    Answer(200, b"<html>"),
    NodeTimeout("slow"),
    NodeBroken("lost"),
]
Trouble = Answer | ClientError


def status(where: str) -> Answer:
    return told([{"id": PAYMENT.id, "status": where}])


def refusal(code: int, message: str = "no") -> Answer:
    return told({"error": code, "message": message}, 400)


@pytest.mark.parametrize("trouble", UNCERTAIN)
def test_a_transaction(trouble: Trouble) -> None:
    run = Scripted(trouble, status("unconfirmed"))
    assert run.run(sending.send, PAYMENT) == PAYMENT
    assert len(run.asked) == 2
    run = Scripted(*[trouble, status("not_found")] * 4)
    with pytest.raises(OutcomeUnknown) as unknown:
        run.run(sending.send, PAYMENT)
    assert unknown.value.id == PAYMENT.id
    # Each attempt sends the same bytes, after a pause.
    sent = {each.body for each in run.asked if "broadcast" in each.path}
    assert len(sent) == 1 and run.time > 0


def test_a_refusal_after_a_doubt() -> None:
    """The first attempt has arrived, which the second one's refusal does not say."""
    run = Scripted(told({}, 503), status("not_found"), refusal(112), status("unconfirmed"))
    assert run.run(sending.send, PAYMENT) == PAYMENT
    # No corrected version is signed: the first may still arrive.
    dear = "Fee for TransferTransaction does not exceed minimal value of 500000 WAVES."
    run = Scripted(told({}, 503), status("not_found"), refusal(112, dear), status("not_found"))
    with pytest.raises(NodeRefused) as refused:
        run.run(sending.send, PAYMENT)
    assert not refused.value.is_certain and len(run.asked) == 4
    with pytest.raises(NodeRefused) as refused:
        Scripted(refusal(112)).run(sending.send, PAYMENT)
    assert refused.value.is_certain


def test_a_long_pause_is_not_waited_for() -> None:
    run = Scripted(told({}, 503, retry_after="3600"), status("not_found"))
    with pytest.raises(OutcomeUnknown):
        run.run(sending.send, PAYMENT)
    assert run.time == 0


def test_an_answer_about_another_transaction() -> None:
    other = {**PAYMENT.to_json(), "id": BOB.transfer(ALICE, 1).id}
    run = Scripted(told(other), status("unconfirmed"))
    assert run.run(sending.send, PAYMENT) == PAYMENT
    with pytest.raises(OutcomeUnknown):
        Scripted(told(other), told([{"id": other["id"], "status": "confirmed"}])).run(
            sending.send, PAYMENT
        )


@pytest.mark.parametrize("trouble", [*UNCERTAIN, refusal(25612)])
def test_an_order(trouble: Trouble) -> None:
    known = told({"status": "Accepted", "filledAmount": 0})
    missing = told({"error": 9437193, "message": "not found"}, 404)
    run = Scripted(trouble, known)
    assert run.run(matcher_routes.place, ORDER) == ORDER.id
    run = Scripted(trouble, missing, refusal(3148040))
    assert run.run(matcher_routes.place, ORDER) == ORDER.id
    with pytest.raises(OutcomeUnknown):
        Scripted(*[trouble, missing] * 4).run(matcher_routes.place, ORDER)
    run = Scripted(trouble, told({"status": "Cancelled", "filledAmount": 0}))
    run.run(matcher_routes.cancel, ALICE, ORDER)
    with pytest.raises(OutcomeUnknown):
        Scripted(*[trouble, known] * 4).run(matcher_routes.cancel, ALICE, ORDER)
    with pytest.raises(OutcomeUnknown):
        Scripted(*[trouble] * 4).run(matcher_routes.cancel_all, ALICE)
    run = Scripted(trouble, told({"success": True}))
    run.run(matcher_routes.cancel_all, ALICE)


Ask = Callable[[Scripted], object]
ASKED: list[Ask] = [
    lambda run: run.run(signer_routes.sign, PAYMENT),
    lambda run: run.run(signer_routes.sign_all, [PAYMENT]),
    lambda run: run.run(signer_routes.sign_and_broadcast, PAYMENT),
    lambda run: run.run(signer_routes.sign_and_broadcast, {"transaction": {"type": 4}}),
    lambda run: run.run(signer_routes.unlock, "password"),
    lambda run: run.run(signer_routes.lock),
]


@pytest.mark.parametrize("trouble", UNCERTAIN)
@pytest.mark.parametrize("ask", ASKED)
def test_a_signer(trouble: Trouble, ask: Ask) -> None:
    run = Scripted(*[trouble] * 4)
    with pytest.raises(OutcomeUnknown):
        ask(run)
    assert len({each.body for each in run.asked}) == 1
    # What the service says of itself is a refusal.
    busy = told({"error": 7012, "message": "busy"}, 503)
    with pytest.raises(NodeRefused):
        ask(Scripted(busy))


def test_a_request_to_send_has_an_id() -> None:
    """Hence a second attempt of it is no second transaction."""
    signed = told({"signed": {"id": "x"}})
    run = Scripted(told({}, 503), told({"error": 7029, "message": "in work"}, 409))
    with pytest.raises(OutcomeUnknown):
        run.run(signer_routes.sign_and_broadcast, {"transaction": {"type": 4}})
    run = Scripted(told({}, 503), signed)
    assert run.run(signer_routes.sign_and_broadcast, {"transaction": {"type": 4}}) == {"id": "x"}
    bodies = [msgspec.json.decode(each.body) for each in run.asked]
    assert bodies[0]["id"] and bodies[0] == bodies[1]
    run = Scripted(signed)
    run.run(signer_routes.sign_and_broadcast, {"transaction": {"type": 4}}, id="mine")
    assert msgspec.json.decode(run.asked[0].body)["id"] == "mine"
    slow = told({"error": 7014, "message": "slow", "id": PAYMENT.id}, 504)
    with pytest.raises(OutcomeUnknown) as unknown:
        Scripted(*[slow] * 4).run(signer_routes.sign_and_broadcast, PAYMENT)
    assert unknown.value.id == PAYMENT.id
    with pytest.raises(StillWaiting):
        Scripted(told({"error": 7034, "message": "not yet"}, 504)).run(
            signer_routes.sign_and_broadcast, PAYMENT, confirmations=1
        )


def test_an_approval() -> None:
    done = {"pending": "p", "state": "signed"}
    run = Scripted(told({}, 503), told(done))
    assert run.run(signer_routes.approve, "p").state == "signed"
    waiting = {"pending": "p", "state": "waiting"}
    run = Scripted(told({}, 503), told(waiting), told(done))
    assert run.run(signer_routes.approve, "p").state == "signed"
    with pytest.raises(OutcomeUnknown):
        Scripted(*[told({}, 503), told(waiting)] * 4).run(signer_routes.refuse, "p")


# --- in a block, and not executed -----------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["script_execution_failed", "elided", "something new"])
def test_what_is_in_a_block_may_have_failed(outcome: str) -> None:
    place = {"id": PAYMENT.id, "height": 7, "confirmations": 1}
    confirmed = told([{**place, "status": "confirmed", "applicationStatus": outcome}])
    info = told({"type": 4, "timestamp": 1, **place})
    with pytest.raises(ScriptFailed) as failed:
        Scripted(confirmed, info).run(sending.wait, PAYMENT.id)
    assert failed.value.id == PAYMENT.id
    # Nodes of the oldest generation have no status.
    old = told({"type": 4, "timestamp": 1, **place, "applicationStatus": outcome})
    with pytest.raises(ScriptFailed):
        Scripted(Answer(404, b"none"), old, old).run(sending.wait, PAYMENT.id)
    reply = {"signed": PAYMENT.to_json(), "confirmed": [{**place, "applicationStatus": outcome}]}
    with pytest.raises(ScriptFailed) as failed:
        Scripted(told(reply)).run(signer_routes.sign_and_broadcast, PAYMENT, confirmations=1)
    assert failed.value.id == PAYMENT.id
    reply["confirmed"] = [{**place, "applicationStatus": "succeeded"}]
    run = Scripted(told(reply))
    assert run.run(signer_routes.sign_and_broadcast, PAYMENT, confirmations=1) == PAYMENT
    run = Scripted(told(reply))
    assert run.run(signer_routes.sign_and_broadcast, PAYMENT, confirmations="finalized") == PAYMENT
    assert b'"confirmations":"finalized"' in run.asked[0].body
    with pytest.raises(InputError, match="confirmations"):
        Scripted().run(signer_routes.sign_and_broadcast, PAYMENT, confirmations="final")
    for confirmed_of in ([], [{**place, "id": GOLD, "applicationStatus": "succeeded"}]):
        with pytest.raises(NodeBroken):
            Scripted(told({**reply, "confirmed": confirmed_of})).run(
                signer_routes.sign_and_broadcast, PAYMENT, confirmations=1
            )
    with pytest.raises(OutcomeUnknown):
        Scripted(*[told({"signed": PAYMENT.to_json()})] * 4).run(
            signer_routes.sign_and_broadcast, PAYMENT, confirmations=1
        )


class Failing(BaseHTTPRequestHandler):
    """A signer whose transaction has failed in its block."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        outcome = {"id": PAYMENT.id, "height": 7, "confirmations": 1}
        outcome["applicationStatus"] = "script_execution_failed"
        body = msgspec.json.encode({"signed": PAYMENT.to_json(), "confirmed": [outcome]})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


async def test_both_clients_of_a_signer_say_so() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with Signer(url, api_key="k") as signer, pytest.raises(ScriptFailed):
            signer.sign_and_broadcast(PAYMENT, confirmations=1)
        async with AsyncSigner(url, api_key="k") as waiting:
            with pytest.raises(ScriptFailed):
                await waiting.sign_and_broadcast(PAYMENT, confirmations=1)
        server.shutdown()
        thread.join(60)
