"""A signer that keeps keys, as its callers see it: signing, ids, keys, callers, rules, the disk."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Any, Final

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from soliton.chain.orders import from_json as order_from_json
from soliton.chain.orders import signature_is_valid
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.keystore.keys import KeyProblem
from soliton.signer.callers import Callers
from soliton.signer.errors import RequestRefused
from soliton.signer.journal import AuditUnavailable
from soliton.signer.policy_file import PolicyProblem, policy_hash
from soliton.signer.records import Event
from soliton.web.request import Request
from tests.signer.fakes import FakeNode
from tests.signer.kept import (
    BOT,
    CHAIN_ID,
    COLD,
    COLD_ADDRESS,
    COLD_PHRASE,
    HOT,
    HOT_ADDRESS,
    HOT_PHRASE,
    HOT_TEXT,
    KEYS,
    LIMITED,
    NOW,
    PASSWORD,
    TRANSFER,
    Place,
    as_caller,
    callers,
    checked,
    entries,
)

# --- signing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hot", HOT_TEXT, HOT_ADDRESS, None])
async def test_a_key_is_found_by_name_address_and_public_key(
    tmp_path: Path, name: str | None
) -> None:
    async with Place(tmp_path).serving() as client:
        body: dict[str, Any] = {"transaction": {**TRANSFER, "senderPublicKey": HOT_TEXT}}
        if name is not None:
            body["key"] = name
        response = await client.post("/sign", json=body, headers=BOT)
    assert response.status_code == 200
    signed = response.json()["signed"]
    assert (signed["sender"], signed["timestamp"]) == (HOT_ADDRESS, NOW)
    checked(signed)


async def test_a_package_is_signed_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    place = Place(tmp_path, LIMITED)
    async with place.serving() as client:
        package = [{"transaction": {**TRANSFER, "amount": amount}} for amount in (100, 50)]
        response = await client.post("/sign", json={"key": "hot", "package": package}, headers=BOT)
        signed = response.json()["signed"]
        assert [each["amount"] for each in signed] == [100, 50]
        assert len({each["id"] for each in signed}) == 2
        for each in signed:
            checked(each)
        more = {"key": "hot", "transaction": {**TRANSFER, "amount": 1}}
        response = await client.post("/sign", json=more, headers=BOT)
    told = response.json()
    assert (response.status_code, told["error"]) == (403, 7028)
    assert (told["rule"], told["line"], told["condition"]) == ("large", 10, "windows")
    assert 'rule "large" (policy.toml:10), windows' in told["message"]


async def test_one_that_is_refused_takes_its_package_with_it(tmp_path: Path) -> None:
    async with Place(tmp_path, LIMITED).serving() as client:
        package = [{"transaction": {**TRANSFER, "amount": amount}} for amount in (100, 51)]
        response = await client.post("/sign", json={"key": "hot", "package": package}, headers=BOT)
        assert response.status_code == 403
        for amount, status in ((100, 200), (51, 403), (50, 200), (1, 403)):
            body = {"key": "hot", "transaction": {**TRANSFER, "amount": amount}}
            assert (await client.post("/sign", json=body, headers=BOT)).status_code == status


async def test_a_proof_goes_to_its_place(tmp_path: Path) -> None:
    shared = base58.encode(COLD.public_key)
    async with Place(tmp_path).serving() as client:
        body = {
            "key": "hot",
            "transaction": {**TRANSFER, "senderPublicKey": shared, "timestamp": NOW},
            "proofAt": 1,
        }
        signed = (await client.post("/sign", json=body, headers=BOT)).json()["signed"]
        assert signed["sender"] == COLD_ADDRESS
        assert (len(signed["proofs"]), signed["proofs"][0]) == (2, "")
        checked(signed, place=1)
        body = {"key": "cold", "transaction": signed, "proofAt": 0}
        both = (await client.post("/sign", json=body, headers=BOT)).json()["signed"]
        assert both["id"] == signed["id"] and both["proofs"][1] == signed["proofs"][1]
        checked(both, COLD.public_key, 0)
        checked(both, HOT.public_key, 1)
        for more in ({}, {"proofAt": 1}, {"proofAt": 8}, {"proofAt": "0"}):
            response = await client.post(
                "/sign", json={"key": "hot", "transaction": both, **more}, headers=BOT
            )
            assert response.status_code == 400
            assert response.json()["path"] == "proofAt"


async def test_orders_and_messages(tmp_path: Path) -> None:
    async with Place(tmp_path).serving() as client:

        async def sign(kind: str, value: dict[str, Any]) -> Any:
            response = await client.post("/sign", json={"key": "hot", kind: value}, headers=BOT)
            assert response.status_code == 200, response.text
            return response.json()["signed"]

        for version in (1, 2, 3, 4):
            order = {
                "version": version,
                "matcherPublicKey": base58.encode(COLD.public_key),
                "assetPair": {"amountAsset": None, "priceAsset": base58.encode(b"\7" * 32)},
                "orderType": "buy",
                # As libraries write large numbers.
                "amount": "100000000",
                "price": 2_000,
                "expiration": NOW + 86_400_000,
                "matcherFee": 300_000,
            }
            signed = order_from_json(await sign("order", order), CHAIN_ID)
            assert signature_is_valid(signed) and signed.sender_public_key == HOT.public_key
        # The signed bytes as ``@waves/waves-transactions`` serialises them.
        order_id = bytes(range(32))
        cancel = await sign("cancelOrder", {"orderId": base58.encode(order_id)})
        auth = await sign("auth", {"host": "wallet.example", "data": "grüße"})
        waves = await sign("wavesAuth", {"timestamp": 7})
        text = await sign("customData", {"text": "hello"})
        data = await sign(
            "customData", {"version": 2, "data": [{"key": "k", "type": "integer", "value": 1}]}
        )
    key = HOT.public_key
    name, said = b"WavesWalletAuthentication", "grüße".encode()
    bodies = [
        (cancel, key + order_id),
        (auth, b"\0\x19" + name + b"\0\x0ewallet.example" + b"\0\7" + said),
        (waves, key + (7).to_bytes(8, "big")),
        (text, b"\xff\xff\xff\1hello"),
        (data, b"\xff\xff\xff\2\0\1\0\1k\0" + (1).to_bytes(8, "big")),
    ]
    for signed, body in bodies:
        assert verify(key, body, base58.decode(signed["signature"]))


BAD_BODIES: Final[list[tuple[object, int, int]]] = [
    (b"", 400, 7001),
    (b"[]", 400, 7001),
    (b'{"key":"\xff"}', 400, 7001),
    (b"[" * 10_000, 400, 7001),
    (b'{"a":' * 30_000, 400, 7002),
    ({}, 400, 7002),
    ({"key": "hot"}, 400, 7002),
    ({"key": "hot", "transaction": TRANSFER, "order": {}}, 400, 7002),
    ({"key": "hot", "transaction": TRANSFER, "seed": "x"}, 400, 7002),
    ({"key": 5, "transaction": TRANSFER}, 400, 7002),
    ({"key": "hot", "id": "a b", "transaction": TRANSFER}, 400, 7002),
    ({"key": "hot", "transaction": TRANSFER, "confirmations": 1}, 400, 7002),
    ({"key": "hot", "package": []}, 400, 7002),
    ({"key": "hot", "package": [{}]}, 400, 7002),
    ({"key": "hot", "package": [{"transaction": TRANSFER}] * 257}, 400, 7002),
    ({"key": "hot", "package": [{"transaction": TRANSFER}], "proofAt": 1}, 400, 7002),
    ({"key": "hot", "transaction": 5}, 400, 7023),
    ({"key": "hot", "transaction": {}}, 400, 7023),
    ({"key": "hot", "transaction": {"type": 99}}, 400, 7023),
    ({"key": "hot", "transaction": {"type": 1, "fee": 1}}, 400, 7023),
    ({"key": "hot", "transaction": {"type": 18, "fee": 1}}, 400, 7023),
    ({"key": "hot", "transaction": {**TRANSFER, "amount": -1}}, 400, 7023),
    ({"key": "hot", "transaction": {**TRANSFER, "amount": "1.5"}}, 400, 7023),
    ({"key": "hot", "transaction": {**TRANSFER, "amount": 2**63}}, 400, 7023),
    ({"key": "hot", "transaction": {**TRANSFER, "chainId": 87}}, 400, 7023),
    ({"key": "hot", "transaction": {**TRANSFER, "sender": COLD_ADDRESS}}, 400, 7023),
    ({"key": "hot", "transaction": {**TRANSFER, "recipient": "alias:W:bob"}}, 400, 7023),
    ({"key": "hot", "order": {"version": 9}}, 400, 7023),
    ({"key": "hot", "auth": {"host": "\ud800"}}, 400, 7001),
    ({"key": "hot", "auth": {"host": "a" * 256}}, 400, 7023),
    ({"key": "hot", "customData": {"version": 3}}, 400, 7023),
    ({"key": "hot", "customData": {"binary": "base64:!"}}, 400, 7023),
    ({"key": "hot", "cancelOrder": {"orderId": "abc"}}, 400, 7023),
    ({"key": "nobody", "transaction": TRANSFER}, 404, 7024),
    ({"transaction": TRANSFER}, 404, 7024),
]


async def test_bodies_that_are_wrong(tmp_path: Path) -> None:
    async with Place(tmp_path).serving() as client:
        for body, status, code in BAD_BODIES:
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            response = await client.post("/sign", content=text, headers=BOT)
            found = response.status_code, response.json()["error"]
            assert found == (status, code), (body, response.text)


async def test_a_misplaced_secret_is_not_repeated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place = Place(tmp_path)
    secret = "this phrase should not have been sent at all"
    async with place.serving() as client:
        answers = []
        for member in ("recipient", "assetId", "senderPublicKey", "amount", "attachment"):
            body = {"key": "hot", "transaction": {**TRANSFER, member: secret}}
            answers.append(await client.post("/sign", json=body, headers=BOT))
        for kind in ("order", "auth", "cancelOrder", "customData", "wavesAuth"):
            value = {"publicKey": secret, "orderId": secret, "senderPublicKey": secret}
            answers.append(
                await client.post("/sign", json={"key": "hot", kind: value}, headers=BOT)
            )
        answers.append(await client.post("/sign", json={"key": secret}, headers=BOT))
        wrong = {"password": secret}
        answers.append(await client.post("/keys/unlock", json=wrong, headers=BOT))
        answers.append(await client.get("/keys", headers={"X-API-Key": secret}))
    assert all(400 <= each.status_code < 500 for each in answers)
    told = caplog.text + "".join(each.text for each in answers)
    told += "".join(path.read_text() for path in place.state.iterdir())
    for hidden in (secret, PASSWORD, HOT_PHRASE, COLD_PHRASE, *KEYS.values()):
        assert hidden not in told
    for pair in (HOT, COLD):
        assert base58.encode(pair.private_key) not in told
        assert pair.private_key.hex() not in told


# --- ids ------------------------------------------------------------------------------------------


async def test_a_request_with_an_id_is_signed_once_also_after_a_restart(tmp_path: Path) -> None:
    place = Place(tmp_path, LIMITED)
    body = {"key": "hot", "id": "order-1", "transaction": {**TRANSFER, "amount": 100}}
    async with place.serving() as client:
        first = await client.post("/sign", json=body, headers=BOT)
        again = await client.post("/sign", json=body, headers=BOT)
        assert (first.status_code, again.content) == (200, first.content)
        other = {**body, "transaction": TRANSFER}
        response = await client.post("/sign", json=other, headers=BOT)
        assert (response.status_code, response.json()["error"]) == (409, 7029)
    async with place.serving(unlocked=False) as client:
        # The order of members does not matter, nor that the key is locked.
        turned = dict(reversed(body.items()))
        assert (await client.post("/sign", json=turned, headers=BOT)).content == first.content
    assert [each.event for each in entries(place)].count(Event.SIGN) == 1


async def test_two_requests_with_one_id_at_once(tmp_path: Path) -> None:
    place = Place(tmp_path, LIMITED)
    body = {"key": "hot", "id": "order-1", "transaction": {**TRANSFER, "amount": 100}}
    async with place.serving() as client:
        both = await asyncio.gather(
            *(client.post("/sign", json=body, headers=BOT) for _ in range(8))
        )
    assert {each.status_code for each in both} <= {200, 409}
    assert len({each.content for each in both if each.status_code == 200}) == 1
    assert [each.event for each in entries(place)].count(Event.SIGN) == 1


# --- keys -----------------------------------------------------------------------------------------


async def test_keys_are_locked_until_the_password_comes_and_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000]
    for module in ("keyring", "pipeline", "key_routes", "key_service"):
        monkeypatch.setattr(f"soliton.signer.{module}.boot_ms", lambda: now[0], raising=False)
    place = Place(tmp_path)
    async with place.serving(unlocked=False) as client:
        body = {"key": "hot", "transaction": TRANSFER}

        async def sign() -> int:
            return (await client.post("/sign", json=body, headers=BOT)).status_code

        async def unlock(**more: Any) -> Any:
            return await client.post(
                "/keys/unlock", json={"password": PASSWORD, **more}, headers=BOT
            )

        assert await sign() == 409
        response = await unlock(keys=["cold"], seconds=10)
        assert [each["name"] for each in response.json()["keys"]] == ["cold"]
        assert await sign() == 409
        await unlock(keys=[HOT_ADDRESS], seconds=10)
        assert await sign() == 200
        shown = (await client.get("/keys", headers=as_caller("idle"))).json()["keys"]
        assert [(each["name"], each["locked"], each["unlockedFor"]) for each in shown] == [
            ("cold", False, 10),
            ("hot", False, 10),
        ]
        now[0] += 9_999
        assert await sign() == 200
        now[0] += 1
        assert await sign() == 409
        await unlock()
        assert await sign() == 200
        await client.post("/keys/lock", json={"keys": ["hot"]}, headers=BOT)
        assert await sign() == 409
        await unlock()
        await client.post("/keys/lock", headers=BOT)
        assert await sign() == 409
        for seconds in (0, -1, "5", 10**9, None):
            assert (await unlock(seconds=seconds)).status_code == 400
        assert (await unlock(keys=["nobody"])).status_code == 404


async def test_a_wrong_password_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000]
    monkeypatch.setattr("soliton.signer.key_service.boot_ms", lambda: now[0])
    place = Place(tmp_path)
    async with place.serving(unlocked=False) as client:

        async def unlock(password: str) -> Any:
            return await client.post("/keys/unlock", json={"password": password}, headers=BOT)

        pauses = []
        for _ in range(3):
            assert (await unlock("wrong")).json()["error"] == 7026
            response = await unlock(PASSWORD)
            assert (response.status_code, response.json()["error"]) == (429, 7027)
            pauses.append(int(response.headers["retry-after"]))
            now[0] += pauses[-1] * 1_000
        assert pauses == [1, 2, 4]
        assert (await unlock(PASSWORD)).status_code == 200
    events = [each.event for each in entries(place)]
    assert events.count(Event.WRONG_PASSWORD) == 6 and events[-1] is Event.UNLOCK


async def test_a_damaged_key_file_stops_the_start(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.keys / "hot.key.json").write_text("{}")
    with pytest.raises(KeyProblem, match=r"hot\.key\.json"):
        place.app()


async def test_two_signers_on_one_state(tmp_path: Path) -> None:
    place = Place(tmp_path)
    first = place.app()
    with pytest.raises(AuditUnavailable, match="another signer uses"):
        place.app()
    first.close()
    place.app().close()


# --- callers --------------------------------------------------------------------------------------

PATHS: Final = [
    ("POST", "/sign", "sign"),
    ("POST", "/sign-and-broadcast", "sign"),
    ("GET", "/keys", "list"),
    ("POST", "/keys/unlock", "unlock"),
    ("POST", "/keys/lock", "unlock"),
    ("GET", "/pending", "approve"),
    ("GET", "/pending/x", "approve"),
    ("GET", "/pending/x/simulation", "approve"),
    ("POST", "/pending/x/approve", "approve"),
    ("POST", "/pending/x/refuse", "approve"),
    ("GET", "/policy", "operate"),
    ("POST", "/policy/reload", "operate"),
    ("GET", "/caller", ""),
    ("GET", "/audit", "operate"),
    ("POST", "/audit/verify", "operate"),
    ("POST", "/generator/vrf", "sign"),
    ("POST", "/generator/block", "sign"),
    ("POST", "/generator/microblock", "sign"),
]


async def test_every_path_takes_a_key_that_may(tmp_path: Path) -> None:
    async with Place(tmp_path).serving() as client:
        for method, path, scope in PATHS:
            for headers in ({}, {"X-API-Key": "wrong"}, {"X-API-Key": ""}, as_caller("idle")):
                response = await client.request(method, path, headers=headers)
                if scope in ("list", "") and headers == as_caller("idle"):
                    assert response.status_code == 200
                else:
                    assert (response.status_code, response.json()["error"]) == (403, 7020), path
            for host in ("evil.example", "signer.test.evil.example", "", "127.0.0.1.evil:80"):
                response = await client.request(method, path, headers={**BOT, "Host": host})
                assert (response.status_code, response.json()["error"]) == (403, 7021)
            wrong = "DELETE" if method == "GET" else "PUT"
            assert (await client.request(wrong, path, headers=BOT)).status_code == 405
        assert (await client.get("/pending/x/y", headers=BOT)).status_code == 404
        for host in ("localhost:6888", "127.0.0.1", "[::1]:6888", "SIGNER.TEST:1"):
            assert (await client.get("/keys", headers={**BOT, "Host": host})).status_code == 200
        # No page of another origin may read what stands there.
        for path in ("/keys", "/sign"):
            response = await client.options(path, headers={"Origin": "https://evil.example"})
            assert "access-control-allow-origin" not in response.headers


async def test_the_document_tells_every_path(tmp_path: Path) -> None:
    async with Place(tmp_path).serving() as client:
        document = (await client.get("/openapi.json")).json()
    OpenAPIV31SpecValidator(document).validate()
    told = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if operation.get("security")
    }
    assert told == {(method, path.replace("/x", "/{id}")) for method, path, _ in PATHS}


async def test_post_data_is_served_beside(tmp_path: Path) -> None:
    async with Place(tmp_path).serving(FakeNode()) as client:
        body = {"seed": "a seed", "data": [{"key": "a", "value": 1}]}
        assert (await client.post("/data", json=body)).status_code == 200


def test_a_caller_with_a_rate() -> None:
    now, codes = [0], set[int]()
    known = Callers(callers(bot=2), (), lambda: now[0])
    request = Request(
        "GET", "/", headers={b"host": b"localhost", b"x-api-key": KEYS["bot"].encode()}
    )

    def goes() -> bool:
        try:
            known.caller_of(request, "sign")
        except RequestRefused as error:
            codes.add(error.answer.code)
            return False
        return True

    assert [goes() for _ in range(4)] == [True, True, False, False]
    now[0] += 500
    assert [goes() for _ in range(2)] == [True, False]
    now[0] += 60_000
    assert [goes() for _ in range(3)] == [True, True, False]
    assert codes == {7022}


# --- rules ----------------------------------------------------------------------------------------


def test_rules_with_another_hash_stop_the_start(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(PolicyProblem, match=policy_hash(place.rules.read_bytes())):
        place.app(policy_hash="0" * 64)
    with pytest.raises(PolicyProblem, match="missing"):
        place.app(policy_hash="")


async def test_rules_change_when_they_are_loaded_again_and_not_before(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.serving() as client:
        body = {"key": "hot", "transaction": TRANSFER}

        async def reload(hashed: str) -> Any:
            return await client.post("/policy/reload", json={"policyHash": hashed}, headers=BOT)

        place.rules.write_text("")
        assert (await client.post("/sign", json=body, headers=BOT)).status_code == 200
        response = await reload("0" * 64)
        assert (response.status_code, response.json()["error"]) == (409, 7036)
        response = await reload(policy_hash(b""))
        assert (response.status_code, response.json()["rules"]) == (200, [])
        assert (await client.post("/sign", json=body, headers=BOT)).status_code == 403
        place.rules.write_text("[[rule]]\n")
        response = await reload(policy_hash(b"[[rule]]\n"))
        assert (response.status_code, response.json()["error"]) == (409, 7036)
        shown = (await client.get("/policy", headers=BOT)).json()
        assert shown["hash"] == policy_hash(b"") and shown["audit"]["lines"] > 3


# --- the disk -------------------------------------------------------------------------------------


async def test_a_full_disk_stops_signing_and_not_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, LIMITED)
    async with place.serving() as client:
        body = {"key": "hot", "transaction": {**TRANSFER, "amount": 100}, "id": "order-1"}

        def full(_file: int, _data: bytes) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            for _ in range(3):
                response = await client.post("/sign", json=body, headers=BOT)
                assert (response.status_code, response.json()["error"]) == (503, 7032)
                assert "signed" not in response.json()
            assert (await client.get("/keys", headers=BOT)).status_code == 200
            assert (await client.get("/health")).status_code == 200
        # None of it has counted.
        response = await client.post("/sign", json=body, headers=BOT)
        assert response.status_code == 200
    assert [each.event for each in entries(place)].count(Event.SIGN) == 1
