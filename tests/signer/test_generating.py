"""What a node asks a signer for as it makes blocks: on its own chain, and never twice.

What lives here: the requests, one by one; the node takes what comes of them. What does not: whole
programs (``tests.e2e.test_signer_mines``).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from soliton.chain import blocks, microblocks
from soliton.chain.addresses import address_text
from soliton.chain.blocks import Block
from soliton.cli.wallet_signer import WalletSigner
from soliton.crypto import base58, vrf
from soliton.crypto.curve25519 import verify
from soliton.ledger import headers
from soliton.node import key_blocks, remote_mining
from soliton.node.events import BlockExtended, NodeEvent
from soliton.node.node import Node
from soliton.node.remote_keys import (
    RemoteKey,
    RemoteWallet,
    SignedBefore,
    SignerUnavailable,
    SigningRefused,
)
from soliton.node.settings import load_settings
from soliton.signer.records import Event
from soliton.web.server import serve
from soliton.wire.messages import MicroblockInv
from tests.node.chains import DEVNET, address_of, transfer
from tests.node.test_mining_options import Clock
from tests.signer.kept import BOT, CHAIN_ID, HOT, KEYS, PASSWORD, Place, entries

RULES: Final = """
[[rule]]
name = "blocks"
signs = ["block", "microblock"]
keys = ["hot"]
callers = ["bot"]
"""


class Mine:
    """A node that has no key, the signer that has it, and a clock."""

    def __init__(self, place: Place, node: Node, key: RemoteKey, clock: Clock) -> None:
        self.place = place
        self.node = node
        self.key = key
        self.clock = clock

    async def block(self) -> Block:
        await remote_mining.prove_turn(self.node, self.key)
        return await remote_mining.mine_key_block(self.node, self.key)

    async def draft(self) -> Block:
        await remote_mining.prove_turn(self.node, self.key)
        return key_blocks.draft_key_block(self.node, self.key).block

    async def signature(self, block: Block, height: int | None = None) -> bytes:
        at = self.node.chain.height + 1 if height is None else height
        return await self.key.signer.block(HOT.public_key, at, block)

    def spend(self) -> None:
        self.clock.time += 1_000
        sent = transfer(self.node.chain, HOT, HOT, 1 + self.clock.time % 1_000_000)
        self.node.broadcast(sent)


@asynccontextmanager
async def mining(tmp_path: Path, rules: str = RULES) -> AsyncIterator[Mine]:
    """The chain's only account is the signer's."""
    (tmp_path / "signer").mkdir(exist_ok=True)
    place, clock = Place(tmp_path / "signer", rules), Clock()
    transfers = tuple(
        msgspec.structs.replace(each, recipient=address_text(address_of(HOT)))
        for each in DEVNET.genesis.transactions[:1]
    )
    total = sum(each.amount for each in transfers)
    genesis = msgspec.structs.replace(DEVNET.genesis, transactions=transfers, initial_balance=total)
    network = msgspec.structs.replace(DEVNET, genesis=genesis)
    own = load_settings(network="devnet", data_dir=tmp_path / "node")
    app = place.app()
    server = await serve(app, "127.0.0.1", 0, close=app.close)
    signer = WalletSigner(f"http://127.0.0.1:{server.port}", KEYS["bot"], CHAIN_ID)
    key = RemoteKey(HOT.public_key, signer)
    node = Node(
        msgspec.structs.replace(own, network=network),
        RemoteWallet([key]),
        clock=clock,
        durable=False,
    )
    try:
        await signer._request("POST", "/keys/unlock", {"password": PASSWORD})
        yield Mine(place, node, key, clock)
    finally:
        node.close()
        await server.stop()


async def test_a_node_without_keys_makes_blocks_and_microblocks(tmp_path: Path) -> None:
    async with mining(tmp_path) as it:
        told: list[NodeEvent] = []
        it.node.events.subscribe(told.append)
        first = await it.block()
        assert first.header.generator == HOT.public_key
        it.spend()
        assert await remote_mining.mine_microblock(it.node, it.key) == 1
        it.spend()
        assert await remote_mining.mine_microblock(it.node, it.key) == 1
        grown = it.node.chain.last_block
        assert len(grown.transactions) == 2
        assert blocks.signature_is_valid(grown)
        inv = MicroblockInv(
            HOT.public_key,
            grown.id,
            it.node.chain.liquid_ids()[-2],
            it.key.announcements[grown.id],
        )
        assert inv.is_signed(CHAIN_ID)
        # The next one stands on the form that is old enough, which is not the last one.
        second = await it.block()
        assert it.node.chain.last_block is second
        assert second.header.reference in {first.id, inv.reference, grown.id}
        assert all(each.micro_signature for each in told if isinstance(each, BlockExtended))
        lines = [each for each in entries(it.place) if each.event is Event.SIGN]
        assert [each.sentences[0].split()[0] for each in lines] == [
            *("VRF", "block", "microblock", "microblock", "VRF", "block"),
        ]


async def test_a_vrf_proof_is_that_of_the_key(tmp_path: Path) -> None:
    async with mining(tmp_path) as it:
        source = headers.hit_source(it.node.chain)
        proof = await it.key.signer.proof(HOT.public_key, source)
        assert vrf.verify(HOT.public_key, source, proof) is not None
        with pytest.raises(SigningRefused, match="hit source"):
            await it.key.signer.proof(HOT.public_key, source + b"1")


async def test_a_second_block_on_a_parent_is_refused_and_the_first_one_is_told(
    tmp_path: Path,
) -> None:
    async with mining(tmp_path) as it:
        first = await it.draft()
        signature = await it.signature(first)
        assert verify(HOT.public_key, first.signed, signature)
        # Its answer was lost: it is asked for again, by this node or another one.
        assert await it.signature(first) == signature
        it.clock.time += 61_000
        second = await it.draft()
        assert second.signed != first.signed and second.header.reference == first.header.reference
        with pytest.raises(SignedBefore) as refused:
            await it.signature(second)
        told = refused.value.block
        assert told is not None
        assert (told.signed, told.signature) == (first.signed, signature)
        # The node goes on with that one.
        assert (await it.block()).id == first.id
        assert it.node.chain.height == 2
        await it.block()
        refusals = [each for each in entries(it.place) if each.event is Event.REFUSE]
        assert len(refusals) == 2 and "was signed on the parent" in refusals[0].reason


async def test_of_two_requests_at_once_one_is_signed(tmp_path: Path) -> None:
    async with mining(tmp_path) as it:
        first = await it.draft()
        it.clock.time += 61_000
        second = await it.draft()
        answers = await asyncio.gather(
            *(it.signature(each) for each in (first, second)), return_exceptions=True
        )
        assert sorted(type(each).__name__ for each in answers) == ["SignedBefore", "bytes"]


def on(first: Block, parent: bytes, timestamp: int = 0) -> Block:
    """A block of the same key on another parent."""
    stamp = timestamp or first.header.timestamp
    header = msgspec.structs.replace(first.header, reference=parent, timestamp=stamp)
    return blocks.assemble(header, (), first.signature)


def parents(count: int) -> list[bytes]:
    return [number.to_bytes(32, "big") for number in range(1, count + 1)]


async def test_no_height_makes_a_parent_forgotten(tmp_path: Path) -> None:
    """What the node says of heights: any, in any order."""
    async with mining(tmp_path) as it:
        first = await it.draft()
        (known, *others) = parents(8)
        signature = await it.signature(on(first, known), 10)
        for parent, height in zip(others, (111, 2**31 - 1, 1, 12, 2**31 - 1, 13, 500), strict=True):
            assert await it.signature(on(first, parent), height)
        for height in (1, 11, 112, 2**31 - 1):
            with pytest.raises(SignedBefore):
                await it.signature(on(first, known, 5), height)
            assert await it.signature(on(first, known), height) == signature


async def test_old_parents_are_kept_as_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also across checkpoints and restarts; microblocks are added to none of them."""
    monkeypatch.setattr("soliton.signer.signed_blocks.MAX_WHOLE", 2)
    async with mining(tmp_path) as it:
        first = await it.block()
        it.spend()
        await remote_mining.mine_microblock(it.node, it.key)
        grown = it.node.chain.last_block
        for parent in parents(4):
            assert await it.signature(on(first, parent), 5)
        monkeypatch.setattr("soliton.signer.journal.SEGMENT_BYTES", 1)
        assert await it.signature(on(first, bytes(32)), 5)
    assert len(list(it.place.state.glob("audit-*.jsonl"))) > 1
    again = it.place.app()
    server = await serve(again, "127.0.0.1", 0, close=again.close)
    signer = WalletSigner(f"http://127.0.0.1:{server.port}", KEYS["bot"], CHAIN_ID)
    await signer._request("POST", "/keys/unlock", {"password": PASSWORD})
    for parent in (first.header.reference, *parents(3)):
        for stamp in (0, 5):
            with pytest.raises(SignedBefore, match="some time ago"):
                await signer.block(HOT.public_key, 9, on(first, parent, stamp))
    micro = microblocks.assemble(
        version=5,
        reference=grown.id,
        total_signature=grown.signature,
        generator=HOT.public_key,
        transactions=grown.transactions,
        signature=grown.signature,
        total_block_id=grown.id,
        state_hash=grown.header.state_hash,
    )
    with pytest.raises(SigningRefused, match="no block on this parent"):
        await signer.microblock(HOT.public_key, 2, grown, micro)
    await server.stop()


async def test_a_key_that_signs_too_much_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room is made by the signer's own clock, which the node does not set."""
    monkeypatch.setattr("soliton.signer.signed_blocks.MAX_WHOLE", 1)
    monkeypatch.setattr("soliton.signer.signed_blocks.MAX_PARENTS", 3)
    async with mining(tmp_path) as it:
        first = await it.draft()
        one, two, three, four = parents(4)
        for parent in (one, two, three):
            await it.signature(on(first, parent))
        with pytest.raises(SignerUnavailable, match="within a week"):
            await it.signature(on(first, four), 2**31 - 1)
        monkeypatch.setattr("soliton.signer.signed_blocks.KEPT_MS", 0)
        assert await it.signature(on(first, four))
        for parent in (two, three, four):
            with pytest.raises(SignedBefore):
                await it.signature(on(first, parent, 5))


async def test_marks_survive_the_process_and_a_new_file_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soliton.signer.journal.SEGMENT_BYTES", 1)
    async with mining(tmp_path) as it:
        first = await it.block()
        it.spend()
        await remote_mining.mine_microblock(it.node, it.key)
        grown = it.node.chain.last_block
        height = it.node.chain.height
    again = it.place.app()
    server = await serve(again, "127.0.0.1", 0, close=again.close)
    signer = WalletSigner(f"http://127.0.0.1:{server.port}", KEYS["bot"], CHAIN_ID)
    await signer._request("POST", "/keys/unlock", {"password": PASSWORD})
    assert await signer.block(HOT.public_key, height, first) == first.signature
    later = msgspec.structs.replace(first.header, timestamp=first.header.timestamp + 1)
    with pytest.raises(SignedBefore):
        await signer.block(HOT.public_key, height, blocks.assemble(later, (), first.signature))
    # Another microblock on the first form is one too many.
    micro = microblocks.assemble(
        version=5,
        reference=first.id,
        total_signature=grown.signature,
        generator=HOT.public_key,
        transactions=grown.transactions,
        signature=grown.signature,
        total_block_id=grown.id,
        state_hash=grown.header.state_hash,
    )
    changed = msgspec.structs.replace(grown.header, transactions_root=bytes(32))
    total = blocks.assemble(changed, (), grown.signature)
    with pytest.raises(SignedBefore, match="the newest form"):
        await signer.microblock(HOT.public_key, height, total, micro)
    await server.stop()


async def test_what_is_no_block_of_the_key_is_not_signed(tmp_path: Path) -> None:
    async with mining(tmp_path) as it:
        draft = await it.draft()
        signer = it.key.signer
        assert isinstance(signer, WalletSigner)
        strange = msgspec.structs.replace(draft.header, generator=bytes(32))
        with pytest.raises(SigningRefused, match="another generator"):
            await it.signature(blocks.assemble(strange, (), draft.signature))
        other = msgspec.structs.replace(draft.header, chain_id=ord("W"))
        with pytest.raises(SigningRefused, match="chain"):
            await it.signature(blocks.assemble(other, (), draft.signature))
        body = {"key": "hot", "height": 2}
        sent = transfer(it.node.chain, HOT, HOT, 1)
        for data in (b"", sent.body, b"\n" + sent.body, draft.signed, base64.b64decode("////")):
            text = base64.b64encode(data).decode()
            with pytest.raises(SigningRefused):
                await signer._request("POST", "/generator/block", {**body, "block": text})
        for wrong in ({}, {"block": 5}, {"block": "", "height": 0}):
            asked: dict[str, Any] = {**body, **wrong}
            with pytest.raises(SigningRefused):
                await signer._request("POST", "/generator/block", asked)


async def test_a_microblock_extends_only_what_was_signed(tmp_path: Path) -> None:
    async with mining(tmp_path) as it:
        first = await it.block()
        it.spend()
        forged = await it.node.micro_forged_in_steps(it.key)
        assert forged is not None
        total = forged.block
        micro = microblocks.assemble(
            version=5,
            reference=first.id,
            total_signature=total.signature,
            generator=HOT.public_key,
            transactions=total.transactions,
            signature=total.signature,
            total_block_id=total.id,
            state_hash=total.header.state_hash,
        )
        holder = it.key.signer
        for change in ({"reference": bytes(32)}, {"timestamp": 5}, {"state_hash": bytes(32)}):
            other = msgspec.structs.replace(total.header, **change)
            with pytest.raises(SigningRefused):
                await holder.microblock(
                    HOT.public_key, 2, blocks.assemble(other, (), total.signature), micro
                )
        made = await holder.microblock(HOT.public_key, 2, total, micro)
        assert await holder.microblock(HOT.public_key, 2, total, micro) == made
        assert verify(HOT.public_key, total.signed, made.total)


async def test_rules_decide_who_has_blocks_signed(tmp_path: Path) -> None:
    rules = RULES.replace('signs = ["block", "microblock"]', 'signs = ["transfer"]')
    async with mining(tmp_path, rules) as it:
        source = headers.hit_source(it.node.chain)
        with pytest.raises(SigningRefused, match="no rule"):
            await it.key.signer.proof(HOT.public_key, source)
        # The node tells it, and waits.
        await remote_mining.prove_turn(it.node, it.key)
        assert not it.key.proofs
    signed = [each for each in entries(it.place) if each.event is Event.SIGN]
    assert signed == []


async def test_a_locked_key_and_a_signer_that_is_gone(tmp_path: Path) -> None:
    async with mining(tmp_path) as it:
        draft = await it.draft()
        signer = it.key.signer
        assert isinstance(signer, WalletSigner)
        await signer._request("POST", "/keys/lock", {})
        with pytest.raises(SigningRefused, match="locked"):
            await it.signature(draft)
        gone = WalletSigner("http://127.0.0.1:1", "", CHAIN_ID)
        with pytest.raises(SignerUnavailable, match="cannot be reached"):
            await gone.block(HOT.public_key, 2, draft)
        await signer._request("POST", "/keys/unlock", {"password": PASSWORD})
        # Nothing was marked.
        it.clock.time += 61_000
        assert await it.signature(await it.draft())


@pytest.mark.parametrize("text", ["a text\nof lines", "ÄÖ € 😀", " "])
async def test_a_printable_text_is_signed_bare(tmp_path: Path, text: str) -> None:
    async with Place(tmp_path).serving() as client:
        answer = await client.post(
            "/sign", headers=BOT, json={"key": "hot", "text": {"text": text}}
        )
        assert answer.status_code == 403
    place = Place(tmp_path, RULES.replace('["block", "microblock"]', '["text"]'))
    async with place.serving() as client:
        answer = await client.post(
            "/sign", headers=BOT, json={"key": "hot", "text": {"text": text}}
        )
        signature = base58.decode(answer.json()["signed"]["signature"])
        assert verify(HOT.public_key, text.encode(), signature)


@pytest.mark.parametrize("text", ["", "\nno", "a\x00b", "\x04transfer", "\x08protobuf", "a\x7f"])
async def test_no_text_is_a_transaction(tmp_path: Path, text: str) -> None:
    place = Place(tmp_path, RULES.replace('["block", "microblock"]', '["text"]'))
    async with place.serving() as client:
        answer = await client.post(
            "/sign", headers=BOT, json={"key": "hot", "text": {"text": text}}
        )
        assert (answer.status_code, answer.json()["error"]) == (400, 7023)
