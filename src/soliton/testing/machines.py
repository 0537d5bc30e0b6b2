"""State machines of hypothesis on a chain.

What lives here: the class that isolates each run. What does not: the rules, which users write. Only
this module needs hypothesis.
"""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis.stateful import RuleBasedStateMachine

from soliton.testing.frames import FRAMES


class ChainMachine(RuleBasedStateMachine):
    """A ``RuleBasedStateMachine`` with a ``kit``; each run starts with the same chain."""

    def __init__(self) -> None:
        super().__init__()
        self.kit = FRAMES.need()
        self.node, self.chain = self.kit.node, self.kit.chain
        self._frames = ExitStack()
        self._frames.enter_context(FRAMES.frame())

    def teardown(self) -> None:
        """Revert the chain; an overriding ``teardown`` calls this one at its end."""
        self._frames.close()
        super().teardown()
