"""Orders in the name of accounts with scripts, against the real node over its public REST routes:
an order is taken when the script has said yes, and at no other time, whatever the matcher owns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.issue import TYPE as ISSUE
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.model import AnyTransaction, TransactionType
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.cli.run import start_api
from soliton.crypto.keys import KeyPair, key_pair
from soliton.devnet.accounts import RICH_SEED
from soliton.devnet.matcher_node import LocalNode
from soliton.matcher.http_client import HttpNodeClient
from soliton.matcher.node_client import NodeClient
from soliton.matcher.service import Matcher
from soliton.matcher.settings import NodeAccess
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching import errors
from soliton.matching.errors import ErrorKind, MatcherError
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import PlacementSettings
from soliton.node.mining import mine_on_demand
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker
from soliton.ride.compiler import compile_source
from soliton.web.clock import wall_clock
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    FEE,
    MATCHER,
    address_of,
    make_order,
    running,
    settings_in,
)

RICH = key_pair(RICH_SEED)
TRADING = TradingSettings()
PRICE = 250
NOTHING, FEES_ONLY, DUST, MUCH = "nothing", "native coins", "a unit of each", "much of both"
HEAD = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n"
ACCOUNT, ASSET = (HEAD + f"{{-# SCRIPT_TYPE {kind} #-}}\n" for kind in ("ACCOUNT", "ASSET"))
NEVER: Final = ACCOUNT + "false"
ALWAYS: Final = ACCOUNT + "true"
SIGNED: Final = ACCOUNT + "sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)"
THROWS: Final = ACCOUNT + 'if height > 0 then throw("never mind") else true'
PROVIDES: Final = (
    ACCOUNT
    + """
match tx {
  case o: Order => sigVerify(o.bodyBytes, o.proofs[0], o.senderPublicKey)
    && toInt(o.proofs[1]) <= o.amount && toInt(o.proofs[1]) > 0 && toInt(o.proofs[2]) == o.price
  case _ => sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)
}"""
)
"""Of a provider of liquidity, who looks at what is executed."""
READS: Final = {
    name: ACCOUNT + f"sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey) && {question}"
    for name, question in {
        "height": "height > 0",
        "accountData": 'this.getInteger("x") == unit',
        "balance": "wavesBalance(this).regular > 0",
    }.items()
}
"""By the method of the reference's that they need."""
DAPP: Final = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE DAPP #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"
"""Without a verifier of its own."""


def signed(kind: TransactionType, payload: object, fee: int, keys: KeyPair) -> AnyTransaction:
    draft = codec.build(
        *(kind, payload),
        version=2,
        chain_id=address_of(keys)[1],
        sender_public_key=keys.public_key,
        fee=fee,
        timestamp=wall_clock(),
    )
    return codec.sign(draft, keys.private_key)


def bare(order: Order) -> Order:
    """The order as anybody could send it in its sender's name."""
    return msgspec.structs.replace(order, proofs=(bytes(64),))


class World:
    """A node, an asset, and a matcher that reaches the node over HTTP."""

    def __init__(self, node: Node, usd: bytes, matcher: Matcher) -> None:
        self.node = node
        self.matcher = matcher
        self.usd = usd

    def order(self, side: Side, version: int, keys: KeyPair = BOB) -> Order:
        pair = AssetPair(None, self.usd)
        return make_order(keys, side, COIN, PRICE, pair=pair, version=version)

    async def refusal(self, order: Order) -> ErrorKind | None:
        try:
            await self.matcher.placing.place(order, market=False)
        except MatcherError as error:
            return error.kind
        return None


@asynccontextmanager
async def world(
    directory: Path,
    owned: str,
    script: str | None,
    asset_script: str | None = None,
    trading: TradingSettings = TRADING,
    *,
    local: bool = False,
) -> AsyncIterator[World]:
    settings = load_settings(
        network="devnet", data_dir=directory / "chain", overrides={"rest-api.port": 0}
    )
    node = Node(settings, Wallet.open(None, None, RICH_SEED.encode()), durable=False)
    node.mine(RICH)
    code = None if asset_script is None else compile_source(asset_script).script.source
    issue = signed(
        ISSUE, Issue(b"Dollar", b"", 10**12, 2, reissuable=False, script=code), COIN, RICH
    )
    node.broadcast(issue)
    node.mine(RICH)
    fee = 100_000 if code is None else 500_000
    amounts = {NOTHING: (0, 0), FEES_ONLY: (COIN, 0), DUST: (COIN, 1), MUCH: (100 * COIN, 10**9)}
    for keys, (coins, units) in (
        *((keys, (100 * COIN, 10**9)) for keys in (ALICE, BOB)),
        (MATCHER, amounts[owned]),
    ):
        for asset, amount in ((None, coins), (issue.id, units)):
            if amount:
                transfer = Transfer(address_of(keys), asset, amount, b"")
                node.broadcast(signed(TRANSFER, transfer, fee, RICH))
    node.mine(RICH)
    if script is not None:
        source = compile_source(script).script.source
        node.broadcast(signed(SET_SCRIPT, SetScript(source), 10**6, BOB))
        node.mine(RICH)
    server = await start_api(node, SignatureChecker(beside=False))
    access = NodeAccess(f"http://127.0.0.1:{server.port}", poll_interval_ms=20)
    client: NodeClient = HttpNodeClient(access, node.network.chain_id)
    if local:
        client = LocalNode(node, SignatureChecker(beside=False))
    placement = PlacementSettings(b"", price_assets=(issue.id,))
    told = settings_in(
        directory / "matcher",
        network=settings.network,
        trading=msgspec.structs.replace(trading, placement=placement),
    )
    mining = asyncio.create_task(mine_on_demand(node, RICH))
    try:
        async with running(told, client) as matcher:
            yield World(node, issue.id, matcher)
    finally:
        await server.stop()
        mining.cancel()
        node.close()


DENIED = errors.ACCOUNT_SCRIPT_DENIED_ORDER
BROKEN = errors.ACCOUNT_SCRIPT_RETURNED_ERROR
UNASKED = errors.ACCOUNT_SCRIPT_EXCEPTION


@pytest.mark.parametrize("owned", [NOTHING, FEES_ONLY, DUST, MUCH])
@pytest.mark.parametrize(
    "script", [NEVER, SIGNED, THROWS, DAPP], ids=["no", "sig", "throw", "dapp"]
)
async def test_nobody_trades_in_the_name_of_a_scripted_account(
    tmp_path: Path, owned: str, script: str
) -> None:
    async with world(tmp_path, owned, script) as there:
        for side in Side:
            for version in (2, 3, 4):
                found = await there.refusal(bare(there.order(side, version)))
                assert found in (DENIED, BROKEN, UNASKED), (side, version)
                if owned == MUCH:
                    assert found is not UNASKED
                    assert (found is BROKEN) is (script == THROWS) or script == DAPP
            first = await there.refusal(there.order(side, 1))
            assert first is errors.ACCOUNT_NOT_SUPPORT_ORDER_VERSION
        assert there.matcher.engine.books() == []


@pytest.mark.parametrize("owned", [DUST, MUCH])
async def test_who_signs_for_a_scripted_account_trades(tmp_path: Path, owned: str) -> None:
    """A unit of each asset is enough for the trial."""
    async with world(tmp_path, owned, SIGNED) as there:
        for version in (2, 3, 4):
            for side in Side:
                assert await there.refusal(there.order(side, version)) is None, (side, version)


@pytest.mark.parametrize("owned", [NOTHING, FEES_ONLY])
async def test_a_script_that_cannot_be_asked_has_not_agreed(tmp_path: Path, owned: str) -> None:
    """With the reason: the operator has to give the matcher's account something of the asset."""
    async with world(tmp_path, owned, ALWAYS) as there:
        with pytest.raises(MatcherError) as refused:
            await there.matcher.placing.place(there.order(Side.SELL, 3), market=False)
        assert refused.value.kind is UNASKED
        assert "could not be asked" in refused.value.message


@pytest.mark.parametrize("owned", [NOTHING, MUCH])
async def test_the_script_of_an_asset_is_asked(tmp_path: Path, owned: str) -> None:
    only_transfers = ASSET + "match tx { case _: ExchangeTransaction => false case _ => true }"
    async with world(tmp_path, owned, None, only_transfers) as there:
        for side in Side:
            for version in (1, 2, 3, 4):
                order = make_order(
                    ALICE, side, COIN, PRICE, version=version, fee=FEE + 400_000,
                    pair=AssetPair(None, there.usd),
                )  # fmt: skip
                found = await there.refusal(order)
                kinds = (errors.ASSET_SCRIPT_DENIED_ORDER, errors.ASSET_SCRIPT_EXCEPTION)
                assert found in (kinds[:1] if owned == MUCH else kinds), (side, version, found)
        assert there.matcher.engine.books() == []


async def test_a_wrong_signature_and_a_foreign_one_are_refused(tmp_path: Path) -> None:
    async with world(tmp_path, MUCH, SIGNED) as there:
        order = there.order(Side.SELL, 3)
        by_another = orders.sign(msgspec.structs.replace(order, proofs=()), ALICE.private_key)
        assert await there.refusal(by_another) is DENIED
        assert await there.refusal(order) is None


@pytest.mark.parametrize("owned", [DUST, MUCH])
async def test_a_provider_of_liquidity_is_told_what_would_be_executed(
    tmp_path: Path, owned: str
) -> None:
    """``ExecutionParamsInProofs.fillMatchInfoInProofs``, which the reference uses when it runs the
    script of an order's account, too.
    """
    listed = TradingSettings(
        lp_accounts=frozenset((BOB.public_key,)), pass_execution_parameters_start_offset=-1
    )
    async with world(tmp_path / "listed", owned, PROVIDES, trading=listed) as there:
        for version in (3, 4):
            for side in Side:
                assert await there.refusal(there.order(side, version)) is None, (side, version)
                forged = bare(there.order(side, version))
                assert await there.refusal(forged) is DENIED
        # Orders of version 2 pass nothing.
        assert await there.refusal(there.order(Side.SELL, 2)) is BROKEN
    async with world(tmp_path / "other", owned, PROVIDES) as there:
        assert await there.refusal(there.order(Side.SELL, 3)) is BROKEN


@pytest.mark.parametrize("method", READS)
async def test_a_script_that_reads_the_chain_is_refused_on_a_devnet(
    tmp_path: Path, method: str
) -> None:
    """It could agree when the order is placed, and disagree to its execution. The reference lets
    those of liquidity providers.
    """
    listed = TradingSettings(lp_accounts=frozenset((BOB.public_key,)))
    async with world(tmp_path / "any", MUCH, READS[method], local=True) as there:
        with pytest.raises(MatcherError) as refused:
            await there.matcher.placing.place(there.order(Side.SELL, 3), market=False)
        assert refused.value.kind is BROKEN
        assert f"An access to the blockchain.{method} is denied on DEX" in refused.value.message
    async with world(tmp_path / "listed", MUCH, READS[method], None, listed, local=True) as there:
        assert await there.refusal(there.order(Side.SELL, 3)) is None


async def test_a_script_that_reads_the_order_is_asked_on_a_devnet(tmp_path: Path) -> None:
    for number, script in enumerate((SIGNED, DAPP)):
        async with world(tmp_path / str(number), MUCH, script, local=True) as there:
            assert await there.refusal(there.order(Side.SELL, 3)) is None
            found = await there.refusal(bare(there.order(Side.SELL, 3)))
            assert found is (DENIED if script == SIGNED else BROKEN)
