"""Sending scripts and calls to a node: ``soliton ride deploy`` and ``invoke``.

What lives here: parsing a call, making and signing the transaction, and mapping errors to local
files. What does not: requests (``remote``), broadcasting (``soliton.client``), options
(``soliton.cli``).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from soliton.chain.addresses import (
    Address,
    Alias,
    Recipient,
    from_public_key,
    parse_address,
)
from soliton.chain.errors import AddressError
from soliton.chain.function_calls import Argument, FunctionCall
from soliton.chain.transactions import codec, invoke_script, set_script
from soliton.chain.transactions.model import AnyTransaction, TransactionType
from soliton.chain.values import MAX_I64
from soliton.client.errors import FeeTooHigh, NodeBroken, NodeRefused, ScriptFailed
from soliton.client.fees import most_fee
from soliton.client.node import Node
from soliton.client.records import Fee
from soliton.client.routes.network import chain_id_in
from soliton.client.transaction import Transaction
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.errors import InputError
from soliton.node.rest_settings import is_local
from soliton.ride.compiler import CompileError, compile_value
from soliton.ride.compiler.errors import Source, bounded
from soliton.ride.compiler.parser import parse_expression
from soliton.ride.compiler.syntax import Apply, Name
from soliton.ride.evaluator import evaluate
from soliton.ride.faults import KNOWN, FaultReport, Position, SourceText
from soliton.ride.script import parse_script_text
from soliton.ride.source_map import SourceMap, map_known_source
from soliton.ride.values import RideList, Value
from soliton.workshop.no_chain import NoChain, no_transaction
from soliton.workshop.remote import Remote, RemoteRefusal, RemoteTrouble, refusal_of

WAIT_SECONDS: Final = 120.0
MAX_CALL_CHARS: Final = 20_000
_AMOUNT: Final = re.compile(r"[0-9]{1,19}")
_LANGUAGE: Final = 8


def chain_id_of(remote: Remote, expected: int | None = None) -> int:
    """The chain of a node, from the address of its last generator. A node on another machine does
    not decide for which chain we sign: raises ``InputError`` unless its chain is the ``expected``
    one, which may be left out only for a node on this machine.
    """
    generator = str(remote.get("/blocks/headers/last")["generator"])
    try:
        found = chain_id_in(generator)
    except NodeBroken as error:
        raise RemoteTrouble(f"{remote.url}: {error}") from error
    if expected is None and not is_local(urlsplit(remote.url).hostname or ""):
        raise InputError(f"{remote.url} is of chain {_shown(found)}: --chain-id if that is right")
    if expected is not None and found != expected:
        raise InputError(f"{remote.url} is of chain {_shown(found)}, not {_shown(expected)}")
    return found


def _shown(chain_id: int) -> str:
    return chr(chain_id) if chr(chain_id).isprintable() else str(chain_id)


def read_call(text: str) -> FunctionCall:
    """Parse a call in the syntax of the language, ``buy(7, "x", [true])``; raises ``InputError``.

    Arguments may be expressions that need no chain.
    """
    if len(text) > MAX_CALL_CHARS:
        raise InputError(f"a call has at most {MAX_CALL_CHARS} characters")
    try:
        with bounded():
            node = parse_expression(Source(text), _LANGUAGE)
        if isinstance(node, Name):
            return FunctionCall(node.name)
        if not isinstance(node, Apply) or not text[node.start :].startswith(node.name):
            raise InputError(f"a call is written NAME(ARGUMENT, …), not {text[:60]}")
        arguments = tuple(_argument(text[each.start : each.end]) for each in node.arguments)
    except CompileError as error:
        raise InputError(f"the call: {error}") from error
    return FunctionCall(node.name, arguments)


def _argument(text: str) -> Argument:
    script, _ = compile_value(text, _LANGUAGE)
    return _plain(evaluate(script, NoChain(), no_transaction).value)


def _plain(value: Value) -> Argument:
    if isinstance(value, (bool, int, str, bytes)):
        return value
    if isinstance(value, RideList):
        return tuple(_plain(each) for each in value.items)
    raise InputError("arguments are numbers, texts, bytes, true or false, and lists of those")


def read_payment(text: str) -> invoke_script.Payment:
    """Parse ``AMOUNT`` or ``AMOUNT:ASSET``, in the smallest units."""
    amount, colon, asset = text.partition(":")
    try:
        if _AMOUNT.fullmatch(amount) is None or int(amount) > MAX_I64:
            raise ValueError
        return invoke_script.Payment(int(amount), base58.decode(asset) if colon else None)
    except ValueError as error:
        raise InputError(f"a payment is AMOUNT or AMOUNT:ASSET, not {text[:60]}") from error


def read_recipient(text: str, chain_id: int) -> Recipient:
    """Parse the address or alias of a dApp."""
    try:
        return parse_address(text, chain_id)
    except AddressError:
        name = text.rsplit(":", 1)[-1]
        if len(name) > 30 or (":" not in text and len(text) > 30):
            raise
        return Alias(chain_id, name)


class Sender:
    """Makes signed transactions of an account for a node."""

    def __init__(
        self,
        remote: Remote,
        keys: KeyPair,
        *,
        chain_id: int | None = None,
        max_fee: int | None = None,
    ) -> None:
        """``chain_id`` as for ``chain_id_of``; ``max_fee`` is the limit on the fee that the node
        names, by default that of the library (``Transaction.max_fee``).
        """
        self._remote = remote
        self._keys = keys
        self._max_fee = max_fee
        self.chain_id: Final = chain_id_of(remote, chain_id)

    @property
    def address(self) -> Address:
        """The account's address."""
        return from_public_key(self._keys.public_key, self.chain_id)

    def set_script(self, script: bytes, fee: int | None = None) -> AnyTransaction:
        """The signed transaction that sets the account's script."""
        return self._signed(set_script.TYPE, set_script.SetScript(script), fee)

    def invoke(
        self,
        dapp: str,
        call: FunctionCall,
        payments: tuple[invoke_script.Payment, ...] = (),
        fee: int | None = None,
    ) -> AnyTransaction:
        """The signed transaction that calls a dApp."""
        to = read_recipient(dapp, self.chain_id)
        return self._signed(invoke_script.TYPE, invoke_script.InvokeScript(to, call, payments), fee)

    def _signed(self, kind: TransactionType, payload: object, fee: int | None) -> AnyTransaction:
        draft = self._draft(kind, payload, 1 if fee is None else fee)
        if fee is None:
            draft = self._draft(kind, payload, self._fee_of(draft))
        return codec.sign(draft, self._keys.private_key)

    def _fee_of(self, draft: AnyTransaction) -> int:
        """The node's minimum fee; raises ``FeeTooHigh``."""
        answer = self._remote.post("/transactions/calculateFee", codec.to_json(draft))
        try:
            found = msgspec.convert(answer, Fee)
        except msgspec.ValidationError as error:
            raise RemoteTrouble(f"{self._remote.url}: no fee: {error}") from error
        if found.fee_asset_id is not None:
            raise RemoteTrouble(f"{self._remote.url}: a fee in an asset, not in the coin")
        limit = most_fee(draft) if self._max_fee is None else self._max_fee
        if found.fee_amount > limit:
            raise FeeTooHigh(found.fee_amount, limit, None)
        return found.fee_amount

    def _draft(self, kind: TransactionType, payload: object, fee: int) -> AnyTransaction:
        return codec.build(
            kind,
            payload,
            version=kind.max_version,
            chain_id=self.chain_id,
            sender_public_key=self._keys.public_key,
            fee=fee,
            timestamp=time.time_ns() // 1_000_000,
        )


def send(remote: Remote, transaction: AnyTransaction) -> dict[str, Any]:
    """Broadcast a transaction, wait until it is confirmed, and return the node's JSON of it.

    Raises ``RemoteRefusal``, with the position in a script if the node reports it, also when the
    transaction has failed in its block; the library's errors (``ClientError``) if it is not known
    what has become of it.
    """
    sent = Transaction(transaction)
    with Node(remote.url, chain_id=sent.chain_id) as node:
        try:
            node.broadcast(sent)
            node.wait(sent.id, WAIT_SECONDS)
            return node.transaction(sent.id).json
        except ScriptFailed as failure:
            message = f"{sent.id} is in a block and has failed: {failure.message}"
            raise refusal_of({**failure.details, "message": message}) from failure
        except NodeRefused as refused:
            raise refusal_of(
                {**refused.details, "error": refused.code, "message": refused.message}
            ) from refused


def validate(remote: Remote, transaction: AnyTransaction) -> dict[str, Any]:
    """Dry-run a transaction; raises ``RemoteRefusal`` if it is invalid."""
    found = remote.post("/debug/validate", codec.to_json(transaction))
    if not found["valid"]:
        fault = found.get("fault")
        raise refusal_of({"error": 0, "message": found["error"], "fault": fault})
    return dict(found)


def remember_source(remote: Remote, script: str, source: SourceText) -> bool:
    """Send the source of a script to a devnet, for line numbers in its errors. Returns ``False`` on
    other chains.
    """
    body = {"script": script, "source": source.text, "imports": source.libraries}
    body |= {"name": source.name} if source.name else {}
    try:
        return bool(remote.post("/devnet/sources", body)["done"])
    except RemoteRefusal:
        return False


# --- mapping errors to local files ----------------------------------------------------------------


class LocalFiles:
    """Finds the local source files of scripts on a chain."""

    def __init__(self, remote: Remote, sources: Mapping[Path, SourceText]) -> None:
        """Each script is compared with all ``sources``."""
        self._remote = remote
        self._sources = sources
        self._found: dict[str, SourceMap | None] = {}
        self._known: dict[str, tuple[str, SourceText]] = {}
        self.names: Final[dict[str, str]] = {}
        """File names by the addresses of their scripts."""

    def mapped(self, report: FaultReport) -> FaultReport:
        """The report with positions in the local files."""
        return msgspec.structs.replace(
            report,
            position=self._position(report.position),
            calls=tuple(self._position(each) for each in report.calls),
        )

    def map_of(self, address: str) -> SourceMap | None:
        """The source map of an account's script, if its source is known."""
        if address not in self._found:
            self._found[address] = self._find(address)
        return self._found[address]

    def source_of(self, address: str) -> tuple[str, SourceText] | None:
        """An account's script in base64 and its source, if that is known."""
        if self.map_of(address) is None:
            return None
        return self._known[address]

    def _find(self, address: str) -> SourceMap | None:
        info = self._remote.find(f"/addresses/scriptInfo/{address}") if self._sources else None
        if not info or not info.get("script"):
            return None
        script = parse_script_text(info["script"])
        for path, source in self._sources.items():
            known = map_known_source(script, source.text, source.libraries)
            if known is not None:
                self.names[address] = str(path)
                self._known[address] = info["script"], source
                return known
        return None

    def _position(self, position: Position) -> Position:
        known = self.map_of(position.script)
        if known is None or position.node < 0:
            return position
        place = known.range_of(position.node)
        return msgspec.structs.replace(
            position,
            source=KNOWN,
            line=place.line,
            column=place.column,
            expression=place.text,
            file=place.file,
        )
