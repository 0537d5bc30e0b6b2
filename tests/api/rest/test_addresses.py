"""Routes under /addresses: the wallet and balances."""

from __future__ import annotations

import pytest

from soliton.api.json_reader import wrong_texts
from soliton.chain.addresses import address_text
from soliton.crypto import base58
from soliton.node import wallet as wallet_module
from tests.api.chain import (
    AMOUNT,
    FEE,
    JSON,
    OTHER_ADDRESS,
    RICH,
    RICH_ADDRESS,
    WITH_KEY,
    PrivateChain,
    address_of,
)
from tests.api.client import call

RICH_KEY = base58.encode(RICH.public_key)


def error(code: int, message: str) -> dict[str, object]:
    return {"error": code, "message": message}


INVALID = error(102, "invalid address")
NO_BASE58 = error(199, "requirement failed: Wrong char '0' in Base58 string '0x'")

CASES: list[tuple[str, int, object]] = [
    ("/addresses", 200, [RICH_ADDRESS]),
    ("/addresses/seq/0/5", 200, [RICH_ADDRESS]),
    ("/addresses/seq/1/1", 200, []),
    ("/addresses/seq/2/1", 400, error(199, "Invalid sequence")),
    ("/addresses/seq/0/1000", 400,
     error(10, "Too big sequence requested: max limit is 1000 entries")),
    (f"/addresses/publicKey/{RICH_KEY}", 200, {"address": RICH_ADDRESS}),
    ("/addresses/publicKey/abc", 400, error(108, "invalid public key")),
    ("/addresses/publicKey/0", 400, error(108, "invalid public key")),
    (f"/addresses/validate/{RICH_ADDRESS}", 200, {"address": RICH_ADDRESS, "valid": True}),
    ("/addresses/validate/x", 200, {"address": "x", "valid": False}),
    # The reference's ``Address.fromString`` removes this prefix; its paths of addresses do not.
    (f"/addresses/validate/address:{RICH_ADDRESS}", 200,
     {"address": f"address:{RICH_ADDRESS}", "valid": True}),
    (f"/addresses/balance?address=address:{OTHER_ADDRESS}", 200,
     [{"id": f"address:{OTHER_ADDRESS}", "balance": AMOUNT}]),
    (f"/addresses/balance/address:{OTHER_ADDRESS}", 400,
     error(199, f"requirement failed: Wrong char ':' in Base58 string 'address:{OTHER_ADDRESS}'")),
    (f"/addresses/validate/3P{RICH_ADDRESS[2:]}", 200,
     {"address": f"3P{RICH_ADDRESS[2:]}", "valid": False}),
    (f"/addresses/balance/{OTHER_ADDRESS}", 200,
     {"address": OTHER_ADDRESS, "confirmations": 0, "balance": AMOUNT}),
    (f"/addresses/balance/{OTHER_ADDRESS}/1", 200,
     {"address": OTHER_ADDRESS, "confirmations": 1, "balance": AMOUNT}),
    (f"/addresses/balance/{OTHER_ADDRESS}/2", 200,
     {"address": OTHER_ADDRESS, "confirmations": 2, "balance": 0}),
    (f"/addresses/balance/{OTHER_ADDRESS}/3000", 400,
     error(199, "Unable to get balance past height -1998")),
    (f"/addresses/balance/details/{OTHER_ADDRESS}", 200,
     {"address": OTHER_ADDRESS, "regular": AMOUNT, "generating": 0, "available": AMOUNT,
      "effective": AMOUNT}),
    (f"/addresses/effectiveBalance/{OTHER_ADDRESS}", 200,
     {"address": OTHER_ADDRESS, "confirmations": 0, "balance": AMOUNT}),
    (f"/addresses/effectiveBalance/{OTHER_ADDRESS}/2", 200,
     {"address": OTHER_ADDRESS, "confirmations": 2, "balance": 0}),
    (f"/addresses/balance?address={OTHER_ADDRESS}&address=x&address={OTHER_ADDRESS}", 200,
     [{"id": OTHER_ADDRESS, "balance": AMOUNT}]),
    (f"/addresses/balance?address={OTHER_ADDRESS}&height=1", 200,
     [{"id": OTHER_ADDRESS, "balance": 0}]),
    (f"/addresses/balance?address={OTHER_ADDRESS}&asset={'1' * 32}", 200,
     [{"id": OTHER_ADDRESS, "balance": 0}]),
    # An empty number is like a missing one.
    (f"/addresses/balance?address={OTHER_ADDRESS}&height=", 200,
     [{"id": OTHER_ADDRESS, "balance": AMOUNT}]),
    ("/addresses/balance", 200, []),
    ("/addresses/balance?height=3", 400, error(199, "Illegal height: 3")),
    ("/addresses/balance?height=0", 400, error(199, "Illegal height: 0")),
    *((f"/addresses/{path}", status, body) for name, status, body in (
        ("3M4", 400, INVALID), ("0x", 400, NO_BASE58), ("z" * 300, 400, INVALID),
        (f"3P{RICH_ADDRESS[2:]}", 400, INVALID))
      for path in (f"balance/{name}", f"balance/{name}/1", f"balance/details/{name}",
                   f"effectiveBalance/{name}", f"data/{name}", f"data/{name}/key",
                   f"scriptInfo/{name}", f"scriptInfo/{name}/meta")),
    *((f"/{path}/0x", 400, NO_BASE58) for path in (
        "alias/by-address", "assets/balance", "leasing/active", "debug/balances/history")),
    (f"/alias/by-address/{RICH_ADDRESS}", 200, []),
    ("/alias/by-alias/somebody", 404, error(302, "alias 'alias:R:somebody' doesn't exist")),
    ("/alias/by-alias/a", 400, error(199, "Alias 'a' length should be between 4 and 30")),
    (f"/assets/balance/{RICH_ADDRESS}", 200, {"address": RICH_ADDRESS, "balances": []}),
    (f"/assets/balance/{RICH_ADDRESS}/{'1' * 32}", 200,
     {"address": RICH_ADDRESS, "assetId": "1" * 32, "balance": 0}),
    (f"/assets/balance/{RICH_ADDRESS}/WAVES", 400, error(4007, "Invalid asset id")),
    (f"/leasing/active/{RICH_ADDRESS}", 200, []),
]  # fmt: skip


@pytest.mark.parametrize(("target", "status", "expected"), CASES)
async def test_answers(chain: PrivateChain, target: str, status: int, expected: object) -> None:
    chain.send(chain.transfer())
    chain.mine()
    answer = await chain.get(target)
    assert (answer.status, answer.plain()) == (status, expected)


@pytest.mark.parametrize(
    "line",
    [
        f"GET /addresses/balance/{RICH_ADDRESS}/-1",
        f"GET /addresses/balance/{RICH_ADDRESS}/x",
        "GET /addresses/seq/-1/5",
        "GET /addresses/balance?height=x",
        f"POST /addresses/balance/{RICH_ADDRESS}",
    ],
)
async def test_what_no_route_takes(chain: PrivateChain, line: str) -> None:
    assert (await call(chain.app, line)).status == 404


async def test_effective_balance_has_any_method(chain: PrivateChain) -> None:
    answer = await call(chain.app, f"PUT /addresses/effectiveBalance/{RICH_ADDRESS}")
    assert answer.status == 200


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"addresses": [RICH_ADDRESS]}, 200, [{"id": RICH_ADDRESS, "balance": 9 * 10**15}]),
        ({"addresses": [RICH_ADDRESS], "height": 1}, 200,
         [{"id": RICH_ADDRESS, "balance": 9 * 10**15}]),
        ({"addresses": []}, 200, []),
        ({"addresses": [RICH_ADDRESS], "height": 7}, 400, error(199, "Illegal height: 7")),
        ({"addresses": [str(n) for n in range(1001)]}, 400,
         error(10, "Too big sequence requested")),
        ({"addresses": [RICH_ADDRESS] * 1001}, 400, error(10, "Too big sequence requested")),
        # What is no height is ignored.
        *(({"addresses": [RICH_ADDRESS], "height": height}, 200,
           [{"id": RICH_ADDRESS, "balance": 9 * 10**15}]) for height in (True, 2**31, "1", None)),
        ({"addresses": [1]}, 400, wrong_texts("addresses", [1]).body()),
        ({}, 400, wrong_texts("addresses", None).body()),
        ({"addresses": [], "asset": "0"}, 400,
         error(199, "requirement failed: Wrong char '0' in Base58 string '0'")),
    ],
)  # fmt: skip
async def test_posted_balances(
    chain: PrivateChain, body: object, status: int, expected: list[dict[str, object]]
) -> None:
    rich = chain.node.chain.balance(address_of(RICH, chain))
    if status == 200 and expected:
        expected = [{**expected[0], "balance": rich}]
    answer = await chain.post("/addresses/balance", body)
    assert (answer.status, answer.json()) == (status, expected)


async def test_accounts_of_the_wallet_come_and_go(chain: PrivateChain) -> None:
    assert (await call(chain.app, "POST /addresses")).status == 403
    made = (await call(chain.app, "POST /addresses", headers=WITH_KEY)).json()
    assert isinstance(made, dict)
    assert (await chain.get("/addresses")).json() == [RICH_ADDRESS, made["address"]]
    line = f"DELETE /addresses/{made['address']}"
    assert (await call(chain.app, line)).status == 403
    assert (await call(chain.app, line, headers=WITH_KEY)).json() == {"deleted": True}
    assert (await call(chain.app, line, headers=WITH_KEY)).json() == {"deleted": False}
    wrong = await call(chain.app, "DELETE /addresses/x", headers=WITH_KEY)
    assert (wrong.status, wrong.json()) == (400, INVALID)


async def test_account_seeds_need_the_key(chain: PrivateChain) -> None:
    line = f"GET /addresses/seed/{RICH_ADDRESS}"
    assert (await call(chain.app, line)).status == 403
    answer = await call(chain.app, line, headers=WITH_KEY)
    assert answer.json() == {
        "address": RICH_ADDRESS,
        "seed": "HewBh5uTNEGLVpmDPkJoHEi5vbZ6uk7fjKdP5ghiXKBs",
    }
    unknown = await call(chain.app, f"GET /addresses/seed/{OTHER_ADDRESS}", headers=WITH_KEY)
    assert (unknown.status, unknown.json()) == (
        400,
        error(115, "no private key for sender address in wallet"),
    )
    wrong = await call(chain.app, "GET /addresses/seed/0", headers=WITH_KEY)
    assert (wrong.status, wrong.json()) == (400, INVALID)


async def test_long_numbers_as_strings(chain: PrivateChain) -> None:
    headers = {"accept": "application/json;large-significand-format=string"}
    answer = await call(chain.app, f"GET /addresses/balance/{OTHER_ADDRESS}", headers=headers)
    assert answer.json() == {"address": OTHER_ADDRESS, "confirmations": 0, "balance": "0"}


async def test_the_oldest_generation(oldest: PrivateChain) -> None:
    own = address_text(address_of(RICH, oldest))
    cases = [
        ("GET /addresses/balance/0x", 400, INVALID),
        (f"GET /addresses/balance/{own}/100000", 200,
         {"address": own, "confirmations": 100000, "balance": 0}),
        ("GET /addresses/seq/0/100000", 200, [own]),
        ("GET /addresses/seq/1001/1", 400, error(10, "Too big sequence requested")),
        ("GET /addresses/publicKey/0", 400, error(108, "invalid public key")),
    ]  # fmt: skip
    for line, status, expected in cases:
        answer = await call(oldest.app, line, headers=JSON)
        assert (line, answer.status, answer.json()) == (line, status, expected)


def test_a_fee_is_part_of_what_is_sent(chain: PrivateChain) -> None:
    before = chain.node.chain.balance(address_of(RICH, chain))
    chain.send(chain.transfer())
    chain.mine()
    # Two fifths of the fee come back to the rich account, which mines, with the reward.
    after = chain.node.chain.balance(address_of(RICH, chain))
    assert after == before - AMOUNT - FEE + FEE // 5 * 2 + chain.node.chain.meta(2).reward * 10


async def test_a_full_wallet_says_so(chain: PrivateChain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wallet_module, "MAX_ACCOUNTS", 1)
    answer = await call(chain.app, "POST /addresses", headers=WITH_KEY)
    message = "The wallet is full: it has 1 accounts"
    assert (answer.status, answer.json()) == (400, {"error": 199, "message": message})
    assert (await chain.get("/addresses")).json() == [RICH_ADDRESS]
