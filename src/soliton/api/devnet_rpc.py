"""The controls of a private chain as JSON-RPC methods of anvil and Hardhat, on ``/eth``.

Units are those of these tools: seconds, wei, addresses of 20 bytes. Where they differ:
``evm_setIntervalMining`` takes milliseconds, as in Hardhat, and ``anvil_setIntervalMining``
seconds; a snapshot is kept after a revert to it.

What lives here: names and arguments. What does not: the controls (``soliton.controls``), the form
of JSON-RPC and Ethereum's own methods (``ethereum_rpc``).

Sources: foundry-rs/foundry ``crates/anvil/core/src/eth/mod.rs``; https://hardhat.org reference of
JSON-RPC methods.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Final

from soliton.api.ethereum_json import block_json, hexadecimal, quantity
from soliton.api.json_transactions import Members
from soliton.chain.addresses import (
    PUBLIC_KEY_HASH_LENGTH,
    Address,
    address_text,
    from_public_key,
    from_public_key_hash,
)
from soliton.chain.transactions import codec, ethereum
from soliton.chain.transactions.model import AnyTransaction
from soliton.controls.control import Controls
from soliton.controls.dump import dump, load
from soliton.controls.errors import ControlRefused
from soliton.controls.reorganizing import MAX_REORG
from soliton.crypto import base58
from soliton.ledger.edits import AssetBalanceEdit, BalanceEdit, ScriptEdit
from soliton.ledger.state import ERC20, WAVES

_MS: Final = 1_000
_PREFIX: Final = "0x"
_MAX_NUMBER: Final = 2**256
_MAX_SECONDS: Final = 2**53 // _MS
_ALREADY_MS: Final = 10**11
"""A time from this number on (the year 5138 in seconds) is taken as milliseconds."""

Call = Callable[[list[object], Controls], object]


# --- arguments ------------------------------------------------------------------------------------


def _argument(values: list[object], place: int) -> object:
    return values[place] if place < len(values) else None


def _number(value: object, default: int | None = None) -> int:
    """A number, or a string of hexadecimal or decimal digits."""
    if value is None and default is not None:
        return default
    found = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str) and 0 < len(value) <= 80 and "_" not in value and value.isascii():
        try:
            found = int(value, 16 if value.startswith(_PREFIX) else 10)
        except ValueError:
            found = None
    if found is None or not 0 <= found < _MAX_NUMBER:
        raise ControlRefused("an argument is no number")
    return found


def _data(value: object) -> bytes:
    try:
        return bytes.fromhex(value.removeprefix(_PREFIX)) if isinstance(value, str) else b""
    except ValueError as error:
        raise ControlRefused("an argument is not hexadecimal") from error


def _address(value: object, controls: Controls) -> Address:
    data = _data(value)
    if len(data) != PUBLIC_KEY_HASH_LENGTH:
        raise ControlRefused("an address has 20 bytes in hexadecimal")
    return from_public_key_hash(data, controls.chain.network.chain_id)


def _flag(values: list[object]) -> bool:
    value = _argument(values, 0)
    if not isinstance(value, bool):
        raise ControlRefused("an argument is neither true nor false")
    return value


def _time(value: object) -> int:
    """A time in seconds as milliseconds."""
    number = _number(value)
    return number if number >= _ALREADY_MS else number * _MS


def _seconds(value: object, default: int | None = None) -> int:
    seconds = _number(value, default)
    if seconds > _MAX_SECONDS:
        raise ControlRefused(f"{seconds} seconds: at most {_MAX_SECONDS} are possible")
    return seconds


def _wavelets(value: object) -> int:
    return _number(value) // ethereum.WEI_PER_WAVELET


# --- snapshots ------------------------------------------------------------------------------------


def _snapshot(_values: list[object], controls: Controls) -> str:
    return quantity(controls.snapshot())


def _revert(values: list[object], controls: Controls) -> bool:
    return controls.revert(_number(_argument(values, 0)))


# --- blocks ---------------------------------------------------------------------------------------


async def _mined(controls: Controls, count: int, interval_ms: int = 0) -> None:
    for _ in controls.mining_steps(count, interval_ms):
        await asyncio.sleep(0)


async def _mine(values: list[object], controls: Controls) -> None:
    interval = _seconds(_argument(values, 1), 0)
    await _mined(controls, _number(_argument(values, 0), 1), interval * _MS)


async def _mine_one(values: list[object], controls: Controls) -> str:
    await _mine_with_options(values, controls)
    return quantity(0)


async def _mine_with_options(values: list[object], controls: Controls) -> int:
    """Mine blocks, the first one optionally at a given time; return their number."""
    first, count = _argument(values, 0), 1
    time: object = first
    if isinstance(first, dict):
        time, count = first.get("timestamp"), _number(first.get("blocks"), 1)
    if time is not None:
        controls.set_next_block_time(_time(time))
    await _mined(controls, count)
    return count


async def _mine_detailed(values: list[object], controls: Controls) -> list[Members]:
    chain = controls.chain
    count = await _mine_with_options(values, controls)
    heights = range(chain.height - count + 1, chain.height + 1)
    return [block_json(chain, height, whole=True) for height in heights]


def _set_automine(values: list[object], controls: Controls) -> None:
    controls.set_mining("instant" if _flag(values) else "manual")


def _automine(_values: list[object], controls: Controls) -> bool:
    return controls.mining.mode.mode == "instant"


def _interval_in(unit: int) -> Call:
    def set_interval(values: list[object], controls: Controls) -> None:
        interval = _number(_argument(values, 0))
        if interval:
            controls.set_mining("interval", interval / unit)
        elif controls.mining.mode.mode == "interval":
            controls.set_mining("manual")

    return set_interval


def _interval(_values: list[object], controls: Controls) -> float | None:
    mode = controls.mining.mode
    return mode.seconds if mode.mode == "interval" else None


def _reorganize(values: list[object], controls: Controls) -> None:
    first = _argument(values, 0)
    depth_value, pairs = first, _argument(values, 1)
    if isinstance(first, dict):
        depth_value, pairs = first.get("depth"), first.get("tx_block_pairs")
    depth = _number(depth_value)
    chosen: list[list[AnyTransaction]] = [[] for _ in range(min(depth, MAX_REORG))]
    for pair in pairs if isinstance(pairs, list) else ():
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ControlRefused("a signed transaction and the number of its block are expected")
        place = _number(pair[1])
        if place >= len(chosen):
            raise ControlRefused(f"block {place} of {len(chosen)}: they are counted from 0")
        transaction = ethereum.from_rlp(_data(pair[0]), controls.chain.network.chain_id)
        codec.validate(transaction)
        chosen[place].append(transaction)
    controls.reorganize(depth, chosen)


async def _roll_back(values: list[object], controls: Controls) -> None:
    depth = _number(_argument(values, 0), 1)
    height = controls.chain.height - depth
    if depth < 1 or height < 1:
        raise ControlRefused(f"{depth} blocks: 1 to {controls.chain.height - 1} can be taken off")
    await controls.node.roll_back_in_steps(height, keep=False)


# --- time -----------------------------------------------------------------------------------------


def _increase_time(values: list[object], controls: Controls) -> int:
    controls.travel(_seconds(_argument(values, 0)) * _MS)
    return controls.clock.state.offset // _MS


def _set_time(values: list[object], controls: Controls) -> int:
    before = controls.clock()
    return (controls.set_time(_time(_argument(values, 0))) - before) // _MS


def _set_next_time(values: list[object], controls: Controls) -> None:
    controls.set_next_block_time(_time(_argument(values, 0)))


# --- state ----------------------------------------------------------------------------------------


def _set_balance(values: list[object], controls: Controls) -> bool:
    text = address_text(_address(_argument(values, 0), controls))
    controls.edit([BalanceEdit(text, _wavelets(_argument(values, 1)))])
    return True


def _add_balance(values: list[object], controls: Controls) -> bool:
    address = _address(_argument(values, 0), controls)
    amount = controls.chain.store.get(WAVES, address) + _wavelets(_argument(values, 1))
    controls.edit([BalanceEdit(address_text(address), amount)])
    return True


def _deal_asset(values: list[object], controls: Controls) -> None:
    text = address_text(_address(_argument(values, 0), controls))
    asset_id = controls.chain.store.get(ERC20, _data(_argument(values, 1)))
    if asset_id is None:
        raise ControlRefused("there is no asset with this address")
    amount = _number(_argument(values, 2))
    controls.edit([AssetBalanceEdit(text, base58.encode(asset_id), amount)])


def _set_code(values: list[object], controls: Controls) -> bool:
    """Set a script of this chain's language; there is no Ethereum virtual machine."""
    text = address_text(_address(_argument(values, 0), controls))
    code = _data(_argument(values, 1))
    controls.edit([ScriptEdit(text, base64.b64encode(code).decode() if code else None)])
    return True


def _impersonate(values: list[object], controls: Controls) -> bool:
    controls.impersonate(_address(_argument(values, 0), controls))
    return True


def _stop_impersonating(values: list[object], controls: Controls) -> bool:
    controls.stop_impersonating(_address(_argument(values, 0), controls))
    return True


# --- pool -----------------------------------------------------------------------------------------


def _drop(values: list[object], controls: Controls) -> str | None:
    dropped = controls.drop({_data(_argument(values, 0))})
    return hexadecimal(dropped[0]) if dropped else None


def _drop_of_hardhat(values: list[object], controls: Controls) -> bool:
    return _drop(values, controls) is not None


def _drop_all(_values: list[object], controls: Controls) -> None:
    controls.drop()


def _drop_of(values: list[object], controls: Controls) -> None:
    sender, chain_id = _address(_argument(values, 0), controls), controls.chain.network.chain_id
    unconfirmed = controls.node.pool.transactions()
    keys = {each.sender_public_key for each in unconfirmed if each.sender_public_key}
    theirs = {key for key in keys if from_public_key(key, chain_id) == sender}
    controls.drop({each.id for each in unconfirmed if each.sender_public_key in theirs})


def _pool_status(_values: list[object], controls: Controls) -> Members:
    return {"pending": quantity(len(controls.node.pool)), "queued": quantity(0)}


# --- the whole chain ------------------------------------------------------------------------------


def _reset(values: list[object], controls: Controls) -> bool:
    if any(values):
        raise ControlRefused("this chain begins anew, and is no fork of another one")
    controls.reset()
    return True


def _dump(_values: list[object], controls: Controls) -> str:
    return hexadecimal(dump(controls))


def _load(values: list[object], controls: Controls) -> bool:
    load(controls, _data(_argument(values, 0)))
    return True


def _metadata(_values: list[object], controls: Controls) -> Members:
    chain, state = controls.chain, controls.state()
    return {
        "clientVersion": controls.node.agent,
        "chainId": chain.network.chain_id,
        "instanceId": f"{_PREFIX}{state.instance}{state.resets:048x}",
        "latestBlockNumber": chain.height,
        "latestBlockHash": hexadecimal(chain.last_block.id),
        "forkedNetwork": None,
        "snapshots": {each.id: [each.height, each.block] for each in state.snapshots},
    }


def _node_info(_values: list[object], controls: Controls) -> Members:
    chain = controls.chain
    return {
        "currentBlockNumber": chain.height,
        "currentBlockTimestamp": chain.last_block.header.timestamp // _MS,
        "currentBlockHash": hexadecimal(chain.last_block.id),
        "environment": {"chainId": quantity(chain.network.chain_id)},
        "miningMode": controls.mining.mode.mode,
    }


def _both(name: str, call: Call) -> dict[str, Call]:
    return {f"anvil_{name}": call, f"hardhat_{name}": call}


def _evm(name: str, call: Call) -> dict[str, Call]:
    return {f"anvil_{name}": call, f"evm_{name}": call}


METHODS: Final[Mapping[str, Call]] = {
    **_evm("snapshot", _snapshot),
    **_evm("revert", _revert),
    **_both("mine", _mine),
    "evm_mine": _mine_one,
    **_evm("mine_detailed", _mine_detailed),
    **_evm("setAutomine", _set_automine),
    **_both("getAutomine", _automine),
    "anvil_setIntervalMining": _interval_in(1),
    "evm_setIntervalMining": _interval_in(_MS),
    "anvil_getIntervalMining": _interval,
    **_evm("increaseTime", _increase_time),
    **_evm("setTime", _set_time),
    **_evm("setNextBlockTimestamp", _set_next_time),
    **_both("setBalance", _set_balance),
    "anvil_addBalance": _add_balance,
    "tenderly_setBalance": _set_balance,
    "tenderly_addBalance": _add_balance,
    "anvil_dealERC20": _deal_asset,
    **_both("setCode", _set_code),
    **_both("impersonateAccount", _impersonate),
    **_both("stopImpersonatingAccount", _stop_impersonating),
    "anvil_dropTransaction": _drop,
    "hardhat_dropTransaction": _drop_of_hardhat,
    "anvil_dropAllTransactions": _drop_all,
    "anvil_removePoolTransactions": _drop_of,
    "txpool_status": _pool_status,
    "anvil_reorg": _reorganize,
    "anvil_rollback": _roll_back,
    **_both("reset", _reset),
    "anvil_dumpState": _dump,
    "anvil_loadState": _load,
    **_both("metadata", _metadata),
    "anvil_nodeInfo": _node_info,
}
"""All methods by name; coroutines are awaited."""
