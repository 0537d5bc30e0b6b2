"""Adding a transaction type takes two modules and one row: here is one, at every door.

Its modules are in ``new_type``. Besides them a type has its message in the network's schema, which
``new_type.schema`` adds for the time of a test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.errors import UnsupportedTransaction, ValueRuleError
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions import codec, table
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto.keys import key_pair
from soliton.ledger import rules
from soliton.ledger.apply import Outcome
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import Status
from soliton.node.accounts import accounts_of
from soliton.ride import bindings
from soliton.ride.compiler import compile_source, library
from tests.api.chain import JSON, OTHER, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.api.client import call
from tests.ledger.new_type import greeting, greeting_rules, schema

CHAIN_ID = ord("R")
FRIEND = from_public_key(key_pair("soliton devnet account 1").public_key, CHAIN_ID)
FRIEND_ADDRESS = address_text(FRIEND)
ONLY_HELLO = f"""
{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE EXPRESSION #-}}
{{-# SCRIPT_TYPE ACCOUNT #-}}
match tx {{
  case greeting: GreetingTransaction =>
    greeting.words == "hello" && greeting.recipient == Address(base58'{FRIEND_ADDRESS}')
  case _ => sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)
}}
"""


@pytest.fixture(autouse=True)
def greetings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The row of type 20 and the line of the schema, for the time of a test."""
    monkeypatch.setattr(table, "_BY_ID", dict(table._BY_ID))
    monkeypatch.setattr(table, "_BY_MEMBER", dict(table._BY_MEMBER))
    monkeypatch.setattr(rules, "_RULES", dict(rules._RULES))
    schema.extend(monkeypatch)
    table.register(greeting.TYPE)
    rules.register(20, greeting_rules.RULES)
    forget_types()
    yield
    forget_types()


def forget_types() -> None:
    """The language has put together what scripts know with the types that there were."""
    library.library.cache_clear()
    bindings._forms.cache_clear()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    chain = PrivateChain(tmp_path)
    yield chain
    chain.node.close()


def greet(chain: PrivateChain, words: str, version: int = 2, **changes: object) -> AnyTransaction:
    payload = greeting.Greeting(FRIEND, words)
    return chain.sign(greeting.TYPE, payload, version, **({"fee": greeting_rules.FEE} | changes))


@pytest.mark.parametrize("version", [1, 2])
def test_all_its_forms_are_one(chain: PrivateChain, version: int) -> None:
    transaction = greet(chain, "hello", version)
    shown = codec.to_json(transaction)
    assert (shown["type"], shown["recipient"], shown["words"]) == (20, FRIEND_ADDRESS, "hello")
    assert read_signed(msgspec.json.decode(msgspec.json.encode(shown)), CHAIN_ID) == transaction
    data = codec.encode_protobuf(transaction)
    assert codec.decode_protobuf(data, CHAIN_ID) == transaction
    message: Any = transaction_pb2.SignedTransaction.FromString(data).waves_transaction
    assert message.greeting.words == "hello"
    if version == 1:
        assert codec.decode_legacy(codec.encode(transaction), CHAIN_ID) == transaction


async def test_a_client_makes_sends_and_finds_it(chain: PrivateChain) -> None:
    request = {
        "type": 20,
        "version": 2,
        "sender": RICH_ADDRESS,
        "fee": greeting_rules.FEE,
        "recipient": FRIEND_ADDRESS,
        "words": "hello",
    }
    signed: Any = (await chain.post("/transactions/sign", request, WITH_KEY)).json()
    answer = await chain.post("/transactions/broadcast", signed)
    assert (answer.status, answer.json()) == (200, signed)
    pool: Any = (await chain.get("/transactions/unconfirmed")).json()
    assert pool == [signed]
    chain.mine()
    found: Any = (await chain.get(f"/transactions/info/{signed['id']}")).json()
    assert found == signed | {
        "height": 2,
        "applicationStatus": "succeeded",
        "spentComplexity": 0,
    }
    listed: Any = (await chain.get(f"/transactions/address/{RICH_ADDRESS}/limit/1")).json()
    assert listed == [[found]]
    entry: Any = (await chain.get(f"/addresses/data/{RICH_ADDRESS}/{FRIEND_ADDRESS}")).json()
    assert entry["value"] == "hello"
    await chain.post(
        "/debug/rollback", {"rollbackTo": 1, "returnTransactionsToUtx": True}, WITH_KEY
    )
    gone = await chain.get(f"/addresses/data/{RICH_ADDRESS}/{FRIEND_ADDRESS}")
    assert gone.status == 404
    returned: Any = (await chain.get("/transactions/unconfirmed")).json()
    assert returned == [signed]


async def test_its_shapes_are_documented(chain: PrivateChain) -> None:
    document: Any = (await chain.get("/api-docs/openapi.json")).json()
    shapes = document["components"]["schemas"]
    assert shapes["GreetingTransaction"]["properties"]["words"] == {"type": "string"}
    assert {"$ref": "#/components/schemas/GreetingTransaction"} in shapes["Transaction"]["oneOf"]
    needed = shapes["SignedGreetingTransaction"]["required"]
    assert {"recipient", "words"} <= set(needed)
    assert "ConfirmedGreetingTransaction" in shapes and "UnsignedGreetingTransaction" in shapes


async def test_scripts_know_it_and_traces_tell_of_it(chain: PrivateChain) -> None:
    script = compile_source(ONLY_HELLO).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=1_000_000))
    chain.mine()
    accepted = await chain.broadcast(greet(chain, "hello", fee=500_000))
    assert accepted.status == 200, accepted.body
    body = msgspec.json.encode(codec.to_json(greet(chain, "goodbye", fee=500_000)))
    target = "POST /transactions/broadcast?trace=true"
    refused: Any = (await call(chain.app, target, body, JSON)).json()
    assert refused["message"] == "Transaction is not allowed by account-script"
    (verifier,) = refused["trace"]
    assert (verifier["type"], verifier["id"], verifier["result"]) == (
        "verifier",
        RICH_ADDRESS,
        "failure",
    )


def test_an_account_that_it_names_finds_it(chain: PrivateChain) -> None:
    outcome = Outcome(Status.ELIDED, 0, (), {}, None)
    found = accounts_of(greet(chain, "hello", keys=OTHER), outcome, chain.node.store)
    assert found == (from_public_key(OTHER.public_key, CHAIN_ID), FRIEND)


def test_its_own_rules_hold(chain: PrivateChain) -> None:
    with pytest.raises(TransactionRejected, match="does not exceed minimal value of 7"):
        chain.send(greet(chain, "hello", fee=6))
    with pytest.raises(ValueRuleError, match="1 to 20 characters"):
        codec.validate(greet(chain, "x" * 21))


def test_without_its_row_it_is_unknown(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = codec.encode(greet(chain, "hello", 1))
    monkeypatch.delitem(table._BY_ID, 20)
    with pytest.raises(UnsupportedTransaction):
        codec.decode_legacy(data, CHAIN_ID)


# --- nobody else names a type ---------------------------------------------------------------------

SPECIALISTS = {
    "api/devnet_rpc.py": "ethereum",
    "api/ethereum_json.py": "ethereum",
    "api/ethereum_rpc.py": "ethereum",
    "api/json_assets.py": "issue",
    "api/json_transactions.py": "ethereum invoke_script lease lease_cancel mass_transfer",
    "api/plain_texts.py": "transfer",
    "api/rest/account_data.py": "data",
    "api/rest/debug.py": "invoke_script",
    "api/evaluation_request.py": "invoke_script",
    "api/rest/signing.py": "exchange",
    "api/schemas.py": "issue",
    "api/state_schemas.py": "invoke_script",
    "chain/genesis.py": "genesis",
    "client": (
        "burn commit_to_generation create_alias data ethereum exchange invoke_script issue lease "
        "lease_cancel mass_transfer reissue set_asset_script set_script sponsor_fee transfer "
        "update_asset_info"
    ),
    "grpc_api/assets.py": "issue",
    "grpc_api/matcher_service.py": "exchange",
    "grpc_api/messages.py": "genesis",
    "grpc_api/metadata.py": "ethereum exchange invoke_script lease mass_transfer transfer",
    "grpc_api/transactions.py": "ethereum invoke_script",
    "ledger/editing.py": "data",
    "ledger/from_snapshots.py": "commit_to_generation",
    "ledger/invocation.py": "ethereum invoke_script",
    "ledger/plain_transfers.py": "transfer",
    "ledger/script_environment.py": "ethereum",
    "ledger/script_runs.py": "ethereum",
    "ledger/script_subjects.py": "invoke_script",
    "ledger/wallet_calls.py": "ethereum invoke_script",
    "matcher": "exchange",
    "node/committer.py": "commit_to_generation",
    "node/call_records.py": "ethereum invoke_script",
    "ride/functions/chain_data.py": "ethereum invoke_script transfer",
    "signer": "data",
    "simulation": "transfer",
}
"""Who names types outside of their own modules: those that make one (the library's accounts with a
method for each, a matcher exchanges, a miner its commitments, a signer data, the genesis block its
transfers, a simulated client transfers, the workshop scripts and calls), those that are about one
(Ethereum's interface, calls of dApps, the quick way of plain transfers), and the interfaces where
they tell of some types what only the state knows.
But for the library, whose users then miss a method, none of them has to change for a new type.
"""
SOURCES = Path(__file__).parents[2] / "src" / "soliton"


def named_types(path: Path) -> set[str]:
    """The types whose modules a module imports."""
    package = "soliton.chain.transactions"
    text = path.read_text(encoding="utf-8")
    if package not in text:
        return set()
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module, _, last = node.module.rpartition(".")
            found |= {last} if module == package else set()
            found |= {each.name for each in node.names} if node.module == package else set()
        elif isinstance(node, ast.Import):
            found |= {each.name.removeprefix(f"{package}.") for each in node.names}
    return found & set(table.ROWS.values())


def test_nobody_else_names_a_type() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        place = path.relative_to(SOURCES).as_posix()
        if place.startswith(("chain/transactions/", "ledger/rules/")):
            continue
        specialist = place if place in SPECIALISTS else place.split("/")[0]
        unexpected = named_types(path) - set(SPECIALISTS.get(specialist, "").split())
        if unexpected:
            found[place] = unexpected
    assert found == {}


def test_the_list_of_specialists_is_no_longer_than_needed() -> None:
    for place, names in SPECIALISTS.items():
        whole = SOURCES / place
        paths = [whole] if whole.suffix else list(whole.rglob("*.py"))
        assert set().union(*map(named_types, paths)) == set(names.split()), place
