"""Generation periods of a chain in this process."""

from __future__ import annotations

from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import account_seed_phrase
from soliton.testing.local import LocalChain
from tests.node.committing import commit


def test_a_chain_goes_on_where_others_have_committed() -> None:
    """Its own account commits, too: otherwise nobody could make blocks from the next period on."""
    local = LocalChain()
    node, chain = local.node, local.node.chain
    try:
        local.controls.mine(90)
        other = commit(chain, key_pair(account_seed_phrase(1)), timestamp=node.clock())
        assert node.broadcast(other)
        local.controls.mine(100)
        generators = chain.generators_at(chain.height)
        assert generators is not None
        assert {each.transaction_id for each in generators.committed} > {other.id}
        assert chain.voted_height == chain.height - 2
    finally:
        local.close()
