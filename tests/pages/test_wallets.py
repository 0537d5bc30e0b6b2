"""The exchange page with keys that are elsewhere: a signing service, and an extension of the
browser that is made up here, with the page's own cryptography.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from soliton import Account, Matcher, Node
from soliton.devnet.accounts import funded_accounts
from soliton.keystore.files import FileStore
from soliton.keystore.keys import NamedSecret, phrase
from tests.clients.test_kept_signer import kept, unlock
from tests.e2e import browser
from tests.e2e.browser import Page
from tests.e2e.programs import Program
from tests.pages.pages import go, nothing_ran, save, text
from tests.pages.test_exchange import LIVE, TAKEN, order
from tests.signer.kept import KEYS, PASSWORD, Place

SELLER, OWNER, WALLET = funded_accounts(ord("R"))[:3]
COIN: Final = 10**8
RULES: Final = """
[[rule]]
name = "trading"
signs = ["order.3", "cancelOrder", "wavesAuth"]
keys = ["owner"]
callers = ["bot"]
amounts = { WAVES = 1_000_000_000 }
fees = { WAVES = 1_000_000 }
pairs = "any"
matchers = "any"
unbound-chain = true
"""
KEEPER: Final = """
(async () => {
  const { order, signerOf } = await import("/pages/orders.js");
  const { joined, long } = await import("/pages/crypto.js");
  const { base58 } = await import("/pages/format.js");
  const own = signerOf(SEED, 82);
  const { address, publicKey } = own;
  const key = base58(publicKey);
  window.asked = [];
  window.KeeperWallet = {
    publicState: async () => ({ account: { address, publicKey }, network: { code: "R" } }),
    signRequest: async ({ type, data }) => {
      asked.push(type);
      return own.admit(0, joined(key, long(data.timestamp)));
    },
    signCancelOrder: async ({ type, data }) => {
      asked.push(type);
      return JSON.stringify({ signature: await own.cancel(data.id, joined(key, base58(data.id))) });
    },
    signOrder: async ({ type, data }) => {
      asked.push(type);
      const side = (each) => ({ id: data[each].assetId, decimals: 8 });
      const market = { amount: side("amount"), price: side("price") };
      const fee = { matcherFee: BigInt(data.matcherFee.coins), feeAssetId: null };
      const [amount, price] = [BigInt(data.amount.coins), BigInt(data.price.coins)];
      const made = await order(own, market, data.matcherPublicKey, data.orderType, amount, price,
        fee, data.timestamp);
      return JSON.stringify(made, (_, each) => typeof each === "bigint" ? Number(each) : each);
    },
  };
  return address;
})()
"""

pytestmark = browser.MARKS


@pytest.fixture(scope="module")
def chain(chain: Program) -> Program:
    """With a market that orders of the seller have opened."""
    with Node(chain.node_url) as node, Matcher(chain.matcher_url) as matcher:
        seller = Account.from_seed(SELLER.seed, "R")
        gold = node.send(seller.issue("Gold", 1000 * COIN, decimals=8)).wait().asset_id
        key = matcher.public_key()
        for number in range(3):
            price = 2 * COIN + number * COIN // 4
            matcher.place(seller.sell(5 * COIN, gold, price, None, matcher=key))
    return chain


@pytest.fixture(scope="module")
def signer(chain: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("kept")
    store = FileStore(directory / "keys")
    store.add([NamedSecret("owner", phrase(OWNER.seed))], PASSWORD)
    with kept(Place(directory, RULES), chain.node_url, origins=(chain.matcher_url,)) as url:
        unlock(url)
        yield url


def trade(page: Page, address: str) -> None:
    """Buy what is offered, bid for more, and take that back."""
    page.wait_for("document.getElementById('balances')?.innerText.includes('to trade')")
    assert text(page, "#own-address") == address
    said = order(page, "buy", "2", "1.5")
    assert said.startswith(TAKEN), said
    name = said.removeprefix(TAKEN).strip()
    page.wait_for(
        f"document.querySelector('[data-order=\"{name}\"]')?.innerText.includes('Filled')"
    )
    said = order(page, "buy", "1", "2")
    assert said.startswith(TAKEN), said
    row = f"document.querySelector('[data-order=\"{said.removeprefix(TAKEN).strip()}\"]')"
    page.wait_for(f"{row}?.querySelector('.cancel')")
    page.run(f"{row}.querySelector('.cancel').click()")
    page.wait_for(f"{row}?.innerText.includes('Cancelled')")


def test_a_signing_service_signs_orders(chain: Program, signer: str, page: Page) -> None:
    go(page, chain.matcher_url, "", LIVE)
    page.run(f"document.getElementById('service').value = '{signer}/'")
    page.run("document.getElementById('service').form.requestSubmit()")
    page.wait_for(f"document.getElementById('with-service') && {LIVE}")
    for key, words in (("wrong", "API key"), (KEYS["bot"], "")):
        page.run(f"document.getElementById('service-key').value = {json.dumps(key)}")
        page.run("document.getElementById('with-service').requestSubmit()")
        if words:
            page.wait_for(
                f"document.querySelector('#with-service .bad')?.innerText.includes('{words}')"
            )
            save(page, "exchange-signing-service.png")
    trade(page, OWNER.address)
    said = order(page, "buy", "2", "1000")
    assert "is more than 1000000000" in said
    nothing_ran(page)


def test_the_extension_signs_orders(chain: Program, page: Page) -> None:
    go(page, chain.matcher_url, "", LIVE)
    page.run("document.getElementById('with-keeper').closest('details').open = true")
    page.run("document.getElementById('with-keeper').requestSubmit()")
    page.wait_for("document.querySelector('#with-keeper .bad')?.innerText.includes('no Keeper')")
    assert page.run(KEEPER.replace("SEED", json.dumps(WALLET.seed))) == WALLET.address
    page.run("document.getElementById('with-keeper').requestSubmit()")
    trade(page, WALLET.address)
    assert set(page.run("asked")) == {1001, 1002, 1003}
    # It was asked once who looks at the orders, not each time that they are drawn.
    assert page.run("asked.filter(each => each === 1001).length") == 1
    nothing_ran(page)
