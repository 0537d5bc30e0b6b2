"""The answers that the reference node gave on a recorded chain, read by the library.

Each recorded request is asked by the method that has it: it has to ask for the same path, and what
it makes of the answer has to say what the answer says.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from soliton import NodeRefused
from soliton.client.records import Block, Record
from soliton.client.routes import accounts, assets, blocks, network, transactions
from soliton.client.steps import Answer
from soliton.crypto import base58
from tests.client.scripted import Scripted
from tests.vectors import report, shared_root

CHAIN = "waves-r"
FILES = ("chain", "state-addresses", "state-aliases", "state-assets", "state-leases")
NOT_MADE = {1, 2, 18}
"""Types that JSON does not make."""
SKIPPED = ("/assets/{}/distribution", "/eth/assets")
"""A route that the library has no need of, and one that the recorder asked wrongly."""


def one(number: int) -> Callable[[list[str]], list[Any]]:
    return lambda parts: [parts[number]]


# A path, with what stands for ids and numbers, the question, and its arguments out of the parts.
QUESTIONS: list[tuple[str, Any, Callable[[list[str]], list[Any]]]] = [
    ("/activation/status", network.features, lambda _: []),
    ("/blockchain/rewards", network.reward, lambda _: []),
    ("/blockchain/rewards/{}", network.reward, one(2)),
    ("/node/version", network.node_version, lambda _: []),
    ("/addresses", accounts.addresses, lambda _: []),
    ("/blocks/headers/last", blocks.last_header, lambda _: []),
    ("/blocks/headers/at/{}", blocks.header_at, one(3)),
    ("/blocks/headers/{}", blocks.header, one(2)),
    ("/blocks/height/{}", blocks.height_of, one(2)),
    ("/blocks/delay/{}/{}", blocks.block_delay, lambda parts: parts[2:4]),
    ("/blocks/heightByTimestamp/{}", blocks.height_at, one(2)),
    ("/addresses/balance/{}", accounts.balance, one(2)),
    ("/addresses/balance/details/{}", accounts.balance_details, one(3)),
    ("/addresses/effectiveBalance/{}", accounts.effective_balance, one(2)),
    ("/addresses/data/{}", accounts.data, one(2)),
    ("/assets/balance/{}", accounts.asset_balances, one(2)),
    ("/addresses/scriptInfo/{}", accounts.script, one(2)),
    ("/addresses/scriptInfo/{}/meta", accounts.functions, one(2)),
    ("/leasing/active/{}", accounts.active_leases, one(2)),
    ("/alias/by-address/{}", accounts.aliases, one(2)),
    ("/alias/by-alias/{}", accounts.address_by_alias, one(2)),
    ("/eth/abi/{}", assets.ethereum_abi, one(2)),
    ("/addresses/validate/{}", accounts.is_address, one(2)),
    ("/assets/details/{}", assets.asset, one(2)),
    ("/leasing/info/{}", accounts.lease, one(2)),
]
PAGES: list[tuple[str, Any, Callable[[list[str]], list[Any]]]] = [
    ("/assets/nft/{}/limit/{}", accounts.nfts, lambda parts: [parts[2], int(parts[4])]),
    (
        "/transactions/address/{}/limit/{}",
        transactions.history,
        lambda parts: [parts[2], int(parts[4])],
    ),
    (
        "/assets/{}/distribution/{}/limit/{}",
        assets.asset_distribution,
        lambda parts: [parts[1], int(parts[3]), int(parts[5])],
    ),
]


def recorded(name: str) -> Iterator[dict[str, Any]]:
    place = shared_root() / "golden" / CHAIN / f"{name}.jsonl.gz"
    if not place.is_file():
        pytest.skip(f"{place.name} is not in {place.parent}")
    with gzip.open(place, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\{\}", r"[^/]+"))


def answer_of(row: dict[str, Any]) -> Answer:
    body = row["body"]
    return Answer(row["status"], b"" if body == "" else msgspec.json.encode(body))


def agrees(found: object, body: Any) -> None:
    """Each attribute that is told says what the answer says."""
    if isinstance(found, Record):
        for field in msgspec.structs.fields(found):
            value = getattr(found, field.name)
            if field.encode_name in body and not isinstance(value, msgspec.Struct | list | tuple):
                assert value == body[field.encode_name], field
    elif isinstance(found, list) and isinstance(body, list):
        assert len(found) == len(body)
        for each, its in zip(found, body, strict=True):
            agrees(each, its)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_state(name: str) -> None:
    ran: Counter[str] = Counter()
    for row in recorded(name):
        path = row["path"].split("?")[0]
        if row["status"] == 0 or any(pattern(each).fullmatch(path) for each in SKIPPED):
            continue
        # What is plain goes before what stands for anything.
        kinds = sorted(QUESTIONS + PAGES, key=lambda each: each[0].count("{}"))
        shape, question, arguments = next(
            each for each in kinds if pattern(each[0]).fullmatch(path)
        )
        run = Scripted(answer_of(row))
        given = arguments(path.split("/")[1:])
        if row["status"] >= 400:
            with pytest.raises(NodeRefused) as refused:
                run.run(question, *given)
            assert refused.value.code == row["body"]["error"]
        elif any(question is each[1] for each in PAGES):
            page = question(run.core, *given)
            body = row["body"]
            # The transactions of an account are a list in a list.
            agrees(list(run._run(page(None))[0]), body[0] if shape == PAGES[1][0] else body)
        else:
            agrees(run.run(question, *given), row["body"])
        assert [unquote(each) for each in run.paths] == [f"GET {path}"]
        ran[shape] += 1
    assert ran
    report.ran(f"{CHAIN}: {name}", ran.total())


@pytest.mark.slow
def test_blocks() -> None:
    place: Path = shared_root() / "golden" / CHAIN / "blocks.json.gz"
    if not place.is_file():
        pytest.skip(f"{place.name} is not in {place.parent}")
    rows = json.loads(gzip.decompress(place.read_bytes()))
    shown = list(rows.values()) if isinstance(rows, dict) else rows
    for row in shown:
        run = Scripted(Answer(200, msgspec.json.encode(row)))
        block: Block = run.run(blocks.block_at, row["height"])
        agrees(block.header, row)
        assert block.header.consensus.base_target == row["nxt-consensus"]["base-target"]
        assert [each.json for each in block.transactions] == row["transactions"]
    assert len(shown) > 80
    report.ran(f"{CHAIN}: blocks", len(shown))


@pytest.mark.slow
def test_transactions() -> None:
    made = 0
    for row in recorded("transactions-info"):
        run = Scripted(answer_of(row))
        info = run.run(transactions.transaction, row["path"].rpartition("/")[2])
        agrees(info, row["body"])
        if info.type not in NOT_MADE:
            # Of its JSON the very same transaction is made, with the bytes that were signed.
            transaction = info.transaction("R")
            assert transaction.id == info.id
            assert [base58.encode(each) for each in transaction.proofs] == list(info.proofs)
            made += 1
    assert made > 400
    report.ran(f"{CHAIN}: transactions-info", made)
    for row in recorded("transactions-status"):
        (body,) = row["body"]
        run = Scripted(answer_of(row))
        agrees(run.run(transactions.status, body["id"]), body)
    for row in recorded("merkle-proof"):
        if row["status"] == 200:
            run = Scripted(answer_of(row))
            agrees(run.run(transactions.merkle_proofs, [row["body"][0]["id"]]), row["body"])
