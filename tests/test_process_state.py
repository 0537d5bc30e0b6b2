"""The order of files of tests does not matter: what a command leaves in the process goes."""

from __future__ import annotations

import decimal
import logging
import signal
import threading

import pytest
from click.testing import CliRunner

from soliton.cli.logs import current_log
from soliton.cli.main import cli
from soliton.matcher.log_throttle import throttled
from tests import process_state


def test_what_commands_leave_goes() -> None:
    log = logging.getLogger("soliton.node.known_features")
    options = ["--log-level", "error", "--log-level", "soliton.node=debug"]
    assert CliRunner().invoke(cli, [*options, "ride", "format", "--help"]).exit_code == 0
    assert current_log().level == "error"
    assert logging.root.level == logging.ERROR
    logging.disable(logging.CRITICAL)
    throttled(log).propagate = False
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    decimal.getcontext().rounding = decimal.ROUND_HALF_UP
    process_state.restore()
    assert log.getEffectiveLevel() == logging.root.level == logging.WARNING
    assert log.isEnabledFor(logging.WARNING)
    assert log.propagate and not log.filters
    assert not [each for each in logging.root.handlers if process_state.is_ours(each)]
    assert current_log().level == "info" and not current_log().levels
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
    assert decimal.getcontext().rounding == decimal.ROUND_HALF_EVEN


def test_threads_of_tests_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def wait() -> None:
        ended.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    monkeypatch.setattr(process_state, "WAIT_SECONDS", 0.0)
    assert process_state.running() == [thread.name]
    ended.set()
    thread.join()
    assert process_state.running() == []
