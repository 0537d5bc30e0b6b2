"""Signing for a node that makes blocks: proofs of its turn, blocks, microblocks, none twice.

The node sends what it wants signed as a block or a microblock with empty signatures. It is read as
such, so that nothing else can be signed this way, and it is on the disk before its signature leaves
that this parent, or this form of the block, has its successor.

A block's height stands nowhere in it: it is what the node says. Parents are what protects, heights
are a second line.

What lives here: these bytes, and the order of checks. What does not: what was signed (``marks``),
whether the rules let the key sign blocks (``policy``), HTTP (``key_routes``).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import msgspec

from soliton.chain import blocks, microblocks
from soliton.chain.blocks import BlockHeader, SignedHeader
from soliton.chain.errors import ChainError, JsonFieldError
from soliton.chain.json_kinds import decode_base58, decode_base64
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.chain.microblocks import Microblock
from soliton.crypto import base58
from soliton.crypto.errors import CryptoError
from soliton.signer.boot_clock import boot_ms
from soliton.signer.desk import Desk, refused
from soliton.signer.errors import (
    NOT_SIGNABLE,
    REFUSED,
    SIGNED_BEFORE,
    WRONG_SHAPE,
    RequestRefused,
)
from soliton.signer.keyring import Account
from soliton.signer.marks import MAX_REORGANIZATIONS, OnParent
from soliton.signer.measures import Kind, Measures
from soliton.signer.policy import Allowed, Question
from soliton.signer.records import Entry, Event, Mark, MarkKind
from soliton.signer.wanted import MAX_KEY_CHARACTERS
from soliton.wire.messages import MicroblockInv

MAX_HEIGHT: Final = 2**31 - 1
MAX_KEPT_BYTES: Final = 4_096
"""A block is kept up to here, to be given to a node that has lost its own."""
HIT_SOURCE_BYTES: Final = 32
_UNSIGNED: Final = bytes(SIGNATURE_LENGTH)


class Generating:
    """What a generator has signed, one thing after the other for each key."""

    def __init__(self, desk: Desk, chain_id: int) -> None:
        self._desk = desk
        self._chain_id = chain_id
        self._locks: dict[str, asyncio.Lock] = {}

    # --- what is asked for ------------------------------------------------------------------------

    async def prove(self, caller: str, value: dict[str, Any]) -> dict[str, Any]:
        """The VRF proof of a hit source, which is a block's generation signature; raises
        ``RequestRefused``.
        """
        account = self._account(value)
        source = _read(value, "message", decode_base58)
        if len(source) != HIT_SOURCE_BYTES:
            words = f"message should be a hit source of {HIT_SOURCE_BYTES} bytes in base58"
            raise RequestRefused(NOT_SIGNABLE, words, "message")
        told = f"VRF proof of {base58.encode(source)}"
        async with self._refusals(caller, account, told):
            allowed = self._allowed(caller, account, Kind.BLOCK, blocks.PROTOBUF_VERSION)
            proof = account.prove(source, boot_ms())
            await self._desk.written(self._entry(caller, account, allowed, told))
            return {"proof": base58.encode(proof)}

    async def block(self, caller: str, value: dict[str, Any]) -> dict[str, Any]:
        """The signature of a block; raises ``RequestRefused``."""
        account, height = self._account(value), _height(value)
        wanted = self._signed_header(value, "block", account)
        header = wanted.header
        told = f"block (version {header.version}) at height {height} on {_shown(header)}"
        async with self._lock(account), self._refusals(caller, account, told):
            return await self._block(caller, account, height, wanted, told)

    async def microblock(self, caller: str, value: dict[str, Any]) -> dict[str, Any]:
        """The signatures of a microblock, of the block that it makes, and of its announcement;
        raises ``RequestRefused``.
        """
        account, height = self._account(value), _height(value)
        total = self._signed_header(value, "total", account)
        micro: Microblock = _read(
            value,
            "microblock",
            lambda text: microblocks.decode(decode_base64(text), self._chain_id),
        )
        if micro.generator != account.public_key:
            raise RequestRefused(NOT_SIGNABLE, "the microblock is of another key", "microblock")
        parent, count = _shown(total.header), len(micro.transactions)
        told = f"microblock at height {height} with {count} transactions on {parent}"
        async with self._lock(account), self._refusals(caller, account, told):
            return await self._microblock(caller, account, height, total, micro, told)

    def _account(self, value: dict[str, Any]) -> Account:
        text = value.get("key")
        if not isinstance(text, str) or not 0 < len(text) <= MAX_KEY_CHARACTERS:
            words = "key should be a name, an address or a public key"
            raise RequestRefused(WRONG_SHAPE, words, "key")
        return self._desk.keyring.find(text)

    def _lock(self, account: Account) -> asyncio.Lock:
        return self._locks.setdefault(account.text, asyncio.Lock())

    def _signed_header(self, value: dict[str, Any], name: str, account: Account) -> SignedHeader:
        """The header of what should be a block with an empty signature."""
        chain_id = self._chain_id

        def read(text: str) -> SignedHeader:
            data = decode_base64(text)
            # Of older versions the transactions are signed with it, so all of it is read.
            blocks.decode(data, chain_id)
            return blocks.decode_signed_header(data, chain_id)

        found: SignedHeader = _read(value, name, read)
        if found.header.generator != account.public_key:
            raise RequestRefused(NOT_SIGNABLE, f"{name} has another generator", name)
        return found

    @contextlib.asynccontextmanager
    async def _refusals(self, caller: str, account: Account, told: str) -> AsyncIterator[None]:
        """Write down what is refused here by the rules, or because there was another one."""
        try:
            yield
        except RequestRefused as error:
            if error.answer.code in (REFUSED.code, SIGNED_BEFORE.code):
                entry = self._desk.entry(
                    Event.REFUSE,
                    caller=caller,
                    key=account.name,
                    rule=str(error.answer.more.get("rule", "")),
                    reason=str(error),
                    told=(told,),
                )
                await self._desk.written(entry)
            raise

    # --- signing ----------------------------------------------------------------------------------

    async def _block(
        self, caller: str, account: Account, height: int, wanted: SignedHeader, told: str
    ) -> dict[str, Any]:
        header, digest = wanted.header, _digest(wanted.signed)
        parent = _shown(header)
        marks = self._desk.book.marks
        before = marks.on_parent(account.text, parent)
        if before is not None:
            return _block_again(before, digest)
        allowed = self._allowed(caller, account, Kind.BLOCK, header.version)
        least = marks.highest(account.text) - min(
            allowed.rule.reorganizations, MAX_REORGANIZATIONS - 1
        )
        if height <= least:
            words = f"a block of height {marks.highest(account.text)} was signed, this is {height}"
            raise RequestRefused(SIGNED_BEFORE, words, "height")
        (signature,) = await self._signatures(account, [wanted.signed])
        form = base58.encode(blocks.id_of(header, signature))
        kept = _without_transactions(wanted)
        mark = Mark(MarkKind.BLOCK, account.text, height, parent, form, digest, kept)
        await self._write(caller, account, allowed, told, mark, [signature])
        return {"signature": base58.encode(signature)}

    async def _microblock(
        self,
        caller: str,
        account: Account,
        height: int,
        total: SignedHeader,
        micro: Microblock,
        told: str,
    ) -> dict[str, Any]:
        parent = _shown(total.header)
        on_parent = self._desk.book.marks.on_parent(account.text, parent)
        digest = _digest(total.signed, micro.signed)
        if on_parent is None:
            raise RequestRefused(NOT_SIGNABLE, "no block on this parent was signed here", "total")
        newest = None if on_parent.micro is None else on_parent.micro.mark
        if newest is not None and newest.digest == digest and on_parent.micro is not None:
            return _micro_answer(on_parent.micro.proofs)
        _check_extends(on_parent, total.header, micro)
        if base58.encode(micro.reference) != on_parent.form:
            words = f"the newest form of the block on {parent} is {on_parent.form}"
            raise RequestRefused(SIGNED_BEFORE, words, "microblock")
        allowed = self._allowed(caller, account, Kind.MICROBLOCK, total.header.version)
        signatures = await self._of_microblock(account, total, micro)
        form = base58.encode(blocks.id_of(total.header, signatures[0]))
        mark = Mark(MarkKind.MICROBLOCK, account.text, height, parent, form, digest)
        await self._write(caller, account, allowed, told, mark, signatures)
        return _micro_answer(tuple(map(base58.encode, signatures)))

    async def _of_microblock(
        self, account: Account, total: SignedHeader, micro: Microblock
    ) -> list[bytes]:
        (of_total,) = await self._signatures(account, [total.signed])
        made = microblocks.assemble(
            version=micro.version,
            reference=micro.reference,
            total_signature=of_total,
            generator=micro.generator,
            transactions=micro.transactions,
            state_hash=micro.state_hash,
        )
        form = blocks.id_of(total.header, of_total)
        inv = MicroblockInv(micro.generator, form, micro.reference, b"")
        announced = inv.signed_bytes(self._chain_id)
        return [of_total, *await self._signatures(account, [made.signed, announced])]

    async def _signatures(self, account: Account, messages: Sequence[bytes]) -> list[bytes]:
        if account.store is not None:
            return await asyncio.to_thread(account.store.sign, messages)
        return [account.sign(each, boot_ms()) for each in messages]

    # --- rules and lines --------------------------------------------------------------------------

    def _allowed(self, caller: str, account: Account, kind: Kind, version: int) -> Allowed:
        """What the rules say; raises ``RequestRefused``."""
        desk = self._desk
        measures = Measures(
            kind=kind,
            type_id=0,
            name=kind.value,
            version=version,
            sender=account.public_key,
            binds_chain=True,
        )
        question = Question(
            measures, account.name, account.public_key, caller, self._chain_id, desk.clock()
        )
        decided = desk.policy.decide(question, desk.book.windows, desk.book.clock.now())
        if not isinstance(decided, Allowed):
            raise refused(decided)
        if decided.rule.approvals is not None:
            words = f'the rule "{decided.rule.name}" asks for approvals; a block cannot wait'
            raise RequestRefused(REFUSED, words)
        return decided

    def _entry(
        self,
        caller: str,
        account: Account,
        allowed: Allowed,
        told: str,
        **more: Any,  # noqa: ANN401 - members of an entry
    ) -> Entry:
        return self._desk.entry(
            Event.SIGN,
            caller=caller,
            key=account.name,
            rule=allowed.rule.name,
            told=(told,),
            **more,
        )

    async def _write(
        self,
        caller: str,
        account: Account,
        allowed: Allowed,
        told: str,
        mark: Mark,
        signatures: list[bytes],
    ) -> None:
        desk = self._desk
        entry = self._entry(
            caller,
            account,
            allowed,
            told,
            ids=(mark.form,),
            proofs=tuple(map(base58.encode, signatures)),
            charges=allowed.charges,
            mark=mark,
        )
        desk.book.windows.charge(allowed.charges, entry.time)
        try:
            await desk.written(entry)
        except RequestRefused:
            desk.book.windows.take_back(allowed.charges, entry.time)
            raise


def _block_again(before: OnParent, digest: str) -> dict[str, Any]:
    """The same signature for the same block; raises ``RequestRefused`` for another one, with what
    was signed: a node that has lost it can go on from there.
    """
    mark, (signature, *_) = before.block.mark, before.block.proofs
    assert mark is not None
    if mark.digest == digest:
        return {"signature": signature}
    more = {"signed": mark.unsigned, "signature": signature} if mark.unsigned else {}
    words = f"the block {mark.form} was signed on the parent {mark.parent}"
    raise RequestRefused(SIGNED_BEFORE, words, "block", **more)


def _check_extends(before: OnParent, header: BlockHeader, micro: Microblock) -> None:
    """Raise ``RequestRefused`` unless this is the signed block with other transactions."""
    mark = before.block.mark
    assert mark is not None
    if not mark.unsigned:
        raise RequestRefused(NOT_SIGNABLE, "the block on this parent is too long", "total")
    first, _ = blocks.decode_header(base64.b64decode(mark.unsigned), header.chain_id)
    if _without_content(first) != _without_content(header):
        raise RequestRefused(NOT_SIGNABLE, "total is another block than was signed", "total")
    if micro.version != header.version or micro.state_hash != header.state_hash:
        raise RequestRefused(NOT_SIGNABLE, "microblock and total do not fit", "microblock")


def _without_transactions(wanted: SignedHeader) -> str:
    """The block with an empty signature, in base64: of older versions with its transactions, which
    are signed with it, and nothing where that is long.
    """
    data = wanted.signed + _UNSIGNED
    if wanted.header.version >= blocks.PROTOBUF_VERSION:
        data = blocks.assemble(wanted.header, (), _UNSIGNED).data
    return base64.b64encode(data).decode() if len(data) <= MAX_KEPT_BYTES else ""


def _without_content(header: BlockHeader) -> BlockHeader:
    return msgspec.structs.replace(header, transactions_root=b"", state_hash=None)


def _micro_answer(proofs: Sequence[str]) -> dict[str, Any]:
    total, micro, announcement = proofs
    return {"totalSignature": total, "signature": micro, "announcement": announcement}


def _shown(header: BlockHeader) -> str:
    return base58.encode(header.reference)


def _digest(*parts: bytes) -> str:
    found = hashlib.blake2b(digest_size=16)
    for each in parts:
        found.update(len(each).to_bytes(4, "big") + each)
    return found.hexdigest()


def _height(value: dict[str, Any]) -> int:
    found = value.get("height")
    if type(found) is not int or not 0 < found <= MAX_HEIGHT:
        raise RequestRefused(WRONG_SHAPE, "height should be that of the block", "height")
    return found


def _read(value: dict[str, Any], name: str, read: Callable[[str], Any]) -> Any:  # noqa: ANN401
    text = value.get(name)
    if not isinstance(text, str):
        raise RequestRefused(WRONG_SHAPE, f"{name} should be a text", name)
    words: str
    try:
        return read(text)
    except JsonFieldError:
        words = "it is not written as it should be"
    except (ChainError, CryptoError) as error:
        words = str(error)[:300]
    raise RequestRefused(NOT_SIGNABLE, f"{name}: {words}", name)
