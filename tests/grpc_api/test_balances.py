"""Balances of accounts that have much that is not shown."""

from __future__ import annotations

from pathlib import Path

from soliton.chain.transactions import issue, transfer
from soliton.chain.values import AssetId
from soliton.grpc_api import accounts
from soliton.grpc_api.proto import accounts_api_pb2
from tests.api.chain import RICH, PrivateChain
from tests.node.chains import address_of, person

NFTS = 3


def test_what_is_left_out_is_a_step_as_well(tmp_path: Path) -> None:
    # Each is looked up: who has 100,000 NFTs would hold up all other calls.
    chain = PrivateChain(tmp_path)
    nfts = [chain.sign(issue.TYPE, _asset(f"Art{number}", 1), 3) for number in range(NFTS)]
    gold = chain.sign(issue.TYPE, _asset("Gold", 100), 3, fee=10**8)
    tin = chain.sign(issue.TYPE, _asset("Tin", 100), 3, fee=10**8)
    for each in (*nfts, gold, tin):
        chain.send(each)
    chain.mine()
    away = transfer.Transfer(address_of(person("b")), AssetId(tin.id), 100, b"")
    chain.send(chain.sign(transfer.TYPE, away, 3))
    chain.mine()
    request = accounts_api_pb2.BalancesRequest(address=bytes(address_of(RICH)))
    [coin, *found] = accounts.get_balances(chain.node.chain, request)
    chain.node.close()
    assert coin is not None and coin.waves.regular > 0
    shown = [each for each in found if each is not None]
    assert [(each.asset.asset_id, each.asset.amount) for each in shown] == [(gold.id, 100)]
    assert len(found) == NFTS + len((gold, tin))


def _asset(name: str, quantity: int) -> issue.Issue:
    return issue.Issue(name.encode(), b"", quantity, 0, False, None)
