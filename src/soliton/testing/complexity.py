"""Complexity of dApp calls: collected while tests run, reported at their end.

What lives here: collecting, merging the results of processes, and the table. What does not: the
hooks (``plugin``), and estimated complexities (``Dapp.complexities``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from soliton.chain.addresses import Address, address_text
from soliton.chain.function_calls import DEFAULT_FUNCTION
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.node.events import BlockAppended, NodeEvent
from soliton.testing.local import LocalChain

LIMIT: Final = 52_000
"""The limit on the complexity of a call, nested calls included."""

Row: TypeAlias = list[int]
"""The number of calls; the minimum, the sum and the maximum of their complexities."""


class Complexities:
    """Statistics by dApp and function."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def watch(self, local: LocalChain, names: Mapping[Address, str]) -> None:
        """Collect the calls on a chain."""
        texts = {}

        def notice(event: NodeEvent) -> None:
            if not isinstance(event, BlockAppended):
                return
            for each in event.block.transactions:
                found = local.node.chain.transaction(each.id)
                if found is not None and found.complexity:
                    texts.update({address_text(key): name for key, name in names.items()})
                    self.add(_called(each, texts), found.complexity)

        local.node.events.subscribe(notice)

    def add(self, name: str, complexity: int) -> None:
        """Add a call."""
        self.merge({name: [1, complexity, complexity, complexity]})

    def merge(self, rows: Mapping[str, Row]) -> None:
        """Add the statistics of another process."""
        for name, (count, least, total, most) in rows.items():
            known = self.rows.get(name)
            if known is None:
                self.rows[name] = [count, least, total, most]
            else:
                known[:] = [
                    known[0] + count,
                    min(known[1], least),
                    known[2] + total,
                    max(known[3], most),
                ]

    def table(self) -> list[str]:
        """Lines for a terminal, the most expensive calls first."""
        width = max((len(name) for name in self.rows), default=0)
        lines = [f"{'':{width}}  calls    least     mean     most  of the limit"]
        ordered = sorted(self.rows.items(), key=lambda row: (-row[1][3], row[0]))
        for name, (count, least, total, most) in ordered:
            mean, share = total // count, most / LIMIT
            lines.append(f"{name:{width}}  {count:5}  {least:7}  {mean:7}  {most:7}  {share:12.1%}")
        return lines


def _called(transaction: AnyTransaction, names: Mapping[str, str]) -> str:
    members = codec.to_json(transaction)
    if "dApp" not in members:
        return f"scripts of a transaction of type {transaction.type_id}"
    dapp = str(members["dApp"])
    call = members.get("call") or {"function": DEFAULT_FUNCTION}
    return f"{names.get(dapp, dapp)}.{call['function']}"
