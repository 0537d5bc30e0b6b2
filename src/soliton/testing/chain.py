"""What tests tell a chain to do: blocks, time, snapshots, state by hand.

What lives here: ``Chain``, for a chain in this process and for a devnet that runs. What does not:
what the calls do (``soliton.controls``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from soliton.chain.json_kinds import encode_base64
from soliton.client.amounts import Amount, AssetLike, asset_bytes, units
from soliton.client.errors import NotFound
from soliton.client.making import Script, Whom, script_bytes
from soliton.client.node import Node
from soliton.client.steps import JSON, Request, ask, query, segment
from soliton.client.transaction import Transaction
from soliton.crypto import base58
from soliton.errors import SolitonError

if TYPE_CHECKING:
    from soliton.testing.local import LocalChain

Time: TypeAlias = int | datetime
"""Milliseconds since 1970, or a moment with its zone."""
DataValue: TypeAlias = int | bool | str | bytes | None
Json = dict[str, Any]

_MS: Final = 1_000


class NotObeying(SolitonError):
    """The chain does what its protocol says and nothing else: it is no devnet."""


class Chain:
    """A private chain, in this process or behind a URL, that does what it is told.

    Of one that is no devnet only ``height`` and ``time`` can be asked: everything else raises
    ``NotObeying``.
    """

    def __init__(self, node: Node, local: LocalChain | None = None) -> None:
        """The fixture ``chain`` is one."""
        self.node = node
        self._local = local
        self._obeys: bool | None = True if local is not None else None

    @property
    def obeys(self) -> bool:
        """Whether it does what it is told. It is asked once, and remembered."""
        if self._obeys is None:
            try:
                self._ask(Request("GET", "/devnet"))
            except NotFound:
                self._obeys = False
            else:
                self._obeys = True
        return self._obeys

    @property
    def height(self) -> int:
        """The height of the last block."""
        return self.node.height()

    @property
    def time(self) -> int:
        """What time it is on the chain, in milliseconds since 1970."""
        return self.node.time()

    # --- blocks and time --------------------------------------------------------------------------

    def mine(self, blocks: int = 1, interval: float | timedelta | None = None) -> int:
        """Make blocks, ``interval`` seconds apart; the first takes what waits. The height then."""
        apart = None if interval is None else _milliseconds(interval)
        told = self._tell("POST", "/devnet/mine" + query(blocks=blocks, interval=apart))
        return int(told["height"])

    def mining(self, mode: str, every: float = 0) -> None:
        """When blocks come: ``instant`` (as at the beginning), ``interval`` every so many seconds,
        or ``manual``. In this process no time passes by itself, so an interval is as manual.
        """
        self._tell("POST", "/devnet/mining" + query(mode=mode, every=_milliseconds(every) or None))

    def travel(self, time: float | timedelta) -> int:
        """Let so many seconds pass at once, and make a block, so that scripts see it too: the time
        now.
        """
        return self._moved(travel=_milliseconds(time))

    def set_time(self, time: Time) -> int:
        """Let it be this time, not before the last block's, and make a block: the time now."""
        return self._moved(set=_moment(time))

    def _moved(self, **given: int) -> int:
        self._tell("POST", "/devnet/clock" + query(**given))
        self.mine()
        return self.time

    def freeze(self, *, frozen: bool = True) -> None:
        """Let the clock stand still, or go on."""
        self._tell("POST", "/devnet/clock" + query(frozen=frozen))

    # --- going back -------------------------------------------------------------------------------

    def snapshot(self) -> str:
        """Remember everything: an id for ``revert``."""
        return str(self._tell("POST", "/devnet/snapshots")["id"])

    def revert(self, snapshot: str) -> None:
        """Be again as at a snapshot, as often as wanted; raises ``KeyError`` for one that the chain
        does not know.
        """
        if not self._tell("POST", f"/devnet/snapshots/{segment(snapshot)}/revert")["done"]:
            raise KeyError(snapshot)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """What happens here has not happened afterwards."""
        leave = self.enter()
        try:
            yield
        finally:
            leave()

    def enter(self) -> Callable[[], None]:
        """Remember everything; what is returned brings it back, once."""
        if self._local is not None:
            return partial(self._local.leave, self._local.mark())
        # Its transactions have the time of this machine again afterwards.
        return partial(self._leave, self.snapshot(), self.node._core.clock_offset)

    def _leave(self, snapshot: str, clock_offset: int) -> None:
        self.revert(snapshot)
        self._tell("DELETE", f"/devnet/snapshots/{segment(snapshot)}")
        self.node._core.clock_offset = clock_offset

    def reorganize(
        self,
        depth: int,
        transactions: Sequence[Sequence[Transaction]] = (),
        *,
        keep: bool = True,
    ) -> Json:
        """Replace the last blocks by as many others, which hold the ``transactions`` given for
        each; what was in the old ones waits again, unless it is not to be kept.
        """
        chosen = [[one.to_json() for one in each] for each in transactions]
        body = {"depth": depth, "transactions": chosen, "keep": keep}
        return self._tell("POST", "/devnet/reorg", body)

    def drop(self, *ids: str) -> list[str]:
        """Take transactions out of the pool, all of them if none are named: which there were."""
        told = self._tell("POST", "/devnet/drop" + query(id=list(ids) or None))
        return list(told["dropped"])

    # --- state by hand ----------------------------------------------------------------------------

    def impersonate(self, account: Whom, *, on: bool = True) -> None:
        """Ask for no proofs of an account from now on, or again."""
        self._tell("POST" if on else "DELETE", f"/devnet/impersonated/{segment(_address(account))}")

    def set_balance(self, account: Whom, amount: Amount, asset: AssetLike = None) -> None:
        """Let an account have so much of the coin or of an asset, with a block."""
        edit: Json = {"kind": "balance", "address": _address(account)}
        name = asset_bytes(asset)
        if name is not None:
            edit |= {"kind": "assetBalance", "assetId": base58.encode(name)}
        self.edit(edit | {"amount": units(amount, asset)})

    def set_data(self, account: Whom, entries: Mapping[str, DataValue]) -> None:
        """Let an account have these entries in its data, with a block; ``None`` deletes one."""
        address = _address(account)
        self.edit(*(_data_edit(address, key, value) for key, value in entries.items()))

    def set_script(self, account: Whom, script: Script) -> None:
        """Let an account have a compiled script, or none, with a block."""
        data = script_bytes(script)
        text = None if data is None else encode_base64(data)
        key = getattr(account, "public_key", None)
        self.edit(
            {"kind": "script", "address": _address(account), "script": text, "publicKey": key}
        )

    def edit(self, *edits: Mapping[str, Any]) -> None:
        """Change the state in any way that a devnet knows, with one block for all."""
        self._tell("POST", "/devnet/edits", {"edits": list(edits)})

    # --- asking -----------------------------------------------------------------------------------

    def _tell(self, method: str, path: str, body: object = None) -> Json:
        if not self.obeys:
            raise NotObeying(f"{self.node.url} is no devnet that does what it is told")
        data = b"" if body is None else msgspec.json.encode(body)
        return self._ask(Request(method, path, data, JSON if data else (), repeatable=False))

    def _ask(self, request: Request) -> Json:
        return self.node._run(ask(self.node._core, request, Json))


def _milliseconds(time: float | timedelta) -> int:
    return round((time.total_seconds() if isinstance(time, timedelta) else time) * _MS)


def _moment(time: Time) -> int:
    if isinstance(time, int):
        return time
    if time.tzinfo is None:
        raise ValueError(f"{time} has no zone: datetime(…, tzinfo=UTC)")
    return round(time.timestamp() * _MS)


def _address(account: Whom) -> str:
    return account if isinstance(account, str) else account.address


def _data_edit(address: str, key: str, value: DataValue) -> Json:
    edit: Json = {"kind": "data", "address": address, "key": key}
    match value:
        case None:
            return edit
        case bool():
            return edit | {"type": "boolean", "value": value}
        case int():
            return edit | {"type": "integer", "value": value}
        case bytes():
            return edit | {"type": "binary", "value": encode_base64(value)}
        case _:
            return edit | {"type": "string", "value": value}
