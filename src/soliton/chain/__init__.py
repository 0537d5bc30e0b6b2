"""The values and formats of a chain, without state: addresses, transactions (one module per type),
blocks, networks.

What does not live here: the effects of a transaction (``soliton.ledger``), who may make a block
(``soliton.consensus``).
"""
