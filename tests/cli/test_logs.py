"""The log: its lines as programs write them, of all their processes."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from soliton.cli import logs
from soliton.node.settings import SettingsError, load_settings
from tests.e2e.programs import Program, call, devnet, eventually, run, signed_transfer, started

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def objects(program: Program) -> list[dict[str, Any]]:
    """The lines of the log that are JSON."""
    return [json.loads(line) for line in program.output.splitlines() if line.startswith("{")]


def test_a_message_is_one_line() -> None:
    """A script, or a peer, may have chosen its words."""
    words = "no\n2026-11-24T00:00:00.000Z ERROR soliton.cli.run: all is lost\x1b[2J"
    record = logging.LogRecord("a", logging.INFO, "b", 1, "refused: %s", (words,), None)
    (line,) = logs._TextLines().format(record).splitlines()
    assert line.endswith(
        " INFO a: refused: " + words.replace("\n", "\ufffd").replace("\x1b", "\ufffd")
    )


@pytest.mark.slow
def test_json_of_all_processes() -> None:
    zone = {"TZ": "Asia/Kolkata"}
    options = ("--workers", 1, "--log-format", "json", "--log-level", "soliton.node=debug")
    with devnet(*options, environment=zone) as program:
        sent = signed_transfer(program.node_url, RICH, RICH, 1)
        assert call(f"{program.node_url}/transactions/broadcast", sent).status == 200
        eventually(lambda: "with 1 transactions" in program.output, "the block in the log")
        banner = program.output.index("Ready. Ctrl-C stops.")
        assert banner
    found = objects(program)
    (block,) = [each for each in found if each["message"] == "block 3 with 1 transactions"]
    assert (block["level"], block["logger"]) == ("info", "soliton.node.mining")
    written = dt.datetime.fromisoformat(block["time"])
    assert abs(dt.datetime.now(dt.UTC) - written) < dt.timedelta(minutes=10)
    for each in found:
        assert UTC.fullmatch(each["time"])
        assert set(each) <= {"time", "level", "logger", "message", "process", "exception"}


@pytest.mark.slow
def test_settings_choose_format_levels_and_heartbeat(tmp_path: Path) -> None:
    path = tmp_path / "node.conf"
    path.write_text(f"""
        waves {{ directory = "{tmp_path}", rest-api.port = 0 }}
        soliton.logging {{
          level = warning, heartbeat = 50ms
          levels {{ soliton.cli.run = info }}
        }}""")
    with started("run", "--config", path, until="alive: height 1, the last") as program:
        assert "s old, 0 transactions wait" in program.output
        assert "no mining" in program.output
    lines = [line for line in program.output.splitlines() if not line.startswith(" ")]
    for line in lines:
        assert UTC.match(line), line
    assert "stopped at height" not in program.output, "it is said by soliton.node.node, at info"


def test_command_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "node.conf"
    path.write_text(f"""
        waves {{ directory = "{tmp_path}", rest-api.port = 0, max-tx-error-log-size = 1 }}
        soliton.logging {{ level = error, format = json }}""")
    options = ("--config", path, "--log-level", "warning", "--log-format", "text")
    with started("run", *options, until="max-tx-error-log-size has no effect") as program:
        assert "{" not in program.output.splitlines()[0]


def test_wrong_levels(tmp_path: Path) -> None:
    ended = run("devnet", "--log-level", "loud")
    assert ended.returncode == 2 and "loud is none of debug, info" in ended.stderr
    path = tmp_path / "node.conf"
    for text, key in (
        ("level = loud", "level"), ("format = xml", "format"), ("levels { a.b = no }", "levels.a.b")
    ):  # fmt: skip
        path.write_text(f"soliton.logging {{ {text} }}")
        with pytest.raises(SettingsError, match=rf"soliton\.logging\.{key} is '"):
            load_settings(path)
