"""The answers that the documentation shows, asked of a chain."""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.api.rest import examples
from soliton.chain.transactions import codec
from tests.api.chain import RICH_ADDRESS, START, PrivateChain
from tests.api.client import KEY

# Signatures and proofs are made with chance; what is hashed over them differs, too.
BY_CHANCE = ("id", "signature")


async def test_they_are_what_a_chain_says(chain: PrivateChain) -> None:
    chain.now = START
    simulated = await chain.post("/transactions/simulate", examples.FEE_REQUEST)
    assert simulated.json() == examples.SIMULATED
    chain.now = START - 1
    to = examples.TRANSACTION["recipient"]
    transaction = chain.send(chain.transfer(to=to))
    assert msgspec.to_builtins(codec.to_json(transaction)) == examples.TRANSACTION
    chain.mine()

    async def ask(target: str) -> Any:
        return (await chain.get(target)).json()

    name = examples.TRANSACTION_ID
    assert await ask(f"/transactions/info/{name}") == examples.CONFIRMED
    assert await ask(f"/transactions/status/{name}") == examples.STATUS
    assert await ask("/debug/stateHash/1") == examples.STATE_HASH
    for target, expected in (
        ("/blocks/at/2", examples.BLOCK),
        ("/blocks/headers/at/2", examples.HEADER),
    ):
        found = await ask(target)
        proof = found["nxt-consensus"].pop("generation-signature")
        shown: Any = msgspec.json.decode(msgspec.json.encode(expected))
        assert len(proof) > 100 and shown["nxt-consensus"].pop("generation-signature")
        for member in BY_CHANCE:
            assert found.pop(member) != shown.pop(member)
        assert found == shown

    answer = await chain.post("/transactions/sign", examples.UNSIGNED, {"x-api-key": KEY})
    assert answer.status == 200
    answer = await chain.post("/transactions/calculateFee", examples.FEE_REQUEST)
    assert answer.json() == {"feeAssetId": None, "feeAmount": 100_000}
    seed = await chain.get(f"/addresses/seed/{RICH_ADDRESS}", **{"x-api-key": KEY})
    assert seed.json() == {"address": examples.ADDRESS, "seed": examples.ACCOUNT_SEED}
    found = await ask(f"/addresses/publicKey/{examples.PUBLIC_KEY}")
    assert found == {"address": examples.ADDRESS}
