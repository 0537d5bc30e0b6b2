"""A signer that keeps keys, in the hands of a test: its store, its rules, its callers.

What lives here: helpers of the tests beside this module. What does not: nodes (``fakes``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from soliton.chain import networks
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.transactions.json_reader import read_signed
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.hashes import secure_hash
from soliton.crypto.keys import key_pair
from soliton.keystore.keys import phrase
from soliton.signer.app import Limits, Signer, SignerSettings, build_app
from soliton.signer.callers import SCOPES, Caller
from soliton.signer.journal import read_all
from soliton.signer.policy_file import policy_hash
from soliton.signer.records import Entry
from soliton.signer.settings import KeySettings
from tests.keystore.stores import keep
from tests.signer.fakes import FakeNode
from tests.web.memory import MemoryHttp

PASSWORD: Final = "a password of the tests"
HOT_PHRASE: Final = "hot phrase of the signer's tests"
COLD_PHRASE: Final = "cold phrase of the signer's tests"
NETWORK: Final = networks.load("devnet")
CHAIN_ID: Final = NETWORK.chain_id
NOW: Final = 1_700_000_000_000
ALL: Final = """
[[rule]]
name = "all"
signs = ["transfer", "data", "order", "cancelOrder", "auth", "customData", "wavesAuth"]
keys = "any"
callers = ["bot"]
senders = "any"
recipients = "any"
amounts = "any"
fees = "any"
data-keys = "any"
pairs = "any"
matchers = "any"
hosts = "any"
unbound-chain = true
"""
KEYS: Final = {name: f"the API key of {name}" for name in ("bot", "alice", "bob", "carol", "idle")}
MAY: Final = {
    "bot": frozenset(SCOPES) - {"approve"},
    "alice": frozenset({"approve", "list"}),
    "bob": frozenset({"approve"}),
    "carol": frozenset({"approve"}),
    "idle": frozenset({"list"}),
}


def callers(**rates: int) -> tuple[Caller, ...]:
    """All callers, some with a rate."""
    return tuple(
        Caller(name, secure_hash(key.encode()), MAY[name], rates.get(name, 0))
        for name, key in KEYS.items()
    )


def as_caller(name: str) -> dict[str, str]:
    """The headers of a caller."""
    return {"X-API-Key": KEYS[name]}


BOT: Final = as_caller("bot")


class Place:
    """A directory with a store of two keys, rules and an audit log."""

    def __init__(self, directory: Path, rules: str = ALL) -> None:
        self.directory = directory
        self.keys = directory / "keys"
        self.state = directory / "state"
        self.rules = directory / "policy.toml"
        self.rules.write_text(rules, encoding="utf-8")
        if not self.keys.exists():
            secrets = {"hot": HOT_PHRASE, "cold": COLD_PHRASE}
            keep(self.keys, PASSWORD, {name: phrase(text) for name, text in secrets.items()})

    def app(self, node_url: str = "http://nobody.test", **more: Any) -> Signer:
        """A signer of this place."""
        limits, clock = more.pop("limits", Limits()), more.pop("clock", lambda: NOW)
        usual: dict[str, Any] = {
            "directory": self.keys,
            "policy_file": self.rules,
            "policy_hash": policy_hash(self.rules.read_bytes()),
            "state_directory": self.state,
            "callers": callers(),
            "hosts": ("signer.test",),
        }
        keys = KeySettings(**(usual | more))
        return build_app(SignerSettings(node_url, NETWORK, limits, clock=clock, keys=keys))

    @asynccontextmanager
    async def serving(
        self, node: FakeNode | None = None, *, unlocked: bool = True, **more: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        """A client of it; its keys are unlocked unless a test says otherwise."""
        app = self.app("http://nobody.test" if node is None else node.url, **more)
        try:
            async with httpx.AsyncClient(
                transport=MemoryHttp(app), base_url="http://signer.test", timeout=60
            ) as client:
                if unlocked:
                    body = {"password": PASSWORD, "seconds": 3600}
                    answer = await client.post("/keys/unlock", json=body, headers=BOT)
                    assert answer.status_code == 200, answer.text
                if node is None:
                    yield client
                else:
                    async with node.serving():
                        yield client
        finally:
            app.close()


# --- what is signed -------------------------------------------------------------------------------

HOT, COLD = key_pair(HOT_PHRASE), key_pair(COLD_PHRASE)
HOT_TEXT: Final = base58.encode(HOT.public_key)
HOT_ADDRESS, COLD_ADDRESS = (
    address_text(from_public_key(each.public_key, CHAIN_ID)) for each in (HOT, COLD)
)
TRANSFER: Final = {
    "type": 4,
    "version": 3,
    "recipient": COLD_ADDRESS,
    "amount": 5,
    "fee": 100_000,
}
APPROVED: Final = f"""
[[rule]]
name = "large"
signs = ["transfer"]
keys = ["hot"]
callers = ["bot"]
recipients = ["{COLD_ADDRESS}"]
amounts = {{ WAVES = 100 }}
fees = {{ WAVES = 100_000 }}
windows = [{{ amounts = "WAVES", most = 150, within = "1d" }}]
approvals = {{ of = ["alice", "bob", "carol"], needed = 2, within = "1h" }}
"""
LIMITED: Final = APPROVED.replace("approvals", "# approvals")


def checked(signed: dict[str, Any], key: bytes = HOT.public_key, place: int = 0) -> None:
    """Our own reader takes it, and the signature at that place is the key's."""
    transaction = read_signed(signed, CHAIN_ID)
    assert base58.encode(transaction.id) == signed["id"]
    assert verify(key, transaction.body, transaction.proofs[place])


def entries(place: Place) -> list[Entry]:
    """All lines of its audit log."""
    return [each for each, _ in read_all(place.state)]
