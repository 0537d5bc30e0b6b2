"""Settings: what a file may say, what it means, and how a wrong one is told."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from soliton.chain import networks
from soliton.chain.networks import NetworkError
from soliton.chain.networks.custom import read as read_custom
from soliton.chain.networks.sections import Section
from soliton.crypto import base58
from soliton.crypto.public_secrets import is_public_api_key
from soliton.errors import InputError
from soliton.node.rest_settings import ApiLimits
from soliton.node.settings import (
    Settings,
    SettingsError,
    api_key_hash_text,
    known_keys,
    load_settings,
)

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


class Writer:
    """Writes a configuration file and loads it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "node.conf"

    def load(self, text: str, network: str | None = None) -> Settings:
        self.path.write_text(text, encoding="utf-8")
        return load_settings(self.path, network)


def value_at(settings: Settings, dotted: str) -> object:
    value: object = settings
    for part in dotted.split("."):
        value = getattr(value, part)
    return value


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/op")
    settings = load_settings()
    assert settings.network is networks.load("zbs-testnet")
    assert settings.directory == Path("/home/op/.soliton/zbs-testnet")
    assert settings.data_directory == Path("/home/op/.soliton/zbs-testnet/data")
    assert settings.wallet.file == Path("/home/op/.soliton/zbs-testnet/wallet/wallet.dat")
    assert (settings.rest_api.bind_address, settings.rest_api.port) == ("127.0.0.1", 7431)
    assert settings.rest_api.enable
    assert settings.signer.node_url == "http://127.0.0.1:7431"
    assert settings.signer.port == 6888
    assert settings.rewards_desired is None
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("name", "port"),
    [("zbs-mainnet", 7441), ("zbs-testnet", 7431), ("waves-mainnet", 6869), ("tn-testnet", 6561)],
)
def test_rest_port_follows_the_network(name: str, port: int) -> None:
    assert load_settings(network=name).rest_api.port == port


# What a file says, and which network that is.
CHOSEN = """
zbs { blockchain.type = MAINNET }               zbs-mainnet
zbs { blockchain.type = testnet }               zbs-testnet
zbs { }                                         zbs-testnet
waves { blockchain { type: STAGENET } }         waves-stagenet
waves { }                                       waves-testnet
TN { blockchain.type = MAINNET }                tn-mainnet
soliton { blockchain.type = waves-mainnet }     waves-mainnet
waves { blockchain.type = "zbs-mainnet" }       zbs-mainnet
soliton { }                                     zbs-testnet
soliton { blockchain.type = TESTNET }           waves-testnet
"""


@pytest.mark.parametrize("line", CHOSEN.strip().splitlines())
def test_root_and_type_choose_the_network(write: Writer, line: str) -> None:
    text, name = line.rsplit(maxsplit=1)
    assert write.load(text).network is networks.load(name)


def test_command_line_wins_over_the_file(write: Writer, tmp_path: Path) -> None:
    settings = write.load("zbs { blockchain.type = MAINNET, db.directory = /x }", "waves-testnet")
    assert settings.network.name == "waves-testnet"
    assert settings.warnings == ("zbs.blockchain.type is MAINNET, but waves-testnet was asked for",)
    assert settings.data_directory == Path("/x")
    moved = load_settings(write.path, data_dir=tmp_path / "d", overrides={"rest-api.port": 7})
    assert moved.data_directory == tmp_path / "d" / "data"
    assert moved.rest_api.port == 7
    assert load_settings(write.path, "zbs-mainnet").warnings == ()


def test_overrides_reach_every_section_and_none_leaves_alone(write: Writer) -> None:
    write.load("waves { miner.enable = yes }, soliton { signer.port = 1 }")
    overrides = {"miner.enable": False, "signer.port": 2, "utx.max-size": 3, "rest-api.port": None}
    settings = load_settings(write.path, overrides=overrides)
    assert not settings.miner.enable
    assert (settings.signer.port, settings.utx.max_size) == (2, 3)
    assert settings.rest_api.port == 6869
    with pytest.raises(SettingsError, match=r"command line: soliton\.rest-api\.port is 'x'"):
        load_settings(overrides={"rest-api.port": "x"})


# What is written below the root, and the field with its value then.
GOOD = """
rest-api.enable = no                              rest_api.enable                           False
rest-api.enable = off                             rest_api.enable                           False
rest-api.enable = "true"                          rest_api.enable                           True
rest-api { enable = on }                          rest_api.enable                           True
rest-api.bind-address = "0.0.0.0"                 rest_api.bind_address                     '0.0.0.0'
rest-api.bind-address = "::1"                     rest_api.bind_address                     '::1'
rest-api.bind-address = node.local                rest_api.bind_address                     'node.local'
rest-api.port = "7000"                            rest_api.port                             7000
rest-api.cors = no                                rest_api.cors                             False
rest-api.api-key-different-host = yes             rest_api.api_key_different_host           True
rest-api.cors-headers.access-control-allow-origin = "https://a.b:1"  rest_api.cors_headers.origin  'https://a.b:1'
rest-api.cors-headers.access-control-allow-headers = [a, B-c]  rest_api.cors_headers.headers  ('a', 'B-c')
rest-api.cors-headers.access-control-allow-methods = [GET]  rest_api.cors_headers.methods  ('GET',)
rest-api.cors-headers.access-control-allow-credentials = no  rest_api.cors_headers.credentials  False
rest-api.minimum-peers = 3                        rest_api.minimum_peers                    3
rest-api.transactions-by-address-limit = 5        rest_api.transactions_by_address_limit    5
rest-api.distribution-address-limit = 6           rest_api.distribution_address_limit       6
rest-api.blocks-request-limit = 7                 rest_api.blocks_request_limit             7
miner.enable = no                                 miner.enable                              False
miner.quorum = 0                                  miner.quorum                              0
miner.commit-to-generation = yes                  miner.commit_to_generation                True
extensions = [com.wavesplatform.extension.CommitmentExtension]  miner.commit_to_generation  True
miner.micro-block-interval = 1500ms               miner.micro_block_interval_ms             1500
miner.interval-after-last-block-then-generation-is-allowed=999d  miner.interval_after_last_block_ms  86313600000
db.max-rollback-depth = 100                       db.max_rollback_depth                     100
max-rollback-depth = 100                          db.max_rollback_depth                     100
db.store-state-hashes = false                     db.store_state_hashes                     False
db.directory = /a                                 data_directory                            Path('/a')
data-directory = /b                               data_directory                            Path('/b')
directory = /c                                    data_directory                            Path('/c/data')
directory = /c                                    wallet.file                               Path('/c/wallet/wallet.dat')
wallet.file = /w                                  wallet.file                               Path('/w')
wallet.file = null                                wallet.file                               None
wallet.file = ""                                  wallet.file                               None
wallet.password = "some words"                    wallet.password                           'some words'
wallet.password = ""                              wallet.password                           None
wallet.seed = "2NEpo7TZRRrLZSi2U"                 wallet.seed                               b'Hello World!'
features.supported = [14, 15]                     features.supported                        (14,15)
features.auto-shutdown-on-unsupported-feature=no  features.auto_shutdown_on_unsupported_feature  False
rewards.desired = 600000000                       rewards_desired                           600000000
utx.max-size = 1                                  utx.max_size                              1
utx.max-bytes-size = 2 // two                     utx.max_bytes_size                        2
utx.max-scripted-size = 0                         utx.max_scripted_size                     0
utx.always-unlimited-execution = true             utx.always_unlimited_execution            True
rest-api.evaluate-script-complexity-limit = 9     rest_api.evaluate_script_complexity_limit  9
signer { port = 1, bind-address = 0.0.0.0 }       signer.port                               1
signer.node-url = "https://node.example/"         signer.node_url                           'https://node.example'
rest-api.bind-address = "::"                      signer.node_url                           'http://127.0.0.1:7431'
rest-api.bind-address = "::1"                     signer.node_url                           'http://[::1]:7431'
"""  # noqa: E501 - a table


@pytest.mark.parametrize("line", GOOD.strip().splitlines())
def test_good_values(write: Writer, line: str) -> None:
    text, field, expected = re.split(r"\s{2,}", line.strip())
    settings = write.load(f"soliton {{\n{text}\n}}")
    assert value_at(settings, field) == eval(expected, {"Path": Path})
    assert settings.warnings == ()


# What is written below the root `zbs`, and what the refusal says.
WRONG = """
rest-api.port = 70000                     zbs.rest-api.port is 70000: expected a whole number from 0 to 65535
rest-api.port = http                      zbs.rest-api.port is 'http': expected a whole number
rest-api.port = 7.5                       zbs.rest-api.port is 7.5
rest-api.port = [7]                       zbs.rest-api.port is [7]
rest-api.enable = maybe                   zbs.rest-api.enable is 'maybe': expected yes or no
rest-api.enable = 1                       zbs.rest-api.enable is 1: expected yes or no
rest-api.bind-address = "300.1.1.1"       zbs.rest-api.bind-address is '300.1.1.1': expected an IP address
rest-api.cors-headers.access-control-allow-origin = wallet  zbs.rest-api.cors-headers.access-control-allow-origin is 'wallet': expected origin-from-request, *
rest-api.cors-headers.access-control-allow-headers = ["a b"]  zbs.rest-api.cors-headers.access-control-allow-headers[0] is 'a b': expected a name
rest-api.bind-address = "a b"             zbs.rest-api.bind-address is 'a b'
rest-api.blocks-request-limit = 0         zbs.rest-api.blocks-request-limit is 0
rest-api = 5                              zbs.rest-api is 5: expected a section
blockchain.type = MOONNET                 zbs.blockchain.type is 'MOONNET': expected MAINNET, TESTNET, CUSTOM
blockchain.type = STAGENET                zbs.blockchain.type is 'STAGENET'
blockchain.type = CUSTOM                  zbs.blockchain.type is 'CUSTOM'
blockchain { type = CUSTOM, custom { } }  zbs.blockchain.custom.address-scheme-character is missing
miner.micro-block-interval = soon         zbs.miner.micro-block-interval is 'soon': expected a duration
features.supported = [0]                  zbs.features.supported[0] is 0: expected a whole number from 1
features.supported = all                  zbs.features.supported is 'all': expected a list
rewards.desired = -1                      zbs.rewards.desired is -1
utx.max-size = 0                          zbs.utx.max-size is 0
db.max-rollback-depth = 0                 zbs.db.max-rollback-depth is 0
directory = [ ]                           zbs.directory is []: expected a text
network = off                             zbs.network is 'off': expected a section
"""  # noqa: E501 - a table


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_wrong_values_name_file_key_and_value(write: Writer, line: str) -> None:
    text, message = re.split(r"\s{2,}", line.strip())
    with pytest.raises(SettingsError) as caught:
        write.load(f"zbs {{\n{text}\n}}")
    # A required key that nobody wrote is told with the place of its section.
    assert re.sub(r":[12]: ", ": ", str(caught.value), count=1).startswith(
        f"{write.path}: {message}"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('origins = ["https://a.example/"]', r"signer.origins\[0\] is .* origin such as https://"),
        ('origins = ["*"]', "signer.origins"),
        ('webhook.url = "a.example"', "signer.webhook.url .* http://"),
        ('webhook.url = "https://a.example/hook"', "signer.webhook.secret-file"),
    ],
)
def test_who_may_ask_a_signer_and_who_is_told(write: Writer, line: str, words: str) -> None:
    kept = 'keys-directory = keys, policy-file = "policy.toml"'
    with pytest.raises(SettingsError, match=words):
        write.load(f"zbs {{ }}, soliton.signer {{ {kept}\n {line} }}")


def test_wrong_signer_settings_are_told_below_their_own_root(write: Writer) -> None:
    with pytest.raises(SettingsError, match=r"soliton.signer.node-url is 'node:1': .* http://"):
        write.load('zbs { }, soliton { signer.node-url = "node:1" }')


@pytest.mark.parametrize(
    "text",
    ['seed = "0Il-not-base58"', "seed = 12345678901", "password = 12345678901", "password = [77]"],
)
def test_wrong_secrets_are_not_shown(write: Writer, text: str) -> None:
    with pytest.raises(SettingsError, match=r"wallet.(seed|password) is \(not shown\)") as caught:
        write.load(f"waves.wallet {{ {text} }}")
    # The file's own name has a number of the test run in it.
    said = str(caught.value).replace(str(write.path), "")
    for hidden in ("0Il", "1234567", "77"):
        assert hidden not in said


def test_settings_do_not_show_secrets(write: Writer) -> None:
    settings = write.load('waves.wallet { password = "hush", seed = "2NEpo7TZRRrLZSi2U" }')
    assert settings.wallet.password == "hush"
    assert "hush" not in repr(settings)
    assert "Hello" not in repr(settings)


def test_idle_keys_are_told_by_full_name(write: Writer) -> None:
    settings = write.load(
        """
        waves {
          network { port = 6868, known-peers = [] }
          synchronization.max-rollback = 100
          utx.allow-skip-checks = false
          db.rocksdb.main-cache-size = 512M
          extensions += com.wavesplatform.events.BlockchainUpdates
        }
        waves.extensions += "com.wavesplatform.api.grpc.GRPCServerExtension"
        kamon.enable = no
        akka { loglevel = INFO }
        """
    )
    assert sorted(settings.warnings) == [
        "waves.utx.allow-skip-checks has no effect yet",
    ]


# What a file says, and what the refusal says after its name.
UNKNOWN = [
    ("waves {\n rest-api { prot = 1 }\n}",
     "2: unknown setting waves.rest-api.prot (did you mean waves.rest-api.port?)"),
    ("waves.network.nodename = x",
     "1: unknown setting waves.network.nodename (did you mean waves.network.node-name?)"),
    ("waves {\n colour = red }", "2: unknown setting waves.colour"),
    ("waves {\n quorum = 0 }",
     "2: unknown setting waves.quorum (did you mean waves.miner.quorum?)"),
    ("waves { }\nsoliton.explorer.port = 2", "2: unknown setting soliton.explorer"),
    ("waves.signer.port = 1", "1: unknown setting waves.signer"),
    ("waves { }\nwave { x = 1 }", "2: unknown setting wave (did you mean waves?)"),
    ("waves { a = 1\n b = 2 }", "1: unknown setting waves.a; 1 more: soliton config check"),
    ("rest-api.port = 1", " has none of the roots soliton, waves, zbs, TN"),
    ("", " has none of the roots"),
    ("kamon.enable = no", " has none of the roots"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), UNKNOWN)
def test_unknown_keys_and_roots_stop_the_start(write: Writer, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        write.load(text)
    assert str(caught.value).startswith(f"{write.path}:{message}")


def test_a_misspelt_network_is_told_with_the_one_that_was_meant(write: Writer) -> None:
    for written, meant in (("waves-mainet", "waves-mainnet"), ("TESTNETT", "TESTNET")):
        with pytest.raises(SettingsError, match=rf"\(did you mean {meant}\?\)$"):
            write.load(f"waves.blockchain.type = {written}")


def test_a_value_of_the_operators_own_may_stand_beside_the_root(write: Writer) -> None:
    settings = write.load("ports { api = 7000 }\nwaves.rest-api.port = ${ports.api}")
    assert settings.rest_api.port == 7000


def test_near_names_are_looked_for_in_little_time_however_many_are_unknown(write: Writer) -> None:
    lines = "\n".join(f"{'rest-apj' * 500}{number} = 1" for number in range(1_000))
    started = time.process_time()
    with pytest.raises(SettingsError, match="999 more"):
        write.load(f"waves {{\n{lines}\n}}")
    # A search over whole names takes minutes.
    assert time.process_time() - started < 30


# What a file says about keys and seeds that stand in documents and images, and what is warned of.
GIVEN_AWAY = [
    ('bind-address = 0.0.0.0, api-key-hash = "%s"', "the key of waves.rest-api.api-key-hash"),
    ('bind-address = "192.168.1.5", api-key-hash = "%s"', "bind-address 192.168.1.5 lets others"),
    ('bind-address = "::", api-keys = [{ name = a, hash = "%s", scopes = [sign] }]', "API key a"),
    ('bind-address = node.local, api-key-hash = "%s"', "node.local"),
    ('bind-address = 127.0.0.1, api-key-hash = "%s"', None),
    ('bind-address = "::1", api-key-hash = "%s"', None),
    ('bind-address = localhost, api-key-hash = "%s"', None),
    ('enable = no, bind-address = 0.0.0.0, api-key-hash = "%s"', None),
]


@pytest.mark.parametrize(
    "key", ["ridethewaves!", "waves-private-node", "integration-test-rest-api"]
)
@pytest.mark.parametrize(("text", "words"), GIVEN_AWAY)
def test_keys_that_everybody_knows_are_warned_of_where_others_come(
    write: Writer, text: str, words: str | None, key: str
) -> None:
    warnings = write.load(f"waves.rest-api {{ {text % api_key_hash_text(key)} }}").warnings
    if words is None:
        assert warnings == ()
    else:
        (warning,) = warnings
        assert words in warning
    own = api_key_hash_text(f"a key of my own, not {key}")
    assert write.load(f"waves.rest-api {{ {text % own} }}").warnings == ()


def test_seeds_that_everybody_knows_are_warned_of_where_others_come(write: Writer) -> None:
    # The wallet's seed in the ecosystem's private-node image.
    text = 'waves { wallet.seed = "TBXHUUcVx2n3Rgszpu5MCybRaR86JGmqCWp7XKh7czU57ox5dgjdX4K4", %s }'
    assert write.load(text % "").warnings == ()
    (warning,) = write.load(text % "rest-api.bind-address = 0.0.0.0").warnings
    assert "everybody knows waves.wallet.seed" in warning and "TBX" not in warning


def test_the_hashes_in_the_reference_open_nothing() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for word in re.findall(r"[1-9A-HJ-NP-Za-km-z]{40,44}", text):
        assert not is_public_api_key(base58.decode(word)), word


def test_two_families_in_one_file_are_refused(write: Writer) -> None:
    with pytest.raises(SettingsError, match="several roots, waves and zbs"):
        write.load("waves { }, zbs { }")
    with pytest.raises(SettingsError, match="waves is 5: expected a section"):
        write.load("waves = 5")


# Files that are no configuration, and what is said after the file's name.
BROKEN = [
    (b"waves {\n  a = 1\n", "3: column 1: the { of line 1 is not closed"),
    (b"waves {\n  a = ]\n}", "2: column 7: expected a value"),
    (b"waves { }\n}", "2: column 1: there is no { that this } closes"),
    (b"waves {\n a { b = [1, 2\n }\n}", "3: column 2: expected a value"),
    (b'waves.a = "x\n', '1: column 11: this text has no closing "'),
    (b"waves.a = 1 b = 2", "1: column 15: a new line or a comma is missing before this"),
    (b"waves.a\nwaves.b = 1", "1: a key without a value: expected = or { after it"),
    (b"waves.a = 1\nwaves.x = a^b$", "2: column 14: '$' needs quotes here"),
    (b"\xff\xfe", " is not UTF-8 text"),
    (b"waves.x = ${nowhere}", "1: ${nowhere} is neither in the file nor in the environment"),
    (b"waves.a = ${waves.a}", "1: ${waves.a} is neither in the file nor in the environment"),
]


@pytest.mark.parametrize(("contents", "message"), BROKEN)
def test_broken_files(tmp_path: Path, contents: bytes, message: str) -> None:
    path = tmp_path / "node.conf"
    path.write_bytes(contents)
    with pytest.raises(SettingsError) as caught:
        load_settings(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_parse_errors_do_not_quote_the_file(write: Writer) -> None:
    with pytest.raises(SettingsError) as caught:
        write.load('waves { wallet.password = "hush" "\n ] hush2 }')
    assert "hush" not in str(caught.value)


def test_missing_file_directory_and_huge_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_settings(tmp_path / "none.conf")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path)
    huge = tmp_path / "huge.conf"
    with huge.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(SettingsError, match="larger than"):
        load_settings(huge)


def test_unknown_network_name() -> None:
    with pytest.raises(NetworkError, match="unknown network 'mainnet'"):
        load_settings(network="mainnet")
    assert issubclass(SettingsError, InputError)


def test_substitutions_includes_and_environment(
    write: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/op")
    monkeypatch.setenv("NODE_PASSWORD", "from outside")
    write.path.with_name("local.conf").write_text("zbs.rest-api.port = 1234")
    settings = write.load(
        """
        zbs {
          directory = ${user.home}"/zbs"
          data-directory = ${zbs.directory}"/chain"
          wallet.password = ${?NODE_PASSWORD}
          wallet.seed = ${?NODE_SEED_THAT_IS_NOT_SET}
        }
        include "local.conf"
        include "not-there.conf"
        """
    )
    assert settings.directory == Path("/home/op/zbs")
    assert settings.data_directory == Path("/home/op/zbs/chain")
    assert settings.wallet.password == "from outside"
    assert settings.wallet.seed is None
    assert settings.rest_api.port == 1234
    assert settings.warnings == ()


def test_api_key(write: Writer) -> None:
    # The key and hash of the ecosystem's private-node image.
    text = "BNejVjPAWUrXJTqNrTboGPENAJt9PXnmfdtBgMSgs1u3"
    assert api_key_hash_text("waves-private-node") == text
    rest = write.load(f"waves.rest-api.api-key-hash = {text}").rest_api
    assert rest.check_api_key("waves-private-node")
    for wrong in ("", "waves-private-nod", text, "\udcff", "é"):
        assert not rest.check_api_key(wrong)


@pytest.mark.parametrize(
    "text", ["", "placeholder", "0O", "1", "12345", "H6nsiifwYKYEx6YzYD7woP1XCn72RVvx6tC1zjjLXqsu1"]
)
def test_api_key_hash_that_is_none_leaves_every_key_wrong(write: Writer, text: str) -> None:
    settings = write.load(f'zbs.rest-api.api-key-hash = "{text}"')
    rest = settings.rest_api
    assert rest.api_key_hash_text == text
    assert rest.api_key_hash is None
    assert not any(rest.check_api_key(key) for key in ("", text, "key"))
    assert len(settings.warnings) == (1 if text else 0)


def test_named_keys(write: Writer) -> None:
    first, second = api_key_hash_text("first"), api_key_hash_text("second")
    rest = write.load(
        f"""waves.rest-api.api-keys = [
            {{ name = one, hash = {first}, scopes = [sign, debug] }},
            {{ name = two, hash = {second}, scopes = [seeds] }}
            {{ name = three, hash = {second}, scopes = [operate] }}
        ]"""
    ).rest_api
    assert [key.name for key in rest.named_keys] == ["one", "two", "three"]
    assert rest.scopes_of("first") == {"sign", "debug"}
    assert rest.scopes_of("second") == {"seeds", "operate"}
    assert rest.scopes_of("") == rest.scopes_of(first) == rest.scopes_of("\udcff") == frozenset()
    assert not rest.check_api_key("first")


@pytest.mark.parametrize(
    ("item", "wrong"),
    [
        ("name = one, hash = 123, scopes = [sign]", "hash"),
        ("name = one, scopes = [sign]", "hash"),
        ("name = 'a b', hash = HASH, scopes = [sign]", "name"),
        ("hash = HASH, scopes = [sign]", "name"),
        ("name = one, hash = HASH", "scopes"),
        ("name = one, hash = HASH, scopes = []", "scopes"),
        ("name = one, hash = HASH, scopes = [sign, fly]", "scopes"),
    ],
)
def test_a_named_key_that_cannot_be(write: Writer, item: str, wrong: str) -> None:
    text = item.replace("HASH", api_key_hash_text("key")).replace("'", '"')
    with pytest.raises(SettingsError, match=rf"api-keys\[0\]\.{wrong}"):
        write.load(f"waves.rest-api.api-keys = [{{ {text} }}]")


def test_limits(write: Writer) -> None:
    limits = write.load("waves.rest-api.limits { client-percent = 0, client-burst = 2m }").rest_api
    assert (limits.limits.client_percent, limits.limits.client_burst_ms) == (0, 120_000)
    assert write.load("waves { }").rest_api.limits == ApiLimits()
    with pytest.raises(SettingsError, match="client-percent"):
        write.load("waves.rest-api.limits.client-percent = 101")


def test_unquoted_number_as_placeholder(write: Writer) -> None:
    assert write.load("zbs.rest-api.api-key-hash = 123").rest_api.api_key_hash_text == "123"


def test_recorded_private_chain(shared: Path) -> None:
    settings = load_settings(shared / "golden" / "waves-r" / "network.conf")
    network = settings.network
    assert (network.name, network.chain_id) == ("custom", ord("R"))
    assert network.genesis.initial_base_target == 1240
    assert network.genesis.average_block_delay_ms == 10_000
    assert network.functionality.min_block_time_ms == 5_000
    assert network.functionality.pre_activated_features[7] == -5
    assert network.rewards.term_after_capped_reward == 3
    assert settings.rewards_desired == 575_000_000
    prefix = "waves.blockchain.custom.functionality."
    assert all(text.startswith(prefix) for text in settings.warnings)
    assert len(settings.warnings) == 4


def test_every_setting_is_documented_once_and_nothing_else_is() -> None:
    documented = re.findall(r"^\| `([a-z0-9.-]+)` \|", REFERENCE.read_text(), re.MULTILINE)
    of_custom = [key for key in documented if key.startswith("blockchain.custom.")]
    assert sorted(set(documented) - set(of_custom)) == sorted(known_keys())
    assert len(documented) == len(set(documented))


def test_every_setting_of_a_private_chain_is_documented() -> None:
    tree = {
        "address-scheme-character": "R",
        "genesis": {
            "timestamp": 1,
            "initial-balance": 0,
            "initial-base-target": 1,
            "average-block-delay": "1m",
        },
    }
    section = Section(tree, "blockchain.custom", SettingsError)
    read_custom(section, "waves", [])
    keys = {*section.known_keys(), "blockchain.custom.functionality.pre-activated-features"}
    documented = re.findall(
        r"^\| `(blockchain\.custom\.[a-z0-9.-]+)`", REFERENCE.read_text(), re.MULTILINE
    )
    assert sorted(documented) == sorted(keys)


@pytest.mark.parametrize(
    ("network", "least", "quorum"),
    [
        ("waves-mainnet", 1, 3),
        ("waves-testnet", 1, 3),
        ("zbs-mainnet", 0, 1),
        ("tn-mainnet", 0, 1),
        ("devnet", 0, 1),
    ],
)
def test_only_public_waves_nodes_need_several_peers_by_default(
    network: str, least: int, quorum: int
) -> None:
    settings = load_settings(network=network)
    assert (settings.rest_api.minimum_peers, settings.miner.quorum) == (least, quorum)


def test_every_setting_has_an_effect() -> None:
    """A field that no code reads is a setting that is documented and does nothing."""
    source = Path(__file__).parents[2] / "src" / "soliton"
    read = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"\.([a-z_][a-z0-9_]*)", path.read_text())
    }
    fields = {
        name: path.name
        for path in (source / "node").glob("*settings.py")
        for name in re.findall(r"^    ([a-z0-9_]+): ", path.read_text(), re.MULTILINE)
    }
    # A parameter of a function, on a line of its own.
    del fields["overrides"]
    assert not {name: fields[name] for name in fields.keys() - read}
