"""Routes under /transactions: sending and finding."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from soliton.api.rest import examples
from soliton.chain.transactions import codec
from soliton.crypto import base58
from tests.api.chain import (
    FEE,
    JSON,
    OTHER,
    OTHER_ADDRESS,
    RICH_ADDRESS,
    PrivateChain,
)
from tests.api.client import call

FORM = {"content-type": "application/x-www-form-urlencoded"}


def error(code: int, message: str) -> dict[str, object]:
    return {"error": code, "message": message}


UNKNOWN = error(311, "transactions does not exist")
NO_ID = "1" * 32


def shown(transaction: Any) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(codec.to_json(transaction)))
    return value


# --- broadcast ------------------------------------------------------------------------------------


async def test_a_transaction_from_sending_to_the_chain(chain: PrivateChain) -> None:
    transaction = chain.transfer()
    name = base58.encode(transaction.id)
    sent = await chain.broadcast(transaction)
    assert (sent.status, sent.json()) == (200, shown(transaction))
    assert (await chain.get("/transactions/unconfirmed/size")).json() == {"size": 1}
    assert (await chain.get("/transactions/unconfirmed")).json() == [shown(transaction)]
    waiting = await chain.get(f"/transactions/unconfirmed/info/{name}")
    assert waiting.json() == shown(transaction)
    status = await chain.get(f"/transactions/status/{name}")
    assert status.json() == {"status": "unconfirmed", "id": name}
    assert (await chain.get(f"/transactions/info/{name}")).plain() == UNKNOWN

    chain.mine()
    confirmed = {
        **shown(transaction),
        "height": 2,
        "applicationStatus": "succeeded",
        "spentComplexity": 0,
    }
    assert (await chain.get(f"/transactions/info/{name}")).json() == confirmed
    for line, body, headers in (
        (f"GET /transactions/info?id={name}", b"", {}),
        (f"GET /transactions/info/?id={name}", b"", {}),
        ("POST /transactions/info", f'{{"ids":["{name}"]}}'.encode(), JSON),
        ("POST /transactions/info", f"id={name}".encode(), FORM),
    ):
        assert (await call(chain.app, line, body, headers)).json() == [confirmed]
    status = await chain.get(f"/transactions/status/{name}")
    assert status.json() == {
        "status": "confirmed",
        "height": 2,
        "confirmations": 0,
        "applicationStatus": "succeeded",
        "spentComplexity": 0,
        "id": name,
    }
    missing = await chain.get(f"/transactions/unconfirmed/info/{name}")
    assert (missing.status, missing.plain()) == (404, UNKNOWN)


async def test_sending_twice_is_no_error_until_it_is_mined(chain: PrivateChain) -> None:
    transaction = chain.transfer()
    for _ in range(2):
        assert (await chain.broadcast(transaction)).status == 200
    chain.mine()
    again = await chain.broadcast(transaction)
    name = base58.encode(transaction.id)
    assert (again.status, again.json()) == (400, {
        **error(112, f"State check failed. Reason: Transaction {name} is already in the state on a "
                     "height of 2"),
        "transaction": shown(transaction),
    })  # fmt: skip


async def test_trace_is_added_when_asked_for(chain: PrivateChain) -> None:
    transaction = chain.transfer()
    target = "/transactions/broadcast?trace=true"
    answer = await chain.post(target, codec.to_json(transaction))
    assert answer.json() == {**shown(transaction), "trace": []}
    refused = (await chain.post(target, {"type": 2})).json()
    assert refused == {**error(312, "transaction type not supported"), "trace": []}
    assert (await chain.post(f"{target}x", codec.to_json(transaction))).status == 404


async def test_get_is_the_404(chain: PrivateChain) -> None:
    assert (await chain.get("/transactions/broadcast")).status == 404


BAD_JSON: list[tuple[bytes, str]] = [
    (b"{", "failed to parse json message"),
    (b"[]", "failed to parse json message"),
    (b"\xff", "failed to parse json message"),
    (b"{}", "json data validation error, see validationErrors for details"),
]


@pytest.mark.parametrize(("body", "message"), BAD_JSON)
async def test_bad_json(chain: PrivateChain, body: bytes, message: str) -> None:
    answer = await chain.post("/transactions/broadcast", body)
    found = answer.json()
    assert isinstance(found, dict)
    assert (answer.status, found["error"], found["message"]) == (400, 1, message)
    assert set(found) == {"error", "message", "cause", "validationErrors"}


async def test_all_wrong_members_are_named(chain: PrivateChain) -> None:
    body = shown(chain.transfer()) | {"amount": "1", "timestamp": True}
    del body["fee"]
    answer = await chain.post("/transactions/broadcast", body)
    found = answer.json()
    assert isinstance(found, dict)
    assert found["validationErrors"] == {
        "obj.fee": [{"msg": ["error.path.missing"], "args": []}],
        "obj.timestamp": [{"msg": ["error.expected.jsnumber"], "args": []}],
        "obj.amount": [{"msg": ["error.expected.jsnumber"], "args": []}],
    }


# Changes to the JSON of a good transfer, and what comes of them.
REFUSED: list[tuple[dict[str, Any], int, dict[str, object]]] = [
    ({"type": 1}, 501, error(312, "transaction type not supported")),
    ({"type": 2}, 501, error(312, "transaction type not supported")),
    ({"type": 99}, 400, error(199, "Bad transaction type (99) and version (3)")),
    ({"type": -1, "version": 7}, 400, error(199, "Bad transaction type (-1) and version (7)")),
    ({"chainId": 87}, 400, error(404, "Wrong chain-id. Expected - 82, provided - 87")),
    ({"recipient": "x"}, 400, error(102, "invalid address")),
    ({"recipient": "3P" + RICH_ADDRESS[2:]}, 400, error(102, "invalid address")),
    ({"recipient": "alias:R:a"}, 400,
     error(199, "Alias 'a' length should be between 4 and 30")),
    ({"senderPublicKey": "0"}, 400, error(102, "invalid address")),
    ({"senderPublicKey": None}, 400, error(199, "invalid.senderPublicKey")),
    ({"amount": 0}, 400, error(115, "non-positive amount: 0 of waves")),
    ({"amount": -1}, 400, error(115, "non-positive amount: -1 of waves")),
    ({"fee": 0}, 400, error(112, "insufficient fee")),
    ({"attachment": base58.encode(bytes(141))}, 400,
     error(107, "Invalid attachment. Length 141 bytes exceeds maximum of 140 bytes.")),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "status", "expected"), REFUSED)
async def test_refused_before_the_state(
    chain: PrivateChain, changes: dict[str, Any], status: int, expected: object
) -> None:
    answer = await chain.post("/transactions/broadcast", shown(chain.transfer()) | changes)
    assert (answer.status, answer.plain()) == (status, expected)
    assert len(chain.node.pool) == 0


async def reason(chain: PrivateChain, transaction: Any) -> str:
    answer = await chain.broadcast(transaction)
    found = answer.json()
    assert isinstance(found, dict)
    assert (answer.status, found["error"]) == (400, 112)
    assert found["transaction"] == shown(transaction)
    prefix = "State check failed. Reason: "
    assert found["message"].startswith(prefix)
    return str(found["message"])[len(prefix) :]


async def test_refused_by_the_state(chain: PrivateChain) -> None:
    low = chain.transfer(fee=FEE - 1)
    assert await reason(chain, low) == (
        "Fee for TransferTransaction (99999 in WAVES) does not exceed minimal value of 100000 "
        "WAVES."
    )
    poor = chain.transfer(keys=OTHER)
    assert "Attempt to transfer unavailable funds" in await reason(chain, poor)
    forged = codec.with_proofs(chain.transfer(), (bytes(64),))
    text = await reason(chain, forged)
    assert text.startswith("Proof doesn't validate as signature for {")
    unsigned = codec.with_proofs(chain.transfer(), ())
    assert await reason(chain, unsigned) == (
        "Transactions from non-scripted accounts must have exactly 1 proof"
    )
    assert len(chain.node.pool) == 0


async def test_balance_errors_bring_their_details(chain: PrivateChain) -> None:
    data = chain.sign(*_data_of_a_pauper(chain), 2, keys=OTHER)
    found = (await chain.broadcast(data)).json()
    assert isinstance(found, dict)
    assert found["error"] == 112
    assert found["message"] == "State check failed. Reason: Accounts balance errors"
    assert set(found["details"]) == {OTHER_ADDRESS}


def _data_of_a_pauper(chain: PrivateChain) -> tuple[Any, Any]:
    from soliton.chain.transactions.data import TYPE, Data
    from soliton.chain.values import DataEntry

    return TYPE, Data((DataEntry("a", 1),))


async def test_times_have_their_own_error(chain: PrivateChain) -> None:
    chain.mine()
    hour = 3_600_000
    late = chain.transfer(timestamp=chain.now + 2 * hour)
    found = (await chain.broadcast(late)).json()
    assert isinstance(found, dict)
    assert found["error"] == 303 and set(found) == {"error", "message"}
    assert "in the future relative to block timestamp" in found["message"]
    early = chain.transfer(timestamp=chain.now - 3 * hour)
    found = (await chain.broadcast(early)).json()
    assert isinstance(found, dict)
    assert found["error"] == 303
    assert "in the past relative to previous block timestamp" in found["message"]


async def test_too_many_data_entries(chain: PrivateChain) -> None:
    answer = await chain.broadcast(chain.data(**{f"key {n}": n for n in range(101)}))
    assert (answer.status, answer.json()) == (400, error(10, "Too big sequence requested"))


async def test_numbers_of_other_writings(chain: PrivateChain) -> None:
    transaction = chain.transfer()
    text = msgspec.json.encode(codec.to_json(transaction))
    text = text.replace(b'"fee":100000', b'"fee":1e5')
    assert (await chain.post("/transactions/broadcast", text)).status == 200


# --- finding --------------------------------------------------------------------------------------

FINDING: list[tuple[str, int, object]] = [
    (f"/transactions/info/{NO_ID}", 404, UNKNOWN),
    ("/transactions/info/abc", 400,
     error(4001, "abc has invalid length 3. Length can either be 32 or 64")),
    ("/transactions/info/0", 400,
     error(4001, "requirement failed: Wrong char '0' in Base58 string '0'")),
    ("/transactions/info", 400, error(4001, "Transaction ID was not specified")),
    (f"/transactions/info?id={NO_ID}", 404, UNKNOWN),
    ("/transactions/info?id=0", 400, error(
        199, "java.lang.IllegalArgumentException: requirement failed: Wrong char '0' in Base58 "
             "string '0'")),
    (f"/transactions/info?{'&'.join(['id=1'] * 1001)}", 400,
     error(10, "Too big sequence requested: max limit is 1000 entries")),
    ("/transactions/status", 400, error(199, "Empty request")),
    (f"/transactions/status?id={NO_ID}&id=1", 200,
     [{"status": "not_found", "id": NO_ID}, {"status": "not_found", "id": "1"}]),
    ("/transactions/status?id=1&id=0&id=l", 400,
     {**error(116, "Request contains invalid IDs. 0, l"), "ids": ["0", "l"]}),
    (f"/transactions/status?{'&'.join(['id=1'] * 1001)}", 400,
     error(10, "Too big sequence requested")),
    ("/transactions/status/abc", 400,
     error(4001, "abc has invalid length 3. Length can either be 32 or 64")),
    ("/transactions/unconfirmed/size", 200, {"size": 0}),
    ("/transactions/unconfirmed/", 200, []),
    ("/transactions/unconfirmed/info", 400, error(101, "invalid signature")),
    (f"/transactions/unconfirmed/info/{NO_ID}", 404, UNKNOWN),
    (f"/transactions/address/{OTHER_ADDRESS}/limit/10", 200, [[]]),
    ("/transactions/address/x/limit/10", 400, error(102, "invalid address")),
    (f"/transactions/address/{OTHER_ADDRESS}/limit/1001", 400,
     error(10, "Too big sequence requested")),
    (f"/transactions/address/{OTHER_ADDRESS}/limit/1?after=0", 400,
     error(199, "Unable to decode transaction id 0")),
]  # fmt: skip


@pytest.mark.parametrize(("target", "status", "expected"), FINDING)
async def test_finding(chain: PrivateChain, target: str, status: int, expected: object) -> None:
    answer = await chain.get(target)
    assert (answer.status, answer.json()) == (status, expected)


async def test_an_empty_status_request(chain: PrivateChain) -> None:
    answer = await chain.post("/transactions/status", {"ids": []})
    assert (answer.status, answer.json()) == (400, error(199, "Empty request"))


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"1"])
async def test_a_status_request_that_says_nothing(chain: PrivateChain, body: bytes) -> None:
    """The reference ends this path with an answer of its own, whatever was wrong before."""
    for asked in ("POST /transactions/status", "POST /transactions/status/"):
        for headers in (JSON, {"content-type": "text/css"}):
            answer = await call(chain.app, asked, body, headers)
            assert (answer.status, answer.json()) == (400, error(199, "Empty request"))
    answer = await call(chain.app, "DELETE /transactions/status")
    assert (answer.status, answer.json()) == (400, error(199, "Empty request"))


async def test_transactions_of_an_account(chain: PrivateChain) -> None:
    sent = [chain.send(chain.transfer(amount=n)) for n in (1, 2, 3)]
    chain.mine()
    sent.append(chain.send(chain.transfer(amount=4)))
    chain.mine()
    names = [base58.encode(transaction.id) for transaction in reversed(sent)]

    async def found(query: str) -> list[str]:
        answer = await chain.get(f"/transactions/address/{OTHER_ADDRESS}/limit/{query}")
        assert answer.status == 200
        (transactions,) = msgspec.json.decode(answer.body)
        assert all({"height", "applicationStatus"} <= set(item) for item in transactions)
        return [item["id"] for item in transactions]

    assert await found("10") == names
    assert await found("2") == names[:2]
    assert await found("0") == []
    assert await found(f"10?after={names[0]}") == names[1:]
    assert await found(f"1?after={names[1]}") == names[2:3]
    assert await found(f"10?after={names[-1]}") == []
    assert await found(f"10?after={NO_ID}") == names


async def test_the_oldest_generation(oldest: PrivateChain) -> None:
    missing = {"status": "error", "details": "Transaction is not in blockchain"}
    not_waiting = {"status": "error", "details": "Transaction is not in UTX"}
    bad = error(101, "invalid signature")
    cases: list[tuple[str, int, object]] = [
        (f"/transactions/info/{NO_ID}", 404, missing),
        ("/transactions/info/1", 404, missing),
        ("/transactions/info/0", 400, bad),
        ("/transactions/info", 400, bad),
        (f"/transactions/unconfirmed/info/{NO_ID}", 404, not_waiting),
        ("/transactions/unconfirmed/info/0", 400, bad),
    ]
    for target, status, expected in cases:
        answer = await oldest.get(target)
        assert (target, answer.status, answer.json()) == (target, status, expected)
    genesis: Any = (await oldest.get("/blocks/first")).json()
    first = genesis["transactions"][0]
    found = (await oldest.get(f"/transactions/info/{first['id']}")).json()
    assert found == {**first, "height": 1}


def test_the_examples_are_one_story() -> None:
    assert examples.CONFIRMED["id"] == examples.STATUS["id"] == examples.TRANSACTION_ID
