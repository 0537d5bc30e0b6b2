"""A devnet told what to do by web3.py, under the names that anvil and Hardhat gave the calls:
``python control.py URL``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from web3 import HTTPProvider, Web3
from web3.exceptions import Web3RPCError
from web3.types import RPCEndpoint

SOMEBODY = Web3.to_checksum_address("0x" + "cd" * 20)
KEY = "0x" + "03" * 32
PAYMENTS = {
    "name": "payments",
    "type": "tuple[]",
    "components": [{"name": "assetId", "type": "bytes32"}, {"name": "amount", "type": "int64"}],
}


def function(name: str, *types: str) -> dict[str, Any]:
    """A function of a dApp, as its ABI has it."""
    inputs = [{"name": f"a{number}", "type": each} for number, each in enumerate(types)]
    return {"name": name, "type": "function", "inputs": [*inputs, PAYMENTS], "outputs": []}


ABI = [
    function("keep", "string", "int64[]", "bool", "bytes", "int64"),
    function("lists", "string[]", "int64[]"),
    function("default"),
]
CALLS: list[tuple[str, list[Any]]] = [
    ("keep", ["key", [3, -4], True, b"\1" * 33, -5, [(bytes(32), 7), (b"\2" * 32, 8)]]),
    ("lists", [["a", "", "x" * 40], [], []]),
    ("default", [[]]),
]


def tell(name: str, value: Any) -> None:
    """One result."""
    print(json.dumps({"name": name, "value": value}), flush=True)


class Devnet:
    """A devnet, as the library sees it."""

    def __init__(self, url: str) -> None:
        self.w3 = Web3(HTTPProvider(f"{url}/eth"))

    def send(self, method: str, *params: Any) -> Any:
        """The result of a call."""
        return self.w3.manager.request_blocking(RPCEndpoint(method), list(params))

    def state(self) -> dict[str, int]:
        """Height, time, and what somebody has."""
        block = self.w3.eth.get_block("latest")
        return {
            "height": self.w3.eth.block_number,
            "balance": self.w3.eth.get_balance(SOMEBODY),
            "time": block["timestamp"],
        }

    def refused(self, method: str, *params: Any) -> str:
        """Why a call is refused."""
        try:
            return f"done: {self.send(method, *params)}"
        except Web3RPCError as error:
            return str(error)


def obey(devnet: Devnet) -> None:
    """Blocks, balances, time, snapshots."""
    w3, send, state = devnet.w3, devnet.send, devnet.state
    tell("connected", [w3.is_connected(), w3.eth.chain_id, w3.client_version])
    send("evm_setAutomine", False)
    tell("automine", send("hardhat_getAutomine"))
    tell("start", state())
    snapshot = send("evm_snapshot")
    tell("set", [send("anvil_setBalance", SOMEBODY, hex(3 * 10**18)), state()])
    tell("hardhat", [send("hardhat_setBalance", SOMEBODY, hex(10**18)), state()])
    tell("mined", [send("anvil_mine", hex(100), hex(60)), state()])
    tell("mine", [send("evm_mine"), state()])
    tell("later", [send("evm_increaseTime", 3_600), send("evm_mine"), state()])
    moment = state()["time"] + 86_400
    send("evm_setNextBlockTimestamp", moment)
    send("hardhat_mine")
    tell("next", [moment, state()])
    tell(
        "impersonated",
        [
            send("hardhat_impersonateAccount", SOMEBODY),
            send("anvil_stopImpersonatingAccount", SOMEBODY),
        ],
    )
    tell("reverted", [send("evm_revert", snapshot), state()])
    tell("again", [send("evm_revert", snapshot), send("evm_revert", "0x77")])


def pay(devnet: Devnet) -> None:
    """A transaction that the library signs is one of the chain."""
    w3, send = devnet.w3, devnet.send
    account = w3.eth.account.from_key(KEY)
    send("evm_setAutomine", True)
    send("anvil_setBalance", account.address, hex(10**18))
    signed = account.sign_transaction(
        {
            "to": SOMEBODY,
            "value": w3.to_wei("0.25", "ether"),
            "gas": w3.eth.estimate_gas({"from": account.address, "to": SOMEBODY, "value": 10**10}),
            "gasPrice": w3.eth.gas_price,
            "nonce": w3.eth.get_transaction_count(account.address),
            "chainId": w3.eth.chain_id,
        }
    )
    tell("raw", "0x" + bytes(signed.raw_transaction).hex())
    contract = w3.eth.contract(abi=ABI)
    tell("data", [contract.encode_abi(name, args=args) for name, args in CALLS])
    receipt = w3.eth.wait_for_transaction_receipt(
        w3.eth.send_raw_transaction(signed.raw_transaction)
    )
    tell(
        "paid",
        [receipt["status"], w3.eth.get_balance(SOMEBODY), w3.eth.get_balance(account.address)],
    )
    tell("receipt", json.loads(Web3.to_json(receipt)))


def end(devnet: Devnet) -> None:
    """What is left to be asked."""
    send, state, refused = devnet.send, devnet.state, devnet.refused
    tell("metadata", json.loads(Web3.to_json(send("anvil_metadata"))))
    tell("reset", [send("hardhat_reset"), state()])
    tell(
        "errors",
        {
            "amount": refused("anvil_setBalance", SOMEBODY, "lots"),
            "past": refused("evm_setNextBlockTimestamp", 1),
            "unknown": refused("anvil_setNonce", SOMEBODY, "0x1"),
            "blocks": refused("hardhat_mine", "0xffffffffff"),
        },
    )


def main(url: str) -> None:
    """Each call, as a user of the library makes it."""
    devnet = Devnet(url)
    obey(devnet)
    pay(devnet)
    end(devnet)


if __name__ == "__main__":
    main(sys.argv[1])
