"""``soliton config``: every problem with its line; what is in force and why."""

from __future__ import annotations

import shutil
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from soliton.crypto import base58
from soliton.storage.store import Store
from tests.cli.meanings import meanings
from tests.e2e.programs import run

WRONG = """\
# a comment
zbs {
  directory = %s
  rest-api {
    prot = 70
    port = 70000
    api-keys = [ { name = "a b", hash = x } ]
  }
  miner { quorum = -1, micro-block-interval = 5 parsecs }
  blockchain.type = MANNET
  netwrk.port = 5
  network.upnp.enable = no
  wallet.seed = "not base58: 0OIl"
}
soliton { signer { prt = 5 } }
wave.x = 1
"""

PROBLEMS = (
    (5, "unknown setting zbs.rest-api.prot (did you mean zbs.rest-api.port?)"),
    (6, "zbs.rest-api.port is 70000: expected a whole number from 0 to 65535"),
    (7, "zbs.rest-api.api-keys[0].name is 'a b': expected a name of its own"),
    (7, "zbs.rest-api.api-keys[0].hash is 'x': expected base58 of the hash of a key"),
    (7, "zbs.rest-api.api-keys[0].scopes is missing: expected a list of accounts, debug"),
    (9, "zbs.miner.quorum is -1: expected a whole number"),
    (9, "zbs.miner.micro-block-interval is '5 parsecs': expected a duration"),
    (10, "zbs.blockchain.type is 'MANNET': expected MAINNET, TESTNET"),
    (11, "unknown setting zbs.netwrk (did you mean zbs.network?)"),
    (13, "zbs.wallet.seed is (not shown): expected base58"),
    (15, "unknown setting soliton.signer.prt (did you mean soliton.signer.port?)"),
    (16, "unknown setting wave (did you mean waves?)"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.conf"


def test_check_prints_every_problem_with_its_line(path: Path) -> None:
    path.write_text(WRONG % path.parent)
    ended = run("config", "check", path)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 1
    assert lines[-1] == f"{path}:12: note: zbs.network.upnp has no effect yet"
    for line, (number, words) in zip(lines[:-1], PROBLEMS, strict=True):
        assert line.startswith(f"{path}:{number}: {words}")
    assert "0OIl" not in ended.stdout + ended.stderr


def test_check_tells_that_all_is_well(path: Path) -> None:
    path.write_text("waves.blockchain.type = STAGENET")
    ended = run("config", "check", path)
    assert ended.returncode == 0
    assert ended.stdout == f"{path}: no problems; the settings of a node on waves-stagenet\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("waves {\n  a = 1", "2: column 8: the { of line 1 is not closed"),
        ("port = 1", " has none of the roots"),
        ("waves { }\nzbs { }", " has several roots, waves and zbs"),
        ("waves.blockchain { type = CUSTOM, custom.genesis { } }",
         "1: waves.blockchain.custom.address-scheme-character is missing"),
        ("waves.dex {\n id = x\n rest-api.prt = 1 }",
         "1: waves.dex.account-storage.in-mem.seed-in-base-64 is missing"),
        ('waves.dex {\n account-storage.in-mem.seed-in-base-64 = "AAAA"\n rest-api.prt = 1 }',
         "3: unknown setting waves.dex.rest-api.prt (did you mean waves.dex.rest-api.port?)"),
    ],
)  # fmt: skip
def test_check_of_other_mistakes(path: Path, text: str, words: str) -> None:
    path.write_text(text)
    ended = run("config", "check", path)
    assert ended.returncode == 1
    assert f"{path}:{words}" in ended.stdout
    assert "Traceback" not in ended.stderr


PRIVATE = """\
waves {{
  directory = {directory}
  blockchain {{
    type = CUSTOM
    custom {{
      address-scheme-character = "R"
      functionality {functionality}
      genesis {genesis}
    }}
  }}
  {more}
}}
"""
FUNCTIONALITY = "{ min-block-time = 5s }"
GENESIS = """{ average-block-delay = 10s, initial-base-target = 1240, timestamp = 1566817216027
initial-balance = 100, transactions = [
{ recipient = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF", amount = 100 }] }"""


def problems(path: Path, **parts: str) -> tuple[int, list[str], list[str]]:
    """The exit code of a check, and its problems and notes without their places."""
    whole = {"functionality": FUNCTIONALITY, "genesis": GENESIS, "more": ""} | parts
    path.write_text(PRIVATE.format(directory=f'"{path.parent}/data"', **whole))
    ended = run("config", "check", path)
    assert "Traceback" not in ended.stderr, ended.stderr
    lines = [each.split(": ", 1)[1] for each in ended.stdout.splitlines()]
    notes = [each.removeprefix("note: ") for each in lines if each.startswith("note: ")]
    return ended.returncode, [each for each in lines if not each.startswith("note: ")], notes


def test_check_knows_what_the_start_knows_of_a_private_chain(path: Path) -> None:
    assert problems(path)[0] == 0
    features = "{ min-block-time = 5s, pre-activated-features = { 15 = 0, 9000 = 0, 9001 = 77 } }"
    code, found, notes = problems(path, functionality=features)
    place = "waves.blockchain.custom.functionality.pre-activated-features"
    unknown = "is not implemented by this version: the node stops"
    assert (code, found) == (1, [f"{place}.9000: feature 9000 {unknown} with code 38"])
    assert notes == [f"{place}.9001: feature 9001 {unknown} before height 77"]
    started = run("run", "--config", path)
    assert started.returncode == 38, started.stderr
    shutil.rmtree(path.parent / "data")
    signature = base58.encode(bytes(range(64)))
    signed = GENESIS.replace("timestamp", f'signature = "{signature}", timestamp')
    code, found, _ = problems(path, genesis=signed)
    refused = "the genesis signature of custom is not valid"
    assert (code, found) == (1, [f"waves.blockchain.custom.genesis.signature: {refused}"])
    started = run("run", "--config", path)
    assert started.returncode == 1 and refused in started.stderr


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        ('rest-api.bind-address = "192.0.2.1"', "rest-api.bind-address", "can listen on 192.0.2.1"),
        ("rest-api.port = 7000, network.port = 7000", "network.port", "is that of rest-api, too"),
        ("extensions = [com.wavesplatform.api.grpc.GRPCServerExtension]\ngrpc.port = 6869",
         "grpc.port", "is that of rest-api, too"),
        ('wallet.file = "/proc/version", wallet.password = x', "wallet.file", "/proc/version"),
        ('wallet.file = "/proc/version/w"', "wallet.file", "/proc/version is no directory"),
        ('db.directory = "/proc/version/data"', "directory", "/proc/version is no directory"),
        ('wallet.signer = "http://127.0.0.1:1", wallet.signer-key-file = "/nowhere"',
         "wallet.signer", "/nowhere: No such file"),
        ('}\nsoliton.signer { keys-directory = k, policy-file = "/nowhere" }\nwaves {',
         "signer.policy-file", "/nowhere cannot be read"),
    ],
)  # fmt: skip
def test_check_knows_what_else_stops_a_start(path: Path, more: str, key: str, words: str) -> None:
    code, found, _ = problems(path, more=more)
    assert code == 1 and len(found) == 1, found
    assert key in found[0] and words in found[0]


def test_check_of_a_chain_of_another_network(path: Path) -> None:
    data = path.parent / "data"
    made = run("state-hash", "1", "--network", "waves-stagenet", "--data-dir", data)
    assert made.returncode in (0, 1)
    store = Store(data / "data", "waves-stagenet", durable=False)
    store.flush()
    store.close()
    code, found, _ = problems(path)
    assert (code, len(found)) == (1, 1), found
    assert "holds the chain waves-stagenet, not custom" in found[0]
    assert run("run", "--config", path).returncode == 1


def test_check_names_every_error_of_a_list(path: Path) -> None:
    path.write_text("""
        waves {
          network.known-peers = ["1.2.3.4:6868", nowhere, "5.6.7.8:0", 9]
          features.supported = [15, x, 16, 0]
          miner.private-keys = [abc, "0OIl"]
          rest-api.cors-headers.access-control-allow-methods = ["GET", "A B", "C D"]
          rest-api.api-keys = [{ name = a, hash = x, scopes = [debug, no, yes] }, 5]
        }
        waves.dex {
          account-storage.in-mem.seed-in-base-64 = "AAAA"
          blacklisted-assets = [WAVES, x, y], price-assets = [z]
          rest-api.api-key-hashes = [x, y]
          allowed-order-versions = [1, 9]
        }
    """)
    ended = run("config", "check", path)
    found = {each.split(": ", 1)[1].split(" is ")[0] for each in ended.stdout.splitlines()}
    assert found == {
        "waves.network.known-peers[1]", "waves.network.known-peers[2]",
        "waves.network.known-peers[3]", "waves.features.supported[1]",
        "waves.features.supported[3]", "waves.miner.private-keys[0]", "waves.miner.private-keys[1]",
        "waves.rest-api.cors-headers.access-control-allow-methods[1]",
        "waves.rest-api.cors-headers.access-control-allow-methods[2]",
        "waves.rest-api.api-keys[0].hash", "waves.rest-api.api-keys[0].scopes[1]",
        "waves.rest-api.api-keys[0].scopes[2]", "waves.rest-api.api-keys[1]",
        "waves.dex.blacklisted-assets[1]", "waves.dex.blacklisted-assets[2]",
        "waves.dex.price-assets[0]", "waves.dex.rest-api.api-key-hashes[0]",
        "waves.dex.rest-api.api-key-hashes[1]", "waves.dex.allowed-order-versions[1]",
    }  # fmt: skip
    assert "0OIl" not in ended.stdout


@pytest.mark.parametrize(
    ("genesis", "keys"),
    [
        # Of what is missing, nothing follows.
        ("{ timestamp = 1, initial-balance = 0 }", ["average-block-delay", "initial-base-target"]),
        # A recipient that is none says nothing about the sum, an amount that is none does.
        (GENESIS.replace("3M4q", "3N4q"), ["transactions[0].recipient"]),
        (GENESIS.replace("amount = 100", "amount = x"), ["transactions[0].amount"]),
        (GENESIS.replace("initial-balance = 100", "initial-balance = 7"), ["initial-balance"]),
        (GENESIS.replace("= 10s", "= soon"), ["average-block-delay"]),
        ("= 5", [""]),
    ],
)
def test_check_tells_no_consequence_of_an_error(path: Path, genesis: str, keys: list[str]) -> None:
    code, found, notes = problems(path, genesis=genesis)
    prefix = "waves.blockchain.custom.genesis"
    assert [each.split(" is ")[0] for each in found] == [
        f"{prefix}.{key}" if key else prefix for key in keys
    ]
    assert (code, notes) == (1, [])


def test_check_of_addresses_without_the_character_of_their_chain(path: Path) -> None:
    problems(path)
    path.write_text(path.read_text().replace('"R"', '"RR"'))
    ended = run("config", "check", path)
    (line,) = ended.stdout.splitlines()
    assert "address-scheme-character is 'RR': expected one ASCII character" in line


def test_substitutions_refer_to_defaults_of_the_reference(path: Path, tmp_path: Path) -> None:
    path.write_text("""
        waves {
          blockchain.type = STAGENET
          network.file = ${waves.directory}"/peers.dat"
          network.known-peers = ${waves.network.known-peers} ["192.0.2.1:6868"]
          rest-api.port = ${waves.network.port}
          network.enable = no
          db.directory = ${waves.db.directory}"-too"
          utx.max-size = ${waves.utx.max-scripted-size}
          synchronization.utx-synchronizer { max-queue-size = 7 }
          synchronization.utx-synchronizer = ${waves.synchronization.utx-synchronizer}
          dex {
            account-storage.in-mem.seed-in-base-64 = "AAAA"
            data-directory = ${waves.dex.root-directory}"/dex"
            rest-api.port = ${waves.dex.rest-api.port}
            snapshots-interval = ${waves.dex.snapshots-interval}
            web-sockets.health-check = ${waves.dex.web-sockets.health-check}
          }
        }
    """)
    assert run("config", "check", path).returncode == 0
    found = explained("--config", path, "--data-dir", tmp_path / "data")
    here = Path.cwd()
    for key, expected in {
        "waves.network.file": f"{tmp_path}/data/peers.dat",
        "waves.network.known-peers": "[peers-stagenet.wavesnodes.com:6868, 192.0.2.1:6868]",
        "waves.rest-api.port": "6862",
        "waves.utx.max-size": "5000",
        "waves.synchronization.utx-synchronizer.max-queue-size": "7",
        "waves.synchronization.utx-synchronizer.network-tx-cache-size": "1000000",
        "waves.dex.data-directory": f"{here}/dex",
        "waves.dex.rest-api.port": "6886",
        "waves.dex.web-sockets.health-check.pong-timeout": "70s",
    }.items():
        assert found[key][0] == expected, key


@pytest.mark.parametrize("root", ["zbs", "TN", "soliton"])
def test_substitutions_below_other_roots(path: Path, root: str) -> None:
    path.write_text(f'{root} {{ network.file = ${{{root}.directory}}"/p", x = ${{{root}.y}} }}')
    ended = run("config", "check", path)
    assert f"${{{root}.y}} is neither in the file nor in the environment, and no default" in (
        ended.stdout + ended.stderr
    )
    path.write_text(f'{root} {{ network.file = ${{{root}.directory}}"/p" }}')
    assert run("config", "check", path).returncode == 0


def test_the_keys_of_the_reference_are_known(path: Path) -> None:
    defaults = (resources.files("soliton.node") / "reference_defaults.conf").read_text("utf-8")
    path.write_text(f"""{defaults}
        waves.directory = "{path.parent}"
        waves.blockchain {{ type = CUSTOM, custom.genesis {{ initial-balance = 0 }} }}
        waves.blockchain.custom.functionality.max-endorsements = 5
        waves.dex.account-storage.in-mem.seed-in-base-64 = "AAAA"
        waves.dex {{ address-scheme-character = C, lp-accounts.file-path = "" }}
        waves.dex.cli.ignore-unused-properties = []
    """)
    ended = run("config", "check", path)
    assert ended.returncode == 0, ended.stdout


def explained(*arguments: object) -> dict[str, tuple[str, str]]:
    """Value and origin of each setting."""
    ended = run("config", "explain", *arguments)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    return {
        key: (value, origin.strip().split("; ")[0])
        for (key, _, value), origin in zip(
            (line.partition(" = ") for line in lines[::2]), lines[1::2], strict=True
        )
    }


def test_explain_tells_where_everything_comes_from(path: Path, tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("waves.rest-api.workers = 2")
    path.write_text(
        'waves {\n  rest-api.blocks-request-limit = 7\n  wallet.password = "hush"\n}\n'
        'include "more.conf"\nsoliton.signer.port = 1\n'
        'waves.dex {\n account-storage.in-mem.seed-in-base-64 = "aHVzaA=="\n rest-api.port = 9 }'
    )
    found = explained("--config", path, "--network", "waves-stagenet", "--data-dir", tmp_path)
    for key, expected in {
        "waves.blockchain.type": ("waves-stagenet", "command line"),
        "waves.directory": (str(tmp_path), "command line"),
        "waves.db.directory": (str(tmp_path / "data"), "default"),
        "waves.rest-api.port": ("6869", "preset waves-stagenet"),
        "waves.rest-api.blocks-request-limit": ("7", f"{path}:2"),
        "waves.rest-api.workers": ("2", f"{tmp_path}/more.conf:1"),
        "waves.rest-api.cors": ("yes", "default"),
        "waves.miner.micro-block-interval": ("2s", "default"),
        "waves.wallet.password": ('"(not shown)"', f"{path}:3"),
        "waves.wallet.seed": ("none", "default"),
        "soliton.signer.port": ("1", f"{path}:6"),
        "waves.dex.rest-api.port": ("9", f"{path}:9"),
        "waves.dex.account-storage.in-mem.seed-in-base-64": ('"(not shown)"', f"{path}:8"),
    }.items():
        assert found[key] == expected
    assert "hush" not in str(found) and "aHVzaA" not in str(found)


def test_explain_of_some_keys() -> None:
    found = explained("miner.quorum", "wallet")
    assert set(found) == {
        "soliton.miner.quorum", "soliton.wallet.file", "soliton.wallet.password",
        "soliton.wallet.seed", "soliton.wallet.signer", "soliton.wallet.signer-key-file",
        "soliton.wallet.signer-authorities-file", "soliton.wallet.signer-certificate-file",
        "soliton.wallet.signer-certificate-key-file",
    }  # fmt: skip
    ended = run("config", "explain", "nothing")
    assert (ended.returncode, ended.stderr) == (1, "soliton: no setting is called nothing\n")


def test_meanings_are_those_of_the_reference() -> None:
    told = (resources.files("soliton.cli") / "meanings.toml").read_text(encoding="utf-8")
    assert tomllib.loads(told) == meanings(), "run: python -m tests.cli.meanings"
