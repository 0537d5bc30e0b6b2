"""Signing for a node that generates blocks: VRF proofs, blocks and microblocks, none twice.

The node sends a block or a microblock with empty signatures. It is decoded as such, so that nothing
else can be signed this way. Before the signature is returned, the journal on the disk says that
this parent, or this form of the block, has its successor.

A block does not contain its height: the node states it, for the log. Nothing depends on it.

What lives here: the signed bytes, and the order of checks. What does not: the record of what was
signed (``signed_blocks``), whether the rules let the key sign blocks (``policy``), HTTP
(``key_routes``).
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
from soliton.signer.errors import (
    NOT_SIGNABLE,
    REFUSED,
    SIGNED_BEFORE,
    TOO_MANY_KEPT,
    WRONG_SHAPE,
    RequestRefused,
)
from soliton.signer.keyring import Account
from soliton.signer.measures import Kind, Measures
from soliton.signer.pipeline import SigningPipeline, refused
from soliton.signer.policy import Allowed, Question
from soliton.signer.records import Entry, Event, Mark, MarkKind
from soliton.signer.sign_request import MAX_KEY_CHARACTERS
from soliton.signer.signed_blocks import MAX_PARENTS, OnParent
from soliton.wire.messages import MicroblockInv

MAX_HEIGHT: Final = 2**31 - 1
MAX_KEPT_BYTES: Final = 4_096
"""A block up to this size is kept, for a node that has lost its own."""
HIT_SOURCE_BYTES: Final = 32
_UNSIGNED: Final = bytes(SIGNATURE_LENGTH)


class Generating:
    """Signs for generators; a lock for each key serialises its requests."""

    def __init__(self, pipeline: SigningPipeline, chain_id: int) -> None:
        self._pipeline = pipeline
        self._chain_id = chain_id
        self._locks: dict[str, asyncio.Lock] = {}

    # --- requests ---------------------------------------------------------------------------------

    async def prove(self, caller: str, value: dict[str, Any]) -> dict[str, Any]:
        """Return the VRF proof of a hit source, which is a block's generation signature; raises
        ``RequestRefused``.
        """
        account = self._account(value)
        source = _read(value, "message", decode_base58)
        if len(source) != HIT_SOURCE_BYTES:
            words = f"message should be a hit source of {HIT_SOURCE_BYTES} bytes in base58"
            raise RequestRefused(NOT_SIGNABLE, words, "message")
        summary = f"VRF proof of {base58.encode(source)}"
        async with self._refusals(caller, account, summary):
            allowed = self._authorize(caller, account, Kind.BLOCK, blocks.PROTOBUF_VERSION)
            proof = account.prove(source, boot_ms())
            await self._pipeline.written(self._entry(caller, account, allowed, summary))
            return {"proof": base58.encode(proof)}

    async def block(self, caller: str, value: dict[str, Any]) -> dict[str, Any]:
        """Return the signature of a block; raises ``RequestRefused``."""
        account, height = self._account(value), _height(value)
        signed_header = self._signed_header(value, "block", account)
        header = signed_header.header
        summary = f"block (version {header.version}) at height {height} on {_shown(header)}"
        async with self._lock(account), self._refusals(caller, account, summary):
            return await self._block(caller, account, height, signed_header, summary)

    async def microblock(self, caller: str, value: dict[str, Any]) -> dict[str, Any]:
        """Return the signatures of a microblock, of the resulting block, and of the microblock's
        announcement; raises ``RequestRefused``.
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
        summary = f"microblock at height {height} with {count} transactions on {parent}"
        async with self._lock(account), self._refusals(caller, account, summary):
            return await self._microblock(caller, account, height, total, micro, summary)

    def _account(self, value: dict[str, Any]) -> Account:
        text = value.get("key")
        if not isinstance(text, str) or not 0 < len(text) <= MAX_KEY_CHARACTERS:
            words = "key should be a name, an address or a public key"
            raise RequestRefused(WRONG_SHAPE, words, "key")
        return self._pipeline.keyring.find(text)

    def _lock(self, account: Account) -> asyncio.Lock:
        return self._locks.setdefault(account.text, asyncio.Lock())

    def _signed_header(self, value: dict[str, Any], name: str, account: Account) -> SignedHeader:
        """Decode a block with an empty signature and return its header."""
        chain_id = self._chain_id

        def read(text: str) -> SignedHeader:
            data = decode_base64(text)
            # In older versions the signature covers the transactions, so all of it is decoded.
            blocks.decode(data, chain_id)
            return blocks.decode_signed_header(data, chain_id)

        found: SignedHeader = _read(value, name, read)
        if found.header.generator != account.public_key:
            raise RequestRefused(NOT_SIGNABLE, f"{name} has another generator", name)
        return found

    @contextlib.asynccontextmanager
    async def _refusals(self, caller: str, account: Account, summary: str) -> AsyncIterator[None]:
        """Write a refusal by the rules, or because of another signed block, to the journal."""
        try:
            yield
        except RequestRefused as error:
            if error.answer.code in (REFUSED.code, SIGNED_BEFORE.code):
                entry = self._pipeline.entry(
                    Event.REFUSE,
                    caller=caller,
                    key=account.name,
                    rule=str(error.answer.more.get("rule", "")),
                    reason=str(error),
                    sentences=(summary,),
                )
                await self._pipeline.written(entry)
            raise

    # --- signing ----------------------------------------------------------------------------------

    async def _block(
        self, caller: str, account: Account, height: int, signed_header: SignedHeader, summary: str
    ) -> dict[str, Any]:
        header, digest = signed_header.header, _digest(signed_header.signed)
        parent = _shown(header)
        signed_blocks = self._pipeline.state.signed_blocks
        before = signed_blocks.on_parent(account.text, parent)
        if before is not None:
            return _block_again(before, digest)
        if signed_blocks.is_old(account.text, parent):
            words = f"a block was signed on the parent {parent} some time ago"
            raise RequestRefused(SIGNED_BEFORE, words, "block")
        if not signed_blocks.has_room(account.text, self._pipeline.state.clock.now()):
            words = f"this key has signed {MAX_PARENTS} blocks within a week"
            raise RequestRefused(TOO_MANY_KEPT, words, "block")
        allowed = self._authorize(caller, account, Kind.BLOCK, header.version)
        (signature,) = await self._signatures(account, [signed_header.signed])
        form = base58.encode(blocks.id_of(header, signature))
        kept = _without_transactions(signed_header)
        mark = Mark(MarkKind.BLOCK, account.text, height, parent, form, digest, kept)
        await self._write(caller, account, allowed, summary, mark, [signature])
        return {"signature": base58.encode(signature)}

    async def _microblock(
        self,
        caller: str,
        account: Account,
        height: int,
        total: SignedHeader,
        micro: Microblock,
        summary: str,
    ) -> dict[str, Any]:
        parent = _shown(total.header)
        on_parent = self._pipeline.state.signed_blocks.on_parent(account.text, parent)
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
        allowed = self._authorize(caller, account, Kind.MICROBLOCK, total.header.version)
        signatures = await self._of_microblock(account, total, micro)
        form = base58.encode(blocks.id_of(total.header, signatures[0]))
        mark = Mark(MarkKind.MICROBLOCK, account.text, height, parent, form, digest)
        await self._write(caller, account, allowed, summary, mark, signatures)
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
            finalization_voting=micro.finalization_voting,
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

    def _authorize(self, caller: str, account: Account, kind: Kind, version: int) -> Allowed:
        """Evaluate the rules; raises ``RequestRefused``."""
        pipeline = self._pipeline
        measures = Measures(
            kind=kind,
            type_id=0,
            name=kind.value,
            version=version,
            sender=account.public_key,
            binds_chain=True,
        )
        question = Question(
            measures, account.name, account.public_key, caller, self._chain_id, pipeline.clock()
        )
        decided = pipeline.policy.decide(
            question, pipeline.state.windows, pipeline.state.clock.now()
        )
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
        summary: str,
        **more: Any,  # noqa: ANN401 - members of an entry
    ) -> Entry:
        return self._pipeline.entry(
            Event.SIGN,
            caller=caller,
            key=account.name,
            rule=allowed.rule.name,
            sentences=(summary,),
            **more,
        )

    async def _write(
        self,
        caller: str,
        account: Account,
        allowed: Allowed,
        summary: str,
        mark: Mark,
        signatures: list[bytes],
    ) -> None:
        pipeline = self._pipeline
        entry = self._entry(
            caller,
            account,
            allowed,
            summary,
            ids=(mark.form,),
            proofs=tuple(map(base58.encode, signatures)),
            charges=allowed.charges,
            mark=mark,
        )
        pipeline.state.windows.charge(allowed.charges, entry.time)
        try:
            await pipeline.written(entry)
        except RequestRefused:
            pipeline.state.windows.take_back(allowed.charges, entry.time)
            raise


def _block_again(before: OnParent, digest: str) -> dict[str, Any]:
    """Return the same signature for the same block. For another block raise ``RequestRefused``
    with the signed one, from which a node that has lost it can continue.
    """
    mark, (signature, *_) = before.block.mark, before.block.proofs
    assert mark is not None
    if mark.digest == digest:
        return {"signature": signature}
    more = {"signed": mark.unsigned, "signature": signature} if mark.unsigned else {}
    words = f"the block {mark.form} was signed on the parent {mark.parent}"
    raise RequestRefused(SIGNED_BEFORE, words, "block", **more)


def _check_extends(before: OnParent, header: BlockHeader, micro: Microblock) -> None:
    """Raise ``RequestRefused`` unless this is the signed block with other transactions in it."""
    mark = before.block.mark
    assert mark is not None
    if not mark.unsigned:
        raise RequestRefused(NOT_SIGNABLE, "the block on this parent is too long", "total")
    first, _ = blocks.decode_header(base64.b64decode(mark.unsigned), header.chain_id)
    if _without_content(first) != _without_content(header):
        raise RequestRefused(NOT_SIGNABLE, "total is another block than was signed", "total")
    if micro.version != header.version or micro.state_hash != header.state_hash:
        raise RequestRefused(NOT_SIGNABLE, "microblock and total do not fit", "microblock")


def _without_transactions(signed_header: SignedHeader) -> str:
    """Return the block with an empty signature, in base64: in older versions with its
    transactions, which the signature covers. Empty if longer than ``MAX_KEPT_BYTES``.
    """
    data = signed_header.signed + _UNSIGNED
    if signed_header.header.version >= blocks.PROTOBUF_VERSION:
        data = blocks.assemble(signed_header.header, (), _UNSIGNED).data
    return base64.b64encode(data).decode() if len(data) <= MAX_KEPT_BYTES else ""


def _without_content(header: BlockHeader) -> BlockHeader:
    return msgspec.structs.replace(
        header, transactions_root=b"", state_hash=None, finalization_voting=None
    )


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
