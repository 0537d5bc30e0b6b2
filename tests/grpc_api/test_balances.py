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


def test_the_generating_balance_looks_back_as_far_as_miners_do(tmp_path: Path) -> None:
    # Below the height from which it is 1,000 blocks, that is 50.
    depth: dict[str, object] = {"generation_balance_depth_from_50_to_1000_after_height": 1_000}
    chain = PrivateChain(tmp_path, functionality=depth)
    away = transfer.Transfer(address_of(person("b")), None, 7, b"")
    chain.send(chain.sign(transfer.TYPE, away, 3))
    for _ in range(49):
        chain.mine()
    request = accounts_api_pb2.BalancesRequest(address=bytes(address_of(person("b"))))
    [coin] = accounts.get_balances(chain.node.chain, request)
    assert coin is not None and coin.waves.generating == 0
    chain.mine()
    [coin] = accounts.get_balances(chain.node.chain, request)
    chain.node.close()
    assert coin is not None and coin.waves.generating == 7


def _asset(name: str, quantity: int) -> issue.Issue:
    return issue.Issue(name.encode(), b"", quantity, 0, False, None)
