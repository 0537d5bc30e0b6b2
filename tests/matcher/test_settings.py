"""A matcher's settings: files of the reference's form, defaults, refusals, and their document."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from soliton.chain import networks
from soliton.chain.networks.sections import Section
from soliton.cli.matcher_config import matcher_settings
from soliton.crypto import base58
from soliton.crypto.keys import key_pair_from_account_seed
from soliton.errors import InputError
from soliton.matcher.errors import MatcherSettingsError
from soliton.matcher.settings import MatcherSettings, read
from soliton.matcher.trading_settings import MAX_FILE_CHARS
from soliton.matching.fees import (
    AssetType,
    CompositeFee,
    Discount,
    DynamicFee,
    FixedFee,
    PercentFee,
)
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import Deviations, Restrictions
from soliton.matching.rules import NEVER

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "matcher-settings.md"
SEED = base64.b64encode(b"an account seed").decode()
USD, BTC = (base58.encode(bytes([number]) * 32) for number in (1, 2))
KEY = base58.encode(bytes([9]) * 32)
TICK = "{ start-offset = 1, tick-size = 1 }"
Load = Callable[[str], MatcherSettings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> MatcherSettings:
        path = tmp_path / "matcher.conf"
        account = f'account-storage.in-mem.seed-in-base-64 = "{SEED}"'
        path.write_text(f"waves.dex {{\n{account}\n{text}\n}}\n")
        return matcher_settings(path, "devnet", tmp_path)

    return load


# The account and the key of the reference matcher's own tests.
PUBLIC_SEED = "jVXOEAR7WwbmTs4EMmp7jFBgkfiJv+HnzURKLMZiWqk="
PUBLIC_HASH = "7L6GpLHhA5KyJTAVc8WFHwEcyTY8fC8rRbyMCiFnM4i"


@pytest.mark.parametrize(("address", "told"), [("0.0.0.0", 2), ("::", 2), ("127.0.0.1", 0)])
def test_secrets_that_everybody_knows_are_warned_of(
    address: str, told: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "matcher.conf"
    path.write_text(f"""waves.dex {{
        account-storage.in-mem.seed-in-base-64 = "{PUBLIC_SEED}"
        rest-api {{ address = "{address}", api-key-hashes = ["{PUBLIC_HASH}"] }}
    }}""")
    matcher_settings(path, "devnet", tmp_path)
    assert [message.startswith("everybody knows") for message in caplog.messages] == [True] * told


def test_defaults(load: Load, tmp_path: Path) -> None:
    settings = load("")
    assert settings.account == key_pair_from_account_seed(b"an account seed")
    assert settings.directory == tmp_path / "matcher"
    assert (settings.rest_api.port, settings.rest_api.signature_window_ms) == (6886, 3_600_000)
    assert settings.trading.order_fees == ((-1, DynamicFee(300_000, 300_000)),)
    assert settings.trading.order_v4_start_offset == -1
    assert settings.trading.placement.allowed_versions == (1, 2, 3, 4)
    assert (settings.max_active_orders, settings.max_finalized_orders) == (400, 100)
    assert settings.queue.sync == "always"


def test_fee_modes_by_offset(load: Load) -> None:
    fees = load(
        f"""
        order-fee {{
          -1 {{ mode = dynamic
               dynamic {{ base-maker-fee = 1, base-taker-fee = 5
                         zero-fee-accounts = ["{KEY}"] }} }}
          100 {{ mode = fixed, fixed {{ asset = "{USD}", min-fee = 7 }}, dynamic {{ }} }}
          20 {{ mode = percent
               percent {{ asset-type = receiving, min-fee = 0.25, min-fee-in-waves = 3 }} }}
          3000 {{
            mode = composite
            composite {{
              default {{ mode = dynamic }}
              custom {{ "{BTC}-WAVES" {{ mode = fixed, fixed {{ min-fee = 9 }} }} }}
              custom-assets {{
                assets = ["{USD}", "{BTC}"]
                settings {{ mode = percent, percent.asset-type = amount }}
              }}
              discount {{ asset = "{USD}", value = 12.5 }}
            }}
          }}
        }}
        """
    ).trading.order_fees
    usd, btc = base58.decode(USD), base58.decode(BTC)
    assert fees[:3] == (
        (-1, DynamicFee(1, 5, frozenset((base58.decode(KEY),)))),
        (20, PercentFee(AssetType.RECEIVING, Decimal("0.25"), 3)),
        (100, FixedFee(usd, 7)),
    )
    start, composite = fees[3]
    assert start == 3_000
    assert isinstance(composite, CompositeFee)
    assert composite.discount == Discount(usd, Decimal("12.5"))
    assert composite.custom[AssetPair(btc, None)] == FixedFee(None, 9)
    assert isinstance(composite.custom[AssetPair(btc, usd)], PercentFee)
    assert composite.default == DynamicFee(300_000, 300_000)


def test_what_may_be_traded(load: Load) -> None:
    settings = load(
        f"""
        price-assets = ["{USD}", "WAVES"]
        blacklisted-assets = ["{BTC}"]
        blacklisted-names = ["^scam"]
        allowed-asset-pairs = ["{BTC}-WAVES"]
        white-list-only = yes
        allowed-order-versions = [2, 3]
        max-price-deviations {{ enable = yes, max-price-loss = 5 }}
        order-restrictions {{ "WAVES-{USD}" {{ step-amount = 0.1, max-price = 4.5 }} }}
        matching-rules {{
          "WAVES-{USD}" = [
            {{ start-offset = 0, tick-size = 0.01 }}, {{ start-offset = 9, tick-size = 1 }}
          ]
        }}
        exchange-tx-ts-start-offset = 9223372036854775808
        order-v-4-start-offset = 77
        """
    )
    usd, btc = base58.decode(USD), base58.decode(BTC)
    pair = AssetPair(None, usd)
    placement, trading = settings.trading.placement, settings.trading
    assert placement.price_assets == (usd, None)
    assert placement.blacklisted_assets == {btc}
    assert [each.pattern for each in placement.blacklisted_names] == ["^scam"]
    assert (placement.white_list_only, placement.allowed_versions) == (True, (2, 3))
    assert placement.allowed_pairs == {AssetPair(btc, None)}
    assert placement.deviations == Deviations(max_price_loss=Decimal(5))
    assert placement.restrictions == {
        pair: Restrictions(step_amount=Decimal("0.1"), max_price=Decimal("4.5"))
    }
    assert (trading.distinct_timestamps_start_offset, trading.order_v4_start_offset) == (NEVER, 77)
    assert trading.tick_size_assets() == {None, usd}
    matching = trading.matching({None: 8, usd: 2}.__getitem__)
    assert [matching.tick_size_at(pair, offset) for offset in (0, 8, 9)] == [1, 1, 100]


def test_a_mode_for_all_pairs_of_some_assets_is_that_of_those_that_are_traded(load: Load) -> None:
    """The reference's ``AssetPairBuilder.quickValidateAssetPair``: an allowed pair may have any
    order, and a file with a white list has no others.
    """
    fee = f"""order-fee {{ -1 {{ mode = composite, composite {{
        default {{ mode = dynamic }}
        custom-assets {{ assets = ["{USD}", "{BTC}", "WAVES"], settings {{ mode = fixed }} }}
    }} }} }}"""
    usd, btc = base58.decode(USD), base58.decode(BTC)
    listed = f'price-assets = ["{USD}", "WAVES"], allowed-asset-pairs = ["{USD}-{BTC}"]'
    for more, pairs in (
        ("", {(usd, btc), (btc, usd), (btc, None), (None, usd)}),
        (f'blacklisted-assets = ["{BTC}"]', {(usd, btc), (None, usd)}),
        ("white-list-only = yes", {(usd, btc)}),
    ):
        ((_, found),) = load(f"{listed}\n{more}\n{fee}").trading.order_fees
        assert isinstance(found, CompositeFee)
        assert set(found.custom) == {AssetPair(*pair) for pair in pairs}


def test_a_fixed_fee_may_be_nothing(load: Load) -> None:
    text = "order-fee { -1 { mode = fixed, fixed { min-fee = 0 } } }"
    assert load(text).trading.order_fees == ((-1, FixedFee(None, 0)),)


def test_accounts_that_are_not_throttled_are_named_by_their_keys(load: Load) -> None:
    found = load(f'address-actor.realtime-ws-accounts = ["{KEY}"]').web_sockets
    assert found.realtime_accounts == {base58.decode(KEY)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("order-fee { -1 { mode = percent, percent.min-fee = 101 } }", "from 0 to 100"),
        ("order-fee.-1 { mode = composite, composite.discount { asset = WAVES, value = 100.5 } }",
         "from 0 to 100"),
        ('order-restrictions { "WAVES-WAVES" { min-amount = 2, max-amount = 1 } }', "min-amount"),
        ('order-restrictions { "WAVES-WAVES" { min-price = 2, max-price = 2 } }', "min-price"),
        ('address-actor.realtime-ws-accounts = ["3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"]',
         "public key"),
        ('price-assets = ["abc"]', "WAVES or the id"),
        ("order-fee { x { mode = fixed } }", "order-fee.x"),
        ("order-fee { -1 { mode = free } }", "order-fee.-1.mode"),
        ("order-fee { -1 { mode = percent, percent.asset-type = all } }", "asset-type"),
        ("matching-rules { WAVES = [] }", "AMOUNT-PRICE"),
        ('matching-rules { "WAVES-WAVES" = [{ tick-size = -1 }] }', "not negative"),
        (f"matching-rules {{ WAVES-WAVES = [{TICK}, {TICK}] }}", "growing offsets"),
        ('blacklisted-names = ["("]', "regular expression"),
        ('blacklisted-addresses = ["nobody"]', "address of this chain"),
        ('price-assets = ["0"]', "WAVES or the id"),
        ('allowed-asset-pairs = ["WAVES"]', "AMOUNT-PRICE"),
        ('rest-api.api-key-hashes = ["abc"]', "hash of an API key"),
        ('lp-accounts.public-keys = ["abc"]', "public key"),
        ('lp-accounts.file-path = "/none"', "public key in base58 on each line"),
        ('node.url = "localhost"', "http://"),
        ('account-storage.type = "postgres"', "in-mem or encrypted-file"),
        ('account-storage.type = "encrypted-file"', "encrypted-file.path is missing"),
        ('events-queue { type = kafka }', "host:port"),
        ('events-queue.type = paper', "local or kafka"),
        ('account-storage.in-mem.seed-in-base-64 = "***"', "standard base64"),
    ],
)  # fmt: skip
def test_refusals_name_the_key(load: Load, text: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        load(text)
    assert SEED not in str(caught.value)


def test_liquidity_providers_are_those_of_the_file_and_of_the_list(
    load: Load, tmp_path: Path
) -> None:
    keys = [key_pair_from_account_seed(name).public_key for name in (b"one", b"two", b"three")]
    one, two, three = map(base58.encode, keys)
    (tmp_path / "pools").write_text(f"{one}\n\n{two}\n")
    text = f'lp-accounts {{ file-path = "{tmp_path}/pools", public-keys = ["{three}"] }}'
    assert load(text).trading.lp_accounts == frozenset(keys)
    (tmp_path / "pools").write_text(f"{one}\nabc\n")
    with pytest.raises(InputError, match="file-path"):
        load(text)
    # What lies beyond a limit is not left out.
    (tmp_path / "pools").write_text(f"{one}\n".ljust(MAX_FILE_CHARS) + f"{two}\n")
    with pytest.raises(InputError, match="file-path"):
        load(text)


def test_every_setting_is_documented_and_nothing_else_is() -> None:
    section = Section({}, "", MatcherSettingsError)
    with pytest.raises(MatcherSettingsError, match="soliton matcher init"):
        read(section, networks.load("devnet"), Path("/nowhere"))
    text = REFERENCE.read_text()
    head, _, foreign = text.partition("## Without effect")
    documented = re.findall(r"^\| `([a-z0-9.-]+)` \|", head, re.MULTILINE)
    documented += re.findall(r"`([a-z0-9.-]+)`", foreign)
    assert sorted(documented) == sorted(set(section.known_keys()))


def test_tickers_name_each_asset_once(load: Load) -> None:
    first, second = (base58.encode(bytes((number,)) * 32) for number in (1, 2))
    found = load(f'tickers {{ Gold = "{first}", "US.Dollar" = "{second}" }}').tickers
    assert found == {"Gold": b"\1" * 32, "US.Dollar": b"\2" * 32}
    for wrong in (
        f'Gold = "{first}", Silver = "{first}"',
        'Coin = "WAVES"',
        f'"a/b" = "{first}"',
        f'{"a" * 33} = "{first}"',
        'Gold = "Gold"',
    ):
        with pytest.raises(MatcherSettingsError):
            load(f"tickers {{ {wrong} }}")
