"""The matcher service: an exchange on the chain.

What lives here: the single writer (``sequencer``), its journal, balances that follow the node,
settlement, and the interfaces on top. What does not: how orders are matched, what fees are taken
and which orders are refused (``soliton.matching``, pure).
"""
