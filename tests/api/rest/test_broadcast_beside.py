"""Broadcasts whose signatures are checked on another core: the same answers as without."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from soliton.api.app import build_app
from soliton.api.rest.signing import SHORT_BYTES
from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.node.rest_settings import ApiLimits
from soliton.parallel import signatures
from soliton.parallel.signatures import SignatureChecker
from tests.api.chain import JSON, OTHER, START, PrivateChain, context_of
from tests.api.client import Answer, call, call_at_once
from tests.node.pools import refresh

LINE = "POST /transactions/broadcast"


@pytest_asyncio.fixture
async def checker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SignatureChecker]:
    monkeypatch.setattr(signatures, "cores", lambda: 2)
    monkeypatch.setattr(signatures, "STARTS_AFTER", 2)
    made = SignatureChecker(group=4)
    yield made
    await made.close()


async def begin(checker: SignatureChecker) -> None:
    """Have the other process ready."""
    signed = (OTHER.public_key, b"", bytes(64))
    async with asyncio.timeout(20):
        while checker.process_id is None:
            await asyncio.gather(checker.check(*signed), checker.check(*signed))
            await asyncio.sleep(0.01)


def with_checker(chain: PrivateChain, checker: SignatureChecker | None, **changes: object) -> Any:
    context = replace(context_of(chain.node), signatures=checker, **changes)
    return build_app(context)


def transfer(chain: PrivateChain, amount: int, **changes: object) -> AnyTransaction:
    """Of a version that all generations of the interface know."""
    to = from_public_key(OTHER.public_key, chain.node.network.chain_id)
    return chain.sign(TYPE, Transfer(to, None, amount, b""), 2, **changes)


def bodies(chain: PrivateChain) -> list[bytes]:
    """Transfers, some of them not signed, too dear, twice there or no transaction at all."""
    found = []
    for number in range(24):
        value: dict[str, Any] = codec.to_json(transfer(chain, 10**8 + number))
        if number % 6 == 1:
            value["amount"] = 10**9
        elif number % 6 == 2:
            value = codec.to_json(transfer(chain, 10**17, keys=OTHER))
        elif number % 6 == 3:
            value["proofs"] = []
        elif number % 6 == 4:
            del value["fee"]
        found.append(msgspec.json.encode(value))
    return found + found[:3]


async def send_all(app: Any, line: str, sent: list[bytes]) -> list[Answer]:
    short = [call_at_once(app, line, body, JSON) for body in sent[::2]]
    pieces = [call(app, line, [body[:50], body[50:]], JSON) for body in sent[1::2]]
    answers = await asyncio.gather(*short, *pieces)
    return [answers[number // 2 + number % 2 * len(short)] for number in range(len(sent))]


def said(answer: Answer) -> bytes:
    """The body but for balances in it, which tell what came into the pool before."""
    return re.sub(rb"(balance equals|result is) -?\d+", rb"\1 so much", answer.body)


@pytest.mark.parametrize(
    ("line", "family"), [(LINE, None), ("POST /assets/broadcast/transfer", "zbs")]
)
async def test_the_answers_are_those_of_checks_in_place(
    tmp_path: Path, checker: SignatureChecker, line: str, family: str | None
) -> None:
    here = PrivateChain(tmp_path / "here", family=family)
    there = PrivateChain(tmp_path / "there", family=family)
    sent = bodies(here)
    there.now = here.now
    await begin(checker)
    expected = await send_all(with_checker(here, None), line, sent)
    found = await send_all(with_checker(there, checker), line, sent)
    assert [each.status for each in found] == [each.status for each in expected]
    assert [said(each) for each in found] == [said(each) for each in expected]
    assert {each.status for each in found} == {200, 400}
    assert checker._answered > 10
    pools = [{one.id for one in chain.node.pool.transactions()} for chain in (here, there)]
    assert pools[0] == pools[1]
    for chain in (here, there):
        chain.node.close()


async def test_what_is_long_is_checked_in_place(
    chain: PrivateChain, checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "submit_all", None)
    app = with_checker(chain, checker)
    transaction = chain.data(text="x" * SHORT_BYTES)
    answer = await call_at_once(app, LINE, msgspec.json.encode(codec.to_json(transaction)), JSON)
    assert (answer.status, len(chain.node.pool)) == (400, 0)
    assert b"fee" in answer.body.lower()


async def test_what_the_pool_has_is_not_checked_again(
    chain: PrivateChain, checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = with_checker(chain, checker)
    body = msgspec.json.encode(codec.to_json(chain.transfer()))
    first = await call_at_once(app, LINE, body, JSON)
    monkeypatch.setattr(checker, "submit_all", None)
    again = await call_at_once(app, LINE, body, JSON)
    assert (first.status, first.body) == (again.status, again.body) == (200, first.body)


async def test_a_fault_in_the_second_part_is_an_answer(
    chain: PrivateChain, checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = with_checker(chain, checker)

    def fail(*_arguments: object, **_named: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(chain.node, "broadcast", fail)
    body = msgspec.json.encode(codec.to_json(chain.transfer()))
    assert (await call_at_once(app, LINE, body, JSON)).status == 500
    assert (await call(app, LINE, body, JSON)).status == 500


async def test_its_client_pays_for_the_check(
    chain: PrivateChain, checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soliton.api.rest.broadcasting.SIGNATURE_SECONDS", 50.0)
    limits = ApiLimits(client_percent=1, client_burst_ms=1_000)
    app = with_checker(chain, checker, limits=limits)
    statuses = []
    for _ in range(3):
        body = msgspec.json.encode(codec.to_json(chain.transfer(timestamp=START)))
        answer = await call_at_once(app, LINE, body, JSON, host="203.0.113.7")
        statuses.append(answer.status)
        refresh(chain.node.pool, (one.id for one in chain.node.pool.transactions()))
    assert statuses == [200, 429, 429]
