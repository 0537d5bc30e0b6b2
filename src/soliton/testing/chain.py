"""Control of a chain in tests: blocks, time, snapshots, state edits.

What lives here: ``Chain``, for a chain in this process and for a running devnet. What does not: the
controls themselves (``soliton.controls``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

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
"""Milliseconds since 1970, or a ``datetime`` with a time zone."""
DataValue: TypeAlias = int | bool | str | bytes | None
Json = dict[str, Any]

_MS: Final = 1_000
_CONTROLS: Final = ("resets", "clock", "mining", "impersonated")
"""What the controls of a devnet can change outside of blocks."""


class State(NamedTuple):
    """A state of a chain: ``restore`` moves the chain there, any number of times, from an older or
    a newer one; ``forget`` ends that.
    """

    restore: Callable[[], object]
    forget: Callable[[], object]


class NotObeying(SolitonError):
    """The chain has no controls, because it is not a devnet."""


class Chain:
    """The controls of a private chain, in this process or at a URL.

    A chain that is not a devnet has only ``height`` and ``time``; everything else raises
    ``NotObeying``.
    """

    def __init__(self, node: Node, local: LocalChain | None = None) -> None:
        """Tests get one from the fixture ``chain``."""
        self.node = node
        self._local = local
        self._obeys: bool | None = True if local is not None else None

    @property
    def obeys(self) -> bool:
        """Whether the chain has controls. The result of the first request is cached."""
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
        """The time of the chain in milliseconds since 1970."""
        return self.node.time()

    # --- blocks and time --------------------------------------------------------------------------

    def mine(self, blocks: int = 1, interval: float | timedelta | None = None) -> int:
        """Mine blocks, ``interval`` seconds apart; the first takes the pool. Return the height."""
        apart = None if interval is None else _milliseconds(interval)
        tip = self._control("POST", "/devnet/mine" + query(blocks=blocks, interval=apart))
        return int(tip["height"])

    def mining(self, mode: str, every: float = 0) -> None:
        """Set the mining mode: ``instant`` (the default), ``interval`` (a block ``every`` so many
        seconds), or ``manual``. In this process time does not pass by itself, so ``interval`` is
        the same as ``manual``.
        """
        self._control(
            "POST", "/devnet/mining" + query(mode=mode, every=_milliseconds(every) or None)
        )

    def travel(self, time: float | timedelta) -> int:
        """Move the clock forward by seconds, and mine a block, so that scripts see the new time,
        which is returned.
        """
        return self._moved(travel=_milliseconds(time))

    def set_time(self, time: Time) -> int:
        """Set the time, not before the last block's, and mine a block; return the time."""
        return self._moved(set=_moment(time))

    def _moved(self, **change: int) -> int:
        self._control("POST", "/devnet/clock" + query(**change))
        self.mine()
        return self.time

    def freeze(self, *, frozen: bool = True) -> None:
        """Stop the clock, or start it again."""
        self._control("POST", "/devnet/clock" + query(frozen=frozen))

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self) -> str:
        """Take a snapshot; return its id for ``revert``."""
        return str(self._control("POST", "/devnet/snapshots")["id"])

    def revert(self, snapshot: str) -> None:
        """Revert to a snapshot, any number of times; raises ``KeyError`` for an unknown one."""
        if not self._control("POST", f"/devnet/snapshots/{segment(snapshot)}/revert")["done"]:
            raise KeyError(snapshot)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Revert everything that happens in the ``with`` block."""
        state = self.state()
        try:
            yield
        finally:
            state.restore()
            state.forget()

    def state(self) -> State:
        """The present state of the chain and of the client's clock; takes a snapshot."""
        if self._local is not None:
            moment = self._local.mark()
            return State(partial(self._local.restore, moment), partial(self._local.forget, moment))
        snapshot, offset = self.snapshot(), self.node._core.clock_offset

        def restore() -> None:
            self.revert(snapshot)
            self.node._core.clock_offset = offset

        path = f"/devnet/snapshots/{segment(snapshot)}"
        return State(restore, partial(self._control, "DELETE", path))

    def token(self) -> object:
        """A value that differs where the chain or its controls have changed."""
        if self._local is not None:
            return self._local.token()
        header = self._ask(Request("GET", "/blocks/headers/last"))
        waiting = self._ask(Request("GET", "/transactions/unconfirmed/size"))
        if not self.obeys:
            return header["id"], waiting["size"]
        controls = self._ask(Request("GET", "/devnet"))
        return header["id"], waiting["size"], [controls[each] for each in _CONTROLS]

    def reorganize(
        self,
        depth: int,
        transactions: Sequence[Sequence[Transaction]] = (),
        *,
        keep: bool = True,
    ) -> Json:
        """Replace the last blocks by as many others with the ``transactions`` for each. With
        ``keep`` the transactions of the old blocks return to the pool.
        """
        chosen = [[one.to_json() for one in each] for each in transactions]
        body = {"depth": depth, "transactions": chosen, "keep": keep}
        return self._control("POST", "/devnet/reorg", body)

    def drop(self, *ids: str) -> list[str]:
        """Remove transactions, by default all, from the pool; return the ids of those removed."""
        answer = self._control("POST", "/devnet/drop" + query(id=list(ids) or None))
        return list(answer["dropped"])

    # --- state edits ------------------------------------------------------------------------------

    def impersonate(self, account: Whom, *, on: bool = True) -> None:
        """Accept transactions of an account without proofs, or require them again."""
        self._control(
            "POST" if on else "DELETE", f"/devnet/impersonated/{segment(_address(account))}"
        )

    def set_balance(self, account: Whom, amount: Amount, asset: AssetLike = None) -> None:
        """Set an account's balance of the coin or of an asset, in a block."""
        edit: Json = {"kind": "balance", "address": _address(account)}
        name = asset_bytes(asset)
        if name is not None:
            edit |= {"kind": "assetBalance", "assetId": base58.encode(name)}
        self.edit(edit | {"amount": units(amount, asset)})

    def set_data(self, account: Whom, entries: Mapping[str, DataValue]) -> None:
        """Set data entries of an account, in a block; ``None`` deletes an entry."""
        address = _address(account)
        self.edit(*(_data_edit(address, key, value) for key, value in entries.items()))

    def set_script(self, account: Whom, script: Script) -> None:
        """Set the compiled script of an account, or remove it, in a block."""
        data = script_bytes(script)
        text = None if data is None else encode_base64(data)
        key = getattr(account, "public_key", None)
        self.edit(
            {"kind": "script", "address": _address(account), "script": text, "publicKey": key}
        )

    def edit(self, *edits: Mapping[str, Any]) -> None:
        """Apply edits in the form of ``POST /devnet/edits``, in one block."""
        self._control("POST", "/devnet/edits", {"edits": list(edits)})

    # --- requests ---------------------------------------------------------------------------------

    def _control(self, method: str, path: str, body: object = None) -> Json:
        if not self.obeys:
            raise NotObeying(f"{self.node.url} is not a devnet with controls")
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
