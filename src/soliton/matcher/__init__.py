"""The matcher service: an exchange on the chain.

What lives here: the single writer (``sequencer``), its journal, balances that follow the node,
settlement, and the interfaces on top. What does not: matching, fees and the validation of orders
(``soliton.matching``, which is pure).
"""
