"""``soliton devnet`` as a user runs it: up, mining, kept or gone, killed, stopped."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from soliton import Account, Transaction
from soliton.devnet.accounts import RICH_SEED, funded_accounts
from tests.amounts import some
from tests.e2e.programs import (
    API_KEY,
    WAIT_SECONDS,
    Program,
    balance,
    call,
    devnet,
    eventually,
    height,
    is_mined,
    run,
    signed_transfer,
    started,
)
from tests.ports import free_port

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
ACCOUNTS = funded_accounts(ord("R"))
FUNDS = 1_000_000 * 10**8
COIN = 10**8

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chain() -> Iterator[Program]:
    """One that mines at once, for the tests that leave it running; others find it by its command
    line.
    """
    with devnet(anew=True) as program:
        yield program


def send(url: str, recipient: str, amount: int, **members: object) -> str:
    """Sign with the rich account and broadcast: the id."""
    signed = signed_transfer(url, RICH, recipient, amount, **members)
    answer = call(f"{url}/transactions/broadcast", signed)
    assert answer.status == 200, answer.body
    name: str = answer.json()["id"]
    return name


def mined(url: str, name: str) -> None:
    eventually(lambda: is_mined(url, name), f"transaction {name} in a block")


def temporary_directory(program: Program) -> Path:
    found = re.search(r"^ +data +(\S+)$", program.output, re.MULTILINE)
    assert found
    return Path(found[1])


def test_banner_tells_urls_keys_and_accounts(chain: Program) -> None:
    banner = chain.output
    assert "chain id      R (82)" in banner
    assert "a block for each transaction" in banner
    assert f"X-API-Key     {API_KEY}" in banner
    assert f'{RICH}  seed "{RICH_SEED}"' in banner
    assert len(ACCOUNTS) == 10
    for account in ACCOUNTS:
        assert f'{account.address}  seed "{account.seed}"' in banner
        assert f"public key {account.public_key}  private key {account.private_key}" in banner
    assert call(f"{chain.node_url}/node/version").status == 200
    assert call(f"{chain.signer_url}/").status == 200


def test_accounts_are_funded_and_the_last_block_is_of_today(chain: Program) -> None:
    for account in ACCOUNTS:
        assert balance(chain.node_url, account.address) >= FUNDS
    last = call(f"{chain.node_url}/blocks/headers/last").json()
    assert last["height"] >= 2
    assert last["version"] == 5
    assert last["timestamp"] > 1_700_000_000_000


def test_image_of_the_ecosystem_can_be_replaced(chain: Program) -> None:
    """What its users rely on: key, chain id, rich account with its seed in the wallet."""
    assert call(f"{chain.node_url}/addresses").json()[0] == RICH
    seed = call(f"{chain.node_url}/wallet/seed", key=API_KEY)
    assert seed.status == 200
    assert call(f"{chain.node_url}/wallet/seed", key="other").status == 403


def test_each_transaction_is_mined_at_once(chain: Program) -> None:
    url, to = chain.node_url, ACCOUNTS[0].address
    before = balance(url, to)
    for number in range(1, 6):
        top = height(url)
        mined(url, send(url, to, number * COIN))
        assert height(url) == top + 1
    assert balance(url, to) == before + 15 * COIN


def test_every_account_signs_with_the_wallet(chain: Program) -> None:
    url = chain.node_url
    assert call(f"{url}/addresses").json()[1:11] == [each.address for each in ACCOUNTS]
    for account in ACCOUNTS:
        signed = signed_transfer(url, account.address, RICH, COIN)
        assert signed["senderPublicKey"] == account.public_key
        answer = call(f"{url}/transactions/broadcast", signed)
        assert answer.status == 200, answer.body
        mined(url, answer.json()["id"])
    new = call(f"{url}/addresses", "", key=API_KEY).json()["address"]
    assert new not in {RICH, *(each.address for each in ACCOUNTS)}


def test_blocks_come_without_transactions_for_those_who_count_confirmations() -> None:
    with devnet(heartbeat=0.3) as program:
        assert "a block for each transaction, and after 0.3 s without one" in program.output
        url = program.node_url
        mined(url, send(url, RICH, COIN))
        top = height(url)
        eventually(lambda: height(url) >= top + 3, "three blocks after that of the transaction")


def test_heartbeat_is_on_unless_it_is_switched_off() -> None:
    with devnet(heartbeat=None) as program:
        assert "after 10 s without one" in program.output


def test_transactions_that_come_before_it_is_ready_are_mined() -> None:
    """Nothing else comes after it, so a transaction that is passed over would wait for ever."""
    # A busy machine may let the program be ready before it lets the test go on.
    assert any(is_sent_early() for _ in range(10)), "no node answered before it was ready"


def is_sent_early() -> bool:
    port = free_port()
    ports = ("--port", port, "--signer-port", 0, "--matcher-port", 0)
    url = f"http://127.0.0.1:{port}"
    payment = Account.from_seed(RICH_SEED, "R").transfer(ACCOUNTS[0].address, COIN)
    # A new process imports the signer and the matcher after the node listens.
    program = Program(("devnet", *ports, "--heartbeat", 0), {}, anew=True)
    try:
        limit = time.monotonic() + WAIT_SECONDS
        while not is_accepted(url, payment):
            assert time.monotonic() < limit, program.output
        early = "Ready." not in program.output
        program.wait_for("Ready.")
        mined(url, payment.id)
        return early
    finally:
        program.close()


def is_accepted(url: str, transaction: Transaction) -> bool:
    try:
        return call(f"{url}/transactions/broadcast", transaction.to_json()).status == 200
    except OSError:
        return False


def test_no_blocks_without_transactions(chain: Program) -> None:
    top = height(chain.node_url)
    for _ in range(20):
        assert height(chain.node_url) == top


def test_transactions_that_come_together_are_all_mined(chain: Program) -> None:
    url, to = chain.node_url, ACCOUNTS[1].address
    before = balance(url, to)
    signed = [signed_transfer(url, RICH, to, COIN + number) for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda each: call(f"{url}/transactions/broadcast", each), signed))
    assert {answer.status for answer in answers} == {200}
    for each in signed:
        mined(url, each["id"])
    assert balance(url, to) == before + sum(COIN + number for number in range(100))


def test_refused_transactions_do_not_end_it(chain: Program) -> None:
    url, poor = chain.node_url, call(f"{chain.node_url}/addresses", "", key=API_KEY).json()
    signed = signed_transfer(url, poor["address"], RICH, COIN)
    refused = call(f"{url}/transactions/broadcast", signed)
    assert refused.status == 400
    assert refused.json()["error"] == 112
    bad: list[object] = [[], {}, {"type": 4}, signed | {"amount": -1}, signed | {"proofs": ["1"]}]
    for body in bad:
        assert call(f"{url}/transactions/broadcast", body).status == 400
    mined(url, send(url, RICH, COIN))


def test_signer_writes_to_the_chain(chain: Program) -> None:
    entries = [{"key": "number", "value": 1}, {"key": "bytes", "value": [0, 255]}]
    answer = call(f"{chain.signer_url}/data", {"seed": ACCOUNTS[2].seed, "data": entries})
    assert answer.status == 200, answer.body
    mined(chain.node_url, answer.json()["id"])
    found = call(f"{chain.node_url}/addresses/data/{ACCOUNTS[2].address}").json()
    assert {entry["key"]: entry["value"] for entry in found} == {
        "number": 1,
        "bytes": "base64:AP8=",
    }


def test_two_at_once_do_not_touch_each_other(chain: Program) -> None:
    with devnet() as other:
        assert other.node_url != chain.node_url
        before = balance(chain.node_url, ACCOUNTS[3].address)
        mined(other.node_url, send(other.node_url, ACCOUNTS[3].address, 7 * COIN))
        assert balance(other.node_url, ACCOUNTS[3].address) == FUNDS + 7 * COIN
        assert balance(chain.node_url, ACCOUNTS[3].address) == before


def test_the_matcher_answers(chain: Program) -> None:
    match = re.search(r"matcher +(http://\S+)", chain.output)
    assert match is not None
    assert call(f"{match[1]}/matcher").json() == ACCOUNTS[9].public_key
    assert call(f"{match[1]}/matcher/settings").json()["orderVersions"] == [1, 2, 3, 4]


def test_chosen_ports_are_taken() -> None:
    port, signer_port = free_port(), free_port()
    options = ("devnet", "--port", port, "--signer-port", signer_port, "--matcher-port", 0)
    with started(*options, until="Ready.") as program:
        assert program.node_url == f"http://127.0.0.1:{port}"
        assert program.signer_url == f"http://127.0.0.1:{signer_port}"
        assert height(program.node_url) == 2


@pytest.mark.parametrize("which", ["node", "signer", "matcher"])
def test_port_in_use_is_told(chain: Program, which: str) -> None:
    match = re.search(rf"{which} +http://\S+:(\d+)", chain.output)
    assert match is not None
    taken = match[1]
    options = {"node": "--port", "signer": "--signer-port", "matcher": "--matcher-port"}
    ports = [
        each for part, name in options.items() for each in (name, taken if part == which else 0)
    ]
    ended = run("devnet", *ports)
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("soliton: cannot listen on 127.0.0.1: Address already in use: ")
    assert f"{options[which]} {taken} by process {chain.process.pid} (soliton devnet" in line
    assert line.endswith("take free ones with --port 0 --signer-port 0 --matcher-port 0")


def test_all_ports_in_use_are_told_at_once(chain: Program) -> None:
    ports = re.findall(r"(?:node|signer|matcher) +http://\S+:(\d+)", chain.output)
    options = ("--port", "--signer-port", "--matcher-port")
    taken = list(zip(options, ports, strict=True))
    ended = run("devnet", *(word for each in taken for word in each))
    assert ended.returncode == 1
    for option, port in taken:
        assert f"{option} {port} by process" in ended.stderr


def test_what_killed_devnets_left_is_swept(tmp_path: Path) -> None:
    """And nothing else: not what others use, nor what is not of this making."""
    place = {"TMPDIR": str(tmp_path)}
    foreign = tmp_path / "soliton-devnet-notes"
    foreign.mkdir()
    (foreign / "todo.txt").write_text("keep")
    with devnet("--workers", 1, environment=place) as living:
        with devnet("--workers", 1, environment=place) as program:
            left = temporary_directory(program)
            program.kill()
        assert left.is_dir()
        before = {each.name for each in tmp_path.iterdir()}
        with devnet("--workers", 1, environment=place) as program:
            assert not left.exists()
            assert temporary_directory(living).is_dir()
            assert height(living.node_url) == height(program.node_url) == 2
            now = {each.name for each in tmp_path.iterdir()}
            assert len([name for name in now if name.startswith("soliton-workers-")]) == 2
            assert len(before) >= 4
    assert [each.name for each in tmp_path.iterdir()] == [foreign.name]
    assert (foreign / "todo.txt").read_text() == "keep"


@pytest.mark.parametrize("options", [(), ("--workers", 2)])
@pytest.mark.parametrize("seconds", some([0.4, 0.8, 1.2, 1.6, 2.0], 3))
def test_ctrl_c_at_the_start_prints_no_traceback(
    options: tuple[object, ...], seconds: float, tmp_path: Path
) -> None:
    """It goes to all processes of the terminal, also to those that have just begun."""
    ports = ("--port", 0, "--signer-port", 0, "--matcher-port", 0)
    arguments = ("devnet", *ports, *options)
    program = Program(arguments, {"TMPDIR": str(tmp_path)}, start_new_session=True, anew=True)
    try:
        time.sleep(seconds)
        os.killpg(program.process.pid, signal.SIGINT)
        program.wait()
    finally:
        program.close()
    # Python itself may still be starting, and has its own way then.
    if "Traceback" in program.output:
        assert "soliton/" not in program.output.replace("bin/soliton", ""), program.output
        assert "multiprocessing" not in program.output, program.output


@pytest.mark.parametrize("way", ["Ctrl-C", "SIGTERM", "SIGHUP", "/node/stop"])
def test_ends_cleanly_and_leaves_nothing(way: str, tmp_path: Path) -> None:
    with devnet(environment={"TMPDIR": str(tmp_path)}) as program:
        directory = temporary_directory(program)
        assert directory.parent == tmp_path and directory.is_dir()
        mined(program.node_url, send(program.node_url, RICH, COIN))
        if way == "/node/stop":
            assert call(f"{program.node_url}/node/stop", "", key="wrong").status == 403
            answer = call(f"{program.node_url}/node/stop", "", key=API_KEY)
            assert answer.json() == {"stopped": True}
        else:
            program.send(signal.SIGINT if way == "Ctrl-C" else signal.Signals[way])
        assert program.wait() == 0
        assert "Traceback" not in program.output
    assert list(tmp_path.iterdir()) == []


def test_kept_chain_goes_on(tmp_path: Path) -> None:
    kept, to = tmp_path / "chain", ACCOUNTS[4].address
    with devnet("--data-dir", kept) as program:
        name = send(program.node_url, to, 3 * COIN)
        mined(program.node_url, name)
        top = call(f"{program.node_url}/blocks/headers/last").json()
        program.send(signal.SIGINT)
        assert program.wait() == 0
    with devnet("--data-dir", kept) as program:
        assert call(f"{program.node_url}/blocks/headers/last").json() == top
        assert balance(program.node_url, to) == FUNDS + 3 * COIN
        assert is_mined(program.node_url, name)
        mined(program.node_url, send(program.node_url, to, COIN))
        assert height(program.node_url) == top["height"] + 1


def test_killed_in_the_middle_of_work_it_starts_at_a_block(tmp_path: Path) -> None:
    """The chain after a kill is one that it had before: everything below its top is sound."""
    kept, to = tmp_path / "chain", ACCOUNTS[5].address
    answered: list[str] = []
    with devnet("--data-dir", kept) as program:
        url = program.node_url
        signed = [signed_transfer(url, RICH, to, COIN + number) for number in range(200)]

        def broadcast(transaction: dict[str, str]) -> None:
            try:
                if call(f"{url}/transactions/broadcast", transaction).status == 200:
                    answered.append(transaction["id"])
            except OSError:
                return

        with ThreadPoolExecutor(4) as pool:
            sending = [pool.submit(broadcast, each) for each in signed]
            eventually(lambda: len(answered) >= 60, "60 accepted transactions")
            program.kill()
            for future in sending:
                future.result()
    with devnet("--data-dir", kept) as program:
        url = program.node_url
        names = {each["id"]: each["amount"] for each in signed}
        blocks = call(f"{url}/blocks/seq/1/{height(url)}").json()
        found = [tx["id"] for block in blocks for tx in block["transactions"] if "id" in tx]
        sent = [name for name in found if name in names]
        assert 0 < len(sent) < 200
        assert balance(url, to) == FUNDS + sum(names[name] for name in sent)
        for below, block in pairwise(blocks):
            assert block["reference"] == below["id"]
        mined(url, send(url, to, COIN))


def test_blocks_in_a_rhythm() -> None:
    with devnet("--block-time", "0.3") as program:
        url = program.node_url
        assert "a block every 0.3 s" in program.output
        top = height(url)
        eventually(lambda: height(url) >= top + 4, "four more blocks")
        headers = call(f"{url}/blocks/headers/seq/{top + 1}/{top + 4}").json()
        times = [header["timestamp"] for header in headers]
        gaps = [after - before for before, after in pairwise(times)]
        # On a busy machine single blocks are late, but none comes early twice in a row.
        assert sum(gaps) >= 2 * 300
        name = send(url, RICH, COIN)
        mined(url, name)


def test_other_chain_in_the_directory_is_told(tmp_path: Path, shared: Path) -> None:
    blocks = shared / "data" / "waves-mainnet-blocks-2-10000.bin"
    place = ("--data-dir", tmp_path)
    imported = run("import", blocks, "--network", "waves-mainnet", *place, "--to-height", 10)
    assert imported.returncode == 0
    ended = run("devnet", *place, "--port", 0, "--signer-port", 0, "--matcher-port", 0)
    assert ended.returncode == 1
    assert "holds the chain waves-mainnet, not devnet" in ended.stderr
