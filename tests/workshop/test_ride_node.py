"""``soliton ride deploy``, ``invoke``, ``trace``, ``debug`` against a devnet of its own."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soliton import Node
from soliton.cli.main import cli
from soliton.cli.node_options import WouldBeRefused
from soliton.client.errors import NodeRefused, NotFound, ScriptRefused
from soliton.devnet.accounts import MAX_ACCOUNTS, account_seed_phrase, describe
from soliton.errors import SolitonError
from soliton.ride.compiler import compile_source
from soliton.workshop.calls import read_call
from tests.e2e.programs import Program, devnet

pytestmark = pytest.mark.slow

POOL = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# IMPORT share.ride #-}

@Callable(i)
func grab (amount: Int, reserve: Int) = {
  let part = share(amount, reserve)
  ([IntegerEntry("part", part)], part)
}
"""
SHARE = "{-# CONTENT_TYPE LIBRARY #-}\nfunc share (amount: Int, of: Int) =\n  amount / of\n"
FRONT = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

@Callable(i)
func trade (pool: String, amount: Int) = {
  strict got = addressFromStringValue(pool).invoke("grab", [amount, amount - 7], i.payments)
  [BooleanEntry("done", true)]
}
"""


@pytest.fixture(scope="module")
def chain() -> Iterator[Program]:
    with devnet() as program:
        yield program


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("pool", POOL), ("share", SHARE), ("front", FRONT)):
        (tmp_path / f"{name}.ride").write_text(text)
    return tmp_path


def ride(chain: Program, *arguments: object, input_text: str = "") -> Result:
    words = ["ride", *map(str, arguments), "--node", chain.node_url]
    return CliRunner().invoke(cli, words, input=input_text)


def address(number: int) -> str:
    return describe(account_seed_phrase(number), ord("R")).address


def deployed(chain: Program, files: Path, *options: str) -> None:
    for number, name in ((1, "pool"), (2, "front")):
        answer = ride(chain, "deploy", files / f"{name}.ride", "--account", number, *options)
        assert answer.exit_code == 0, answer.output
        assert answer.output.startswith(f"{address(number)} has {files / name}.ride: ")


@pytest.mark.parametrize("options", [(), ("--compact", "--remove-unused")])
def test_deploy_call_and_trace(chain: Program, files: Path, options: tuple[str, ...]) -> None:
    deployed(chain, files, *options)
    call = f'trade("{address(1)}", 9)'
    tried = ride(chain, "invoke", address(2), call, "--account", 3, "--dry-run")
    assert "would be taken" in tried.output and "key done" in tried.output
    sent = ride(chain, "invoke", address(2), call, "--account", 3, "--payment", "5 wavelets")
    assert sent.exit_code == 0 and ": succeeded" in sent.output, sent.output
    name = sent.output.split()[1]
    traced = ride(chain, "trace", name).output
    assert f"  {address(2)} trade({address(1)}, 9) + 5 coin" in traced
    assert f"    {address(1)} grab(9, 2) + 5 coin" in traced
    assert "front.ride:7:16" in traced
    assert "share.ride:3:3" not in traced and "pool.ride:8:14: share(amount, reserve) = 4" in traced


def test_every_account_that_a_devnet_may_have_can_sign(chain: Program) -> None:
    words = ("invoke", address(9), "buy()", "--dry-run", "--account")
    assert isinstance(ride(chain, *words, MAX_ACCOUNTS).exception, WouldBeRefused)
    assert ride(chain, *words, MAX_ACCOUNTS + 1).exit_code == 2


def test_a_refusal_names_lines_of_both_dapps(chain: Program, files: Path) -> None:
    deployed(chain, files)
    call = f'trade("{address(1)}", 7)'
    refused = ride(chain, "invoke", address(2), call, "--account", 3)
    assert isinstance(refused.exception, ScriptRefused)
    lines = [line.strip() for line in refused.output.splitlines()]
    assert lines[0] == "/ by zero"
    assert "at share.ride:3:3 in share: amount / of" in lines
    assert "called at pool.ride:8:14 in grab: share(amount, reserve)" in lines
    assert any(line.startswith("called at front.ride:7:16 in trade: ") for line in lines)
    assert "of = 0" in lines
    tried = ride(chain, "invoke", address(2), call, "--account", 3, "--dry-run")
    assert tried.output == refused.output


def test_sources_at_hand_are_found_by_what_they_compile_to(chain: Program, files: Path) -> None:
    """A devnet that was told nothing, as any other node, has decompiled lines; the command has the
    files.
    """
    deployed(chain, files)
    (files / "share.ride").write_text("# a line more\n" + SHARE)
    (files / "pool.ride").write_text(POOL.replace("@Callable", "# another one\n@Callable"))
    call = f'trade("{address(1)}", 7)'
    sources = [word for name in ("front", "pool") for word in ("--source", files / f"{name}.ride")]
    refused = ride(chain, "invoke", address(2), call, "--account", 3, *sources)
    assert "at share.ride:4:3 in share: amount / of" in refused.output
    assert "pool.ride:9:14 in grab" in refused.output


def test_debug_a_call_and_a_transaction(chain: Program, files: Path) -> None:
    deployed(chain, files)
    call = f'trade("{address(1)}", 7)'
    debugged = ride(
        chain, "debug", address(2), call, "--account", 3, input_text="r\nbi\nw\nv\nbr\nq\n"
    )
    text = debugged.output
    assert "refused: Error while executing dApp: / by zero. h is help." in text
    assert "[end] refused" in text and "share.ride:3:3 in share: amount / of" in text
    assert "(ride) w\n" in text
    assert "front.ride:7:16" in text.split("(ride) w\n")[1]
    assert "    of = 0" in text.split("(ride) v\n")[1]
    assert text.rstrip().endswith("(ride) q")
    sent = ride(chain, "invoke", address(2), f'trade("{address(1)}", 9)', "--account", 3)
    past = ride(chain, "debug", sent.output.split()[1], input_text="b share\nr\nv\n")
    assert "it ends well" in past.output and "share at share.ride:3:3" in past.output
    assert "    of = 2" in past.output


def test_who_cannot_be_served_is_told_why(chain: Program, files: Path) -> None:
    source = files / "front.ride"
    for arguments, words in (
        (("deploy", source), "who signs?"),
        (("deploy", source, "--account", 1, "--key", "x"), "one of: --key, --account"),
        (("invoke", address(9), "f()", "--account", 1), "address"),
        (("invoke", address(2), "f(", "--account", 1), "the call: "),
        (("invoke", address(2), "1 + 1", "--account", 1), "a call is written"),
        (("invoke", address(2), "f(height)", "--account", 1), "no chain"),
        (("invoke", address(2), "f(unit)", "--account", 1), "arguments are"),
        (("invoke", address(2), "f", "--account", 1, "--payment", "x"), "not a number"),
        (("invoke", "no such alias, certainly not one", "f", "--account", 1), "base58"),
        (("trace", "nonsense"), "invalid length"),
        (("debug", "1" * 32), "no such transaction"),
    ):
        answer = ride(chain, *arguments)
        assert answer.exit_code != 0, arguments
        assert isinstance(answer.exception, SolitonError), (arguments, answer.exception)
        assert words in str(answer.exception), (arguments, str(answer.exception))
    (files / "wrong.ride").write_text(POOL + "\nlet x = 1\n")
    wrong = ride(chain, "deploy", files / "wrong.ride", "--account", 1)
    assert f"{files}/wrong.ride:" in str(wrong.exception)
    (files / "share.ride").write_text(SHARE + "func g () = nothing\n")
    wrong = ride(chain, "deploy", files / "pool.ride", "--account", 1)
    assert f"{files}/share.ride:4:13: " in str(wrong.exception)


def test_the_route_refuses_what_is_no_request(chain: Program) -> None:
    with Node(chain.node_url) as node:
        for path, body in (
            ("/devnet/record", {}),
            ("/devnet/record", {"id": "x", "transaction": {}}),
            ("/devnet/record", {"id": "1" * 32}),
            ("/devnet/record", {"transaction": {"type": 4}}),
            ("/devnet/sources", {"script": 1, "source": "x"}),
            ("/devnet/sources", {"script": "AAAA", "source": "x"}),
        ):
            with pytest.raises(NodeRefused):
                node.post_json(path, body)
        script = compile_source("{-# STDLIB_VERSION 6 #-}\ntrue").script.source
        body = {"script": base64.b64encode(script).decode(), "source": "true && x"}
        assert node.post_json("/devnet/sources", body) == {"done": False}
        with pytest.raises(NotFound):
            node.get_json("/transactions/info/" + "1" * 32)


def test_calls_are_written_as_the_language_writes_them() -> None:
    call = read_call("buy(7, -1, \"x\", [true, false], base58'2', 2 + 3)")
    assert call.function == "buy"
    assert call.args == (7, -1, "x", (True, False), b"\x01", 5)
    assert read_call("default") == read_call("default()")


def test_the_repl_sees_the_chain_of_a_node(chain: Program, files: Path) -> None:
    deployed(chain, files)
    call = f'trade("{address(1)}", 9)'
    assert ride(chain, "invoke", address(2), call, "--account", 3).exit_code == 0
    with Node(chain.node_url) as node:
        # An asset of account 3, and an alias: what the node says of them is what scripts see.
        height = node.height()
        coins = node.balance(address(1))
        header = node.header_at(height)
    asked = {
        "height": f"Int = {height} ",
        'getIntegerValue(this, "part")': "Int = 4 ",
        'getInteger(this, "nothing")': "Int|Unit = Unit",
        "isDataStorageUntouched(this)": "Boolean = false",
        "wavesBalance(this).regular": f"Int = {coins} ",
        "assetBalance(this, base58'11111111111111111111111111111111')": "Int = 0 ",
        "lastBlock.height": f"Int = {height} ",
        "lastBlock.timestamp": f"Int = {header.timestamp} ",
        f"blockInfoByHeight({height}).value().generator.toString()": header.generator,
        "blockInfoByHeight(1000000)": "BlockInfo|Unit = Unit",
        "assetInfo(base58'11111111111111111111111111111111')": "Asset|Unit = Unit",
        'addressFromRecipient(Alias("nobody-has-this"))': "lias",
        "transactionHeightById(base58'11111111111111111111111111111111')": "Int|Unit = Unit",
        "scriptHash(this).value().size()": "Int = 32 ",
        "this.toString()": address(1),
        'this.invoke("f", [], [])': "is not available from a node over REST",
        "transferTransactionById(base58'')": "is not available from a node over REST",
    }
    typed = "\n".join(asked)
    answers = ride(chain, "repl", "--as", address(1), input_text=typed).output.splitlines()
    shown = [line for line in answers if not line.startswith("  ")]
    assert len(shown) == len(asked), answers
    for (expression, expected), answer in zip(asked.items(), shown, strict=True):
        assert expected in answer, expression
