"""What is wrong with a transaction that a client sends, to each door by which it can come in.

Expected codes and words follow from the reference's source: wavesplatform/Waves
``TransactionFactory.scala``, ``api/http/requests``, ``Proofs.scala``, ``PublicKey.scala``,
``ScriptReader.scala`` and ``validation/impl``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.ride.compiler import compile_source
from tests.api.chain import JSON, OTHER_ADDRESS, RICH, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.api.client import call

SEND, SIGN, PRICE = "/transactions/broadcast", "/transactions/sign", "/transactions/calculateFee"
CHECK = "/debug/validate"
ELSEWHERE: Final = address_text(from_public_key(RICH.public_key, ord("T")))
KEY: Final = base58.encode(RICH.public_key)
ASSET: Final = base58.encode(bytes(range(32)))
PROOF: Final = base58.encode(bytes(range(64)))
SCRIPT: Final = base64.b64encode(
    compile_source(
        "{-# STDLIB_VERSION 6 #-}\nsigVerify(tx.bodyBytes, tx.proofs[0], base58'1')"
    ).script.source
).decode()
COMMON: Final = {"sender": RICH_ADDRESS, "senderPublicKey": KEY, "fee": 100_000_000}
KINDS: Final[dict[str, dict[str, Any]]] = {
    "transfer": {"type": 4, "version": 2, "recipient": OTHER_ADDRESS, "amount": 1},
    "reissue": {"type": 5, "version": 2, "assetId": ASSET, "quantity": 1, "reissuable": True},
    "burn": {"type": 6, "version": 2, "assetId": ASSET, "amount": 1},
    "lease": {"type": 8, "version": 2, "recipient": OTHER_ADDRESS, "amount": 1},
    "cancel": {"type": 9, "version": 2, "leaseId": ASSET},
    "alias": {"type": 10, "version": 2, "alias": "somebody"},
    "mass": {"type": 11, "version": 1, "transfers": [{"recipient": OTHER_ADDRESS, "amount": 1}]},
    "data": {"type": 12, "version": 1, "data": []},
    "script": {"type": 13, "version": 1, "script": SCRIPT},
    "sponsor": {"type": 14, "version": 1, "assetId": ASSET, "minSponsoredAssetFee": 1},
    "asset script": {"type": 15, "version": 1, "assetId": ASSET, "script": SCRIPT},
    "invoke": {"type": 16, "version": 1, "dApp": OTHER_ADDRESS, "payment": [], "chainId": ord("R")},
    "issue": {
        "type": 3,
        "version": 2,
        "name": "Gold",
        "description": "",
        "quantity": 1,
        "decimals": 0,
        "reissuable": False,
    },
}
TO_SOMEBODY: Final = {"transfer": "recipient", "lease": "recipient", "invoke": "dApp"}
WITH_SCRIPT: Final = ("script", "asset script", "issue")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path_factory.mktemp("chain"))
    made.mine()
    yield made
    made.node.close()


async def ask(chain: PrivateChain, door: str, kind: str, **changes: object) -> dict[str, Any]:
    body: dict[str, Any] = {**COMMON, **KINDS[kind]}
    if door != SIGN:
        body |= {"timestamp": chain.now, "proofs": [PROOF]}
    answer = await chain.post(door, body | changes, WITH_KEY)
    found = answer.json()
    assert isinstance(found, dict)
    return {"http": answer.status, **found}


def said(found: dict[str, Any]) -> tuple[object, object, object]:
    return found["http"], found.get("error"), found.get("message")


@pytest.mark.parametrize("kind", KINDS)
async def test_these_have_the_right_form(chain: PrivateChain, kind: str) -> None:
    """What follows is about one member each: all others are right."""
    found = await ask(chain, SEND, kind)
    assert found["error"] == 112, found
    assert "Proof doesn't validate" in found["message"] or "not found" in found["message"], found
    assert (await ask(chain, SIGN, kind))["http"] == 200
    assert (await ask(chain, PRICE, kind))["http"] in (200, 400)


@pytest.mark.parametrize("kind", KINDS)
async def test_proofs(chain: PrivateChain, kind: str) -> None:
    too_long = base58.encode(bytes(range(65)))
    for proofs in ([PROOF] * 9, [too_long], [PROOF, too_long], [1], "x", ["0"]):
        found = await ask(chain, SEND, kind, proofs=proofs)
        assert (found["http"], found["error"]) == (400, 1), (proofs, found)
        assert list(found["validationErrors"]) == ["obj.proofs"]
    for one, words, details in (
        ([PROOF] * 9, "invalid.proofs", ["Too many proofs (9), only 8 allowed"]),
        (["0"], "invalid.base58", ["requirement failed: Wrong char '0' in Base58 string '0'"]),
        ([1], "expected.string", []),
    ):
        told = (await ask(chain, SEND, kind, proofs=one))["validationErrors"]
        assert told == {"obj.proofs": [{"msg": [words], "args": details}]}
    if kind in ("transfer", "lease", "alias", "burn", "reissue", "cancel", "issue"):
        # Of old versions; here the form is right, and the rule speaks.
        words = "Too large proof (65), must be max 64 bytes"
        found = await ask(chain, SEND, kind, proofs=None, signature=too_long)
        assert said(found) == (400, 405, words)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", [SEND, PRICE])
async def test_public_keys(chain: PrivateChain, kind: str, door: str) -> None:
    for size in (0, 20, 31):
        text = base58.encode(bytes(range(200, 200 + size)))
        found = await ask(chain, door, kind, senderPublicKey=text)
        words = f"requirement failed: invalid public key length: {size}"
        assert said(found) == (400, 199, words)
    for text in ("0", "1" * 45):
        found = await ask(chain, door, kind, senderPublicKey=text)
        assert said(found) == (400, 102, "invalid address")


@pytest.mark.parametrize("kind", TO_SOMEBODY)
@pytest.mark.parametrize("door", [SEND, SIGN, PRICE])
async def test_recipients_of_other_chains(chain: PrivateChain, kind: str, door: str) -> None:
    for text in (ELSEWHERE, "alias:T:somebody"):
        found = await ask(chain, door, kind, **{TO_SOMEBODY[kind]: text})
        assert said(found) == (400, 199, "Address or alias from other network")
    assert said(await ask(chain, door, kind, **{TO_SOMEBODY[kind]: "x"}))[1] == 102
    if door != PRICE and kind != "invoke":
        # Amounts come before it.
        found = await ask(chain, door, kind, recipient=ELSEWHERE, amount=0)
        assert found["error"] == 115


@pytest.mark.parametrize("kind", TO_SOMEBODY)
async def test_forms_of_recipients(chain: PrivateChain, kind: str) -> None:
    """``AddressOrAlias.fromString``: an address may begin with ``address:``."""
    member = TO_SOMEBODY[kind]
    found = await ask(chain, SIGN, kind, **{member: f"address:{OTHER_ADDRESS}"})
    assert (found["http"], found[member]) == (200, OTHER_ADDRESS)
    wrong = {
        "alias:": "Alias string pattern is 'alias:<chain-id>:<address-alias>",
        "alias:RR:somebody": "Alias string pattern is 'alias:<chain-id>:<address-alias>",
        "alias:R:som:body": "Alias should contain only following characters: "
        "-.0123456789@_abcdefghijklmnopqrstuvwxyz",
        "alias:R:a": "Alias 'a' length should be between 4 and 30",
    }
    for text, words in wrong.items():
        assert said(await ask(chain, SEND, kind, **{member: text})) == (400, 199, words)


@pytest.mark.parametrize("door", [SEND, SIGN, PRICE])
async def test_many_recipients_of_other_chains(chain: PrivateChain, door: str) -> None:
    transfers = [{"recipient": each, "amount": 1} for each in (OTHER_ADDRESS, ELSEWHERE)]
    found = await ask(chain, door, "mass", transfers=transfers)
    assert said(found) == (400, 199, "One of chain ids not match: List(82, 84)")


def wrong(member: str, words: str) -> dict[str, object]:
    return {f"obj.{member}": [{"msg": [words], "args": []}]}


async def test_bytes_in_base64(chain: PrivateChain) -> None:
    """``byteStrFormat``: what begins with ``base64:`` is base64, all else base58."""
    for kind in ("transfer", "mass"):
        found = await ask(chain, SIGN, kind, attachment="base64:AAEC")
        assert (found["http"], found["attachment"]) == (200, base58.encode(b"\0\1\2"))
        for text, words in {
            "base64:A": "Error parsing base64: Input byte[] should at least have 2 bytes for "
            "base64 bytes",
            "0": "Error parsing base58: requirement failed: Wrong char '0' in Base58 string '0'",
            "1" * 193: "base58-encoded string length (193) exceeds maximum length of 192",
        }.items():
            found = await ask(chain, SEND, kind, attachment=text)
            assert (found["http"], found["error"]) == (400, 1)
            assert found["validationErrors"] == wrong("attachment", words)
    signature = "base64:" + base64.b64encode(bytes(range(64))).decode()
    found = await ask(chain, SEND, "transfer", signature=signature)
    assert found["transaction"]["proofs"] == [PROOF]
    other = "base64:" + base64.b64encode(bytes(64)).decode()
    words = "Both proofs and signature are provided, but proofs do not match signature"
    assert said(await ask(chain, SEND, "transfer", signature=other)) == (400, 199, words)


async def test_ids_of_assets(chain: PrivateChain) -> None:
    short = base58.encode(bytes(range(1, 32)))
    size = f"Invalid validation. Size of asset id {short} not equal 32 bytes"
    expected = "Expected base58-encoded assetId"
    for kind, member in (
        *(("transfer", each) for each in ("assetId", "feeAssetId")),
        *((each, "assetId") for each in ("mass", "burn", "reissue", "sponsor", "asset script")),
        ("invoke", "feeAssetId"),
    ):
        nulls = kind in ("transfer", "mass", "invoke")
        for value, words in (
            (short, size),
            ("0", expected),
            ("WAVES0", expected),
            (5, f"{expected} or null" if nulls else expected),
        ):
            found = await ask(chain, SEND, kind, **{member: value})
            assert found["validationErrors"] == wrong(member, words), (kind, found)
    found = await ask(chain, SEND, "invoke", payment=[{"amount": 1, "assetId": short}])
    assert found["validationErrors"] == wrong("payment[0].assetId", size)


async def test_orders(chain: PrivateChain) -> None:
    """``OrderJson``. What an order of version 3 or 4 lacks to have a sender is told with 199."""
    order = {
        "version": 4, "senderPublicKey": KEY, "matcherPublicKey": KEY, "orderType": "buy",
        "assetPair": {"amountAsset": ASSET, "priceAsset": "WAVES"}, "amount": 1, "price": 1,
        "timestamp": 1, "expiration": 2, "matcherFee": 1, "proofs": [],
    }  # fmt: skip
    body = {
        **COMMON, "type": 7, "version": 3, "order1": order,
        "order2": {**order, "orderType": "sell"}, "amount": 1, "price": 1, "buyMatcherFee": 1,
        "sellMatcherFee": 1, "timestamp": 1, "proofs": [PROOF],
    }  # fmt: skip
    short = base58.encode(bytes(range(1, 32)))
    size = f"Invalid validation. Size of asset id {short} not equal 32 bytes"
    for changes, member, words in (
        ({"version": 0}, "order1", "Invalid version: 0"),
        ({"version": 128}, "order1.version", "error.expected.byte"),
        ({"senderPublicKey": "0"}, "order1.senderPublicKey", "error.incorrectAccount"),
        ({"matcherPublicKey": "1"}, "order1.matcherPublicKey", "error.incorrectAccount"),
        ({"proofs": [PROOF, "0"]}, "order1.proofs[1]", "error.incorrect.base58"),
        ({"proofs": [PROOF, 1]}, "order1.proofs[1]", "error.expected.jsstring"),
        ({"signature": "0"}, "order1.signature", "error.incorrect.base58"),
        ({"orderType": 1}, "order1.orderType", "error.expected.jsstring"),
        ({"matcherFeeAssetId": short}, "order1.matcherFeeAssetId", size),
        ({"assetPair": {"amountAsset": short}}, "order1.assetPair.amountAsset", size),
        ({"attachment": "base64:A"}, "order1.attachment",
         "Error parsing base64: Input byte[] should at least have 2 bytes for base64 bytes"),
    ):  # fmt: skip
        answer: Any = await chain.post(SEND, {**body, "order1": {**order, **changes}})
        found = answer.json()
        assert found["validationErrors"] == wrong(member, words), found
    nobody = {name: value for name, value in order.items() if name != "senderPublicKey"}
    answer = await chain.post(SEND, {**body, "order1": nobody})
    message = "Either senderPublicKey or eip712Signature should be provided"
    assert (answer.status, answer.plain()) == (400, {"error": 199, "message": message})


SCRIPTS: Final = {
    "AQ": "Invalid checksum",
    "AQI=": "Invalid checksum",
    "base64:AAkB": "Invalid content type of script: 9",
    "AAEK": "Invalid version of script: 10",
    "fw==": "Invalid version of script: 127",
    "AAE=": "Illegal length of script: 2",
    SCRIPT[:-4] + "AAAA": "Invalid checksum",
    "base64:": "Can't parse empty script bytes",
    "!": "Unable to decode base64: Input byte[] should at least have 2 bytes for base64 bytes",
    "A!==": "Unable to decode base64: Illegal base64 character 21",
    "\u00e9A": "Unable to decode base64: Illegal base64 character -17",
}


@pytest.mark.parametrize("kind", WITH_SCRIPT)
@pytest.mark.parametrize("door", [SEND, SIGN, PRICE])
async def test_scripts(chain: PrivateChain, kind: str, door: str) -> None:
    for text, words in SCRIPTS.items():
        found = await ask(chain, door, kind, script=text)
        assert said(found) == (400, 199, f"ScriptParseError({words})"), text
    # No script, or one of no bytes.
    empty = await ask(chain, door, kind, script="")
    is_refused = said(empty) == (400, 199, "ScriptParseError(Can't parse empty script bytes)")
    assert is_refused is (kind == "issue")


@pytest.mark.parametrize("kind", KINDS)
async def test_versions_that_are_none(chain: PrivateChain, kind: str) -> None:
    for version in (0, -1):
        found = await ask(chain, SEND, kind, version=version)
        type_id = KINDS[kind]["type"]
        reason = f"Bad transaction type ({type_id}) and version ({version})"
        assert said(found) == (400, 112, f"State check failed. Reason: {reason}")
        assert found["transaction"]["version"] == version
    for wrong in ("2", "x", True, 128, 1.5):
        found = await ask(chain, SEND, kind, version=wrong)
        assert (found["http"], found["error"]) == (400, 1)
        assert list(found["validationErrors"]) == ["obj.version"]
    for text in ("x", "", True, "128", 2**31, [1]):
        found = await ask(chain, SIGN, kind, version=text)
        assert (found["http"], found["error"]) == (400, 199)
        assert found["message"].startswith("Wrong JSON: (,List(JsonValidationError(List(")
    right = KINDS[kind]["version"]
    for same in (str(right), right + 256):
        found = await ask(chain, SIGN, kind, version=same)
        assert (found["http"], found["version"]) == (200, right)


@pytest.mark.parametrize("type_id", [1, 2, 7, 18])
async def test_types_that_wallets_do_not_sign(chain: PrivateChain, type_id: int) -> None:
    bodies: tuple[dict[str, object], ...] = ({}, {"order1": {}, "order2": {}})
    for body in bodies:
        sent = {"type": type_id, "sender": RICH_ADDRESS, "fee": 300_000, **body}
        answer: Any = await chain.post(SIGN, sent, WITH_KEY)
        assert (answer.status, answer.json()["error"]) == (501, 312)


NOTHING: Final = {
    f"/addresses/data/{OTHER_ADDRESS}": (400, 4008),
    "/assets/details": (400, 4009),
    "/transactions/info": (400, 4001),
    "/transactions/snapshot": (400, 4001),
    "/transactions/merkleProof": (400, 4001),
    "/transactions/status": (400, 199),
    "/leasing/info": (200, None),
    "/eth/assets": (404, None),
}


@pytest.mark.parametrize("path", NOTHING)
async def test_lists_without_a_body(chain: PrivateChain, path: str) -> None:
    status, code = NOTHING[path]
    answer = await call(chain.app, f"POST {path}")
    found: Any = answer.json() if answer.content_type == "application/json" else {}
    told = found.get("error") if isinstance(found, dict) else None
    assert (answer.status, told) == (status, code)
    # Of another type, or of none although there is something, it is no request of this kind.
    if code != 199:
        assert (await call(chain.app, f"POST {path}", b"", JSON)).status == 404
        assert (await call(chain.app, f"POST {path}", b"{}")).status == 404


async def test_keys_with_slashes(chain: PrivateChain) -> None:
    """Escaped they are one segment; else nothing of the path is a key, and all is told."""
    chain.send(chain.data(**{"a/b": 1, "c": 2}))
    chain.mine()
    path = f"/addresses/data/{RICH_ADDRESS}"
    one = {"key": "a/b", "type": "integer", "value": 1}
    everything = (await chain.get(path)).json()
    assert isinstance(everything, list) and one in everything and len(everything) == 2
    assert (await chain.get(f"{path}/a%2Fb")).json() == one
    for rest in ("/a/b", "/a/b/c/d", "/", "/a/"):
        answer = await chain.get(path + rest)
        assert (answer.status, answer.json()) == (200, everything), rest
    assert (await chain.post(f"{path}/a/b", {"keys": ["a/b"]})).json() == [one]
    assert (await chain.get(f"{path}/a/b?matches=a.*")).json() == [one]
    assert (await chain.get("/addresses/data/x/a/b")).status == 400
