"""The effective balance of an account whose block was challenged: 0 at the height of the challenge,
for scripts and clients alike (wavesplatform/Waves ``WavesEnvironment.scala``,
``CommonAccountsApi.scala``), and back above it. The generating balance stays 0 for the window.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from soliton.ledger.script_environment import LedgerEnvironment
from soliton.ledger.state import BANS, WAVES, effective_balance_at, is_banned_between
from tests.ledger.memory import MemoryState
from tests.node.chains import address_of, person

LIAR = address_of(person("liar"))
BANNED = 5


class Below:
    """A chain whose window still has no ban of the block that is being applied."""

    def generating_balance(self, address: bytes, height: int) -> int:
        return 70


def state_of() -> MemoryState:
    state = MemoryState()
    state.take({WAVES: {LIAR: 100}, BANS: {LIAR: (2, BANNED)}})
    return state


@pytest.mark.parametrize(
    ("height", "effective"), [(BANNED - 1, 100), (BANNED, 0), (BANNED + 1, 100)]
)
def test_scripts_and_clients_see_the_same(height: int, effective: int) -> None:
    state = state_of()
    assert effective_balance_at(state, LIAR, height) == effective
    block = SimpleNamespace(last_block=SimpleNamespace(height=height), below=Below())
    rules = SimpleNamespace(has=lambda _feature: True)
    context: Any = SimpleNamespace(witness=None, rules=rules, block=block, height=height)
    details = LedgerEnvironment(state, state, context, b"").balance_details(LIAR)
    assert (details.regular, details.available, details.effective) == (100, 100, effective)
    assert details.generating == (70 if effective else 0)


@pytest.mark.parametrize(
    ("bottom", "top", "banned"),
    [(1, 1, False), (1, 2, True), (2, 2, True), (3, 4, False), (3, 5, True), (6, 1_000, False)],
)
def test_windows(bottom: int, top: int, banned: bool) -> None:
    assert is_banned_between(state_of(), LIAR, bottom, top) is banned
