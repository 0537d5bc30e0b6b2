"""Every type and version of transactions that needs no script, in an order in which all apply.

What lives here: the transactions, batch by batch, for chains with all features, with some, and with
none. What does not: the blocks around them, and what is checked afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from soliton.chain import orders, typed_data
from soliton.chain.addresses import Alias, from_public_key
from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.transactions import ethereum
from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.ethereum import TRANSFER_SELECTOR, WEI_PER_WAVELET
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.payment import Payment
from soliton.chain.transactions.reissue import Reissue
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.sponsor_fee import SponsorFee
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto import secp256k1
from soliton.crypto.hashes import keccak256
from soliton.crypto.keys import KeyPair
from soliton.node.chain_writer import ChainWriter
from tests.node.chains import DEVNET, RICH, address_of, now, person, signed

COIN = 10**8
MATCHER = person("the matcher")
WALLET = keccak256(b"an Ethereum wallet")
WALLET_ADDRESS = from_public_key(secp256k1.public_key(WALLET), DEVNET.chain_id)
Batch = list[AnyTransaction]

ALL_VERSIONS = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 9, 10), (1, 2, 3)),
    **dict.fromkeys((11, 12, 13, 14), (1, 2)),
    **dict.fromkeys((17, 18), (1,)),
}
"""What a chain with all features takes."""
BINARY_VERSIONS = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 9, 10), (1, 2)),
    **dict.fromkeys((11, 12, 13, 14), (1,)),
}
"""What a chain takes that has the features up to 14."""
OLDEST_VERSIONS = dict.fromkeys((2, 3, 4, 5, 6, 7, 8, 9, 10), (1,))
"""What a chain without features takes, while payments are allowed."""


class Scenario:
    """Makes the transactions of one round: an account and everything that it does.

    ``versions`` are those of each type that the chain takes.
    """

    def __init__(
        self, chain: ChainWriter, versions: dict[int, tuple[int, ...]], number: int
    ) -> None:
        self.chain = chain
        self.versions = versions
        self.number = number
        self.me = person(f"owner {number}")
        self.you = person(f"friend {number}")
        self.my_address, self.your_address = map(address_of, (self.me, self.you))
        self.their_alias = Alias(chain.network.chain_id, f"friend-{number}")
        self.assets: list[AssetId] = []

    def make(self, type_id: int, payload: object, version: int, **envelope: Any) -> AnyTransaction:
        envelope = {"fee": COIN, "timestamp": now(self.chain), **envelope}
        return signed(self.me, type_id, payload, version=version, **envelope)

    def of(self, type_id: int) -> tuple[int, ...]:
        return self.versions.get(type_id, ())

    def batches(self) -> Iterator[Batch]:
        """One batch a block; made when it is asked for, on top of all before it."""
        yield self.funds()
        yield from self.payments()
        yield from self.issues()
        yield from self.aliases()
        yield from self.transfers()
        yield from self.supply()
        yield from self.leases()
        yield from self.mass_transfers()
        yield from self.data()
        yield from self.scripts()
        yield from self.sponsorship()
        yield from self.renaming()
        yield from self.wallet()
        yield from self.exchanges()

    def funds(self) -> Batch:
        chain = self.chain
        owners = (self.my_address, self.your_address, address_of(MATCHER), WALLET_ADDRESS)
        return [
            signed(
                RICH,
                4,
                Transfer(to, None, 1_000 * COIN + self.number, b"funds"),
                version=self.of(4)[-1],
                timestamp=now(chain),
            )
            for to in owners
        ]

    def payments(self) -> Iterator[Batch]:
        for version in self.of(2):
            yield [self.make(2, Payment(self.your_address, COIN), version)]

    def issues(self) -> Iterator[Batch]:
        for version in self.of(3):
            name = f"Gold {version}{self.number}".encode()
            payload = Issue(name, b"bars", 10**12, version, True)
            issued = self.make(3, payload, version)
            self.assets.append(issued.id)
            yield [issued]
        if 3 in self.of(3):
            nft = self.make(3, Issue(b"Painting", b"", 1, 0, False), 3)
            yield [nft, self.make(4, Transfer(self.your_address, nft.id, 1, b""), 3)]

    def aliases(self) -> Iterator[Batch]:
        for version in self.of(10):
            yield [self.make(10, CreateAlias(self.alias(version)), version)]
        payload = CreateAlias(self.their_alias)
        yield [signed(self.you, 10, payload, version=1, fee=COIN, timestamp=now(self.chain))]

    def alias(self, version: int) -> Alias:
        return Alias(self.chain.network.chain_id, f"owner-{self.number}-{version}")

    def transfers(self) -> Iterator[Batch]:
        for version in self.of(4):
            asset = self.assets[version - 1]
            yield [
                self.make(4, Transfer(self.your_address, asset, 10**9, b"gold"), version),
                self.make(4, Transfer(address_of(MATCHER), asset, 10**9, b""), version),
                self.make(4, Transfer(self.alias(version), None, COIN, b"to myself"), version),
            ]

    def supply(self) -> Iterator[Batch]:
        for version, asset in zip(self.of(5), self.assets, strict=True):
            yield [self.make(5, Reissue(asset, 10**6, True), version)]
        for version, asset in zip(self.of(6), self.assets, strict=True):
            yield [self.make(6, Burn(asset, 10**5), version)]

    def leases(self) -> Iterator[Batch]:
        leases: Batch = []
        for version in self.of(8):
            recipient = self.your_address if version == 1 else self.their_alias
            kept = self.make(8, Lease(recipient, COIN + version), version)
            leases.append(self.make(8, Lease(recipient, 2 * COIN), version))
            yield [kept, leases[-1]]
        for version, lease in zip(self.of(9), leases, strict=True):
            yield [self.make(9, LeaseCancel(lease.id), version)]

    def mass_transfers(self) -> Iterator[Batch]:
        items = (TransferItem(self.your_address, 5), TransferItem(self.alias(1), 7))
        for version in self.of(11):
            yield [
                self.make(11, MassTransfer(asset, items, b"many"), version)
                for asset in (None, self.assets[0])
            ]

    def data(self) -> Iterator[Batch]:
        entries = (
            DataEntry("whole", -(2**63)),
            DataEntry("flag", True),
            DataEntry("text", "grüße"),
            DataEntry("bytes", b"\0\xff"),
        )
        for version in self.of(12):
            gone = (DataEntry("flag", None), DataEntry("never was", None)) if version > 1 else ()
            yield [self.make(12, Data(entries), version)]
            if gone:
                yield [self.make(12, Data(gone), version)]

    def scripts(self) -> Iterator[Batch]:
        for version in self.of(13):
            yield [self.make(13, SetScript(None), version)]

    def sponsorship(self) -> Iterator[Batch]:
        for version in self.of(14):
            asset = self.assets[version - 1]
            yield [self.make(14, SponsorFee(asset, 10), version)]
            yield [
                signed(
                    self.you,
                    4,
                    Transfer(self.my_address, asset, 1_000, b""),
                    version=each,
                    fee=20,
                    fee_asset_id=asset,
                    timestamp=now(self.chain),
                )
                for each in self.of(4)
            ]
            yield [self.make(14, SponsorFee(asset, None), version)]

    def renaming(self) -> Iterator[Batch]:
        for version in self.of(17):
            payload = UpdateAssetInfo(self.assets[0], f"Silver {self.number}".encode(), b"coins")
            yield [self.make(17, payload, version)]

    def wallet(self) -> Iterator[Batch]:
        if not self.of(18):
            return
        chain_id, time = self.chain.network.chain_id, now(self.chain)
        to, asset = self.my_address[2:22], self.assets[0]
        coin = ethereum.sign(
            WALLET,
            chain_id=chain_id,
            timestamp=time,
            fee=100_000,
            to=to,
            value=COIN * WEI_PER_WAVELET,
        )
        given = self.make(4, Transfer(WALLET_ADDRESS, asset, 500, b""), 3)
        yield [coin, given]
        words = bytes(12) + to + (200).to_bytes(32, "big")
        yield [
            ethereum.sign(
                WALLET,
                chain_id=chain_id,
                timestamp=time + 1,
                fee=100_000,
                to=asset[:20],
                data=TRANSFER_SELECTOR + words,
            )
        ]

    # --- exchanges --------------------------------------------------------------------------------

    def exchanges(self) -> Iterator[Batch]:
        """All versions of orders; "0" is one of version 4 that the wallet signs."""
        pairs: dict[int, tuple[tuple[int, int], ...]] = {
            1: ((1, 1),),
            2: ((1, 2), (2, 3), (3, 1)),
            3: ((4, 4), (1, 4), (4, 2), (3, 3), (0, 4), (4, 0)),
        }
        for version in self.of(7):
            yield [self.exchange(version, buy, sell) for buy, sell in pairs[version]]

    def exchange(self, version: int, buy: int, sell: int) -> AnyTransaction:
        """The friend buys gold from the owner; a third of both orders is executed."""
        price = COIN // 10
        # What 8 decimals are in a price of version 3, older orders write with those of the pair.
        scale = 10**7 if version == 3 else 1
        buying = self.order(self.you, Side.BUY, buy, price, scale)
        selling = self.order(self.me, Side.SELL, sell, price, scale)
        both = (selling, buying) if version == 3 and buy == sell else (buying, selling)
        payload = Exchange(*both, 100, price, 1_000, 1_000)
        return signed(MATCHER, 7, payload, version=version, fee=300_000, timestamp=now(self.chain))

    def order(self, owner: KeyPair, side: Side, version: int, price: int, scale: int) -> Order:
        time = now(self.chain)
        asset = self.assets[0]
        mode = PriceMode.DEFAULT
        if version == 4:
            mode = PriceMode.FIXED_DECIMALS if side is Side.BUY else PriceMode.ASSET_DECIMALS
        fixed = version == 0 or mode is PriceMode.FIXED_DECIMALS
        draft = Order(
            version=version or 4,
            chain_id=self.chain.network.chain_id,
            sender_public_key=owner.public_key,
            matcher_public_key=MATCHER.public_key,
            amount_asset=asset,
            price_asset=None,
            side=side,
            amount=300,
            price=price if fixed else price * scale,
            timestamp=time,
            expiration=time + 10**9,
            matcher_fee=300_000,
            matcher_fee_asset=asset if version >= 3 else None,
            price_mode=mode,
            attachment=b"thanks" if version == 4 else None,
        )
        if version:
            return orders.sign(orders.build(draft), owner.private_key)
        r, s, recovery_id = secp256k1.sign(WALLET, typed_data.order_hash(draft))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((27 + recovery_id,))
        return orders.build(msgspec.structs.replace(draft, eip712_signature=signature))
