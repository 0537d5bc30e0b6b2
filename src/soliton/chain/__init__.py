"""What things on a chain are and how they are written: values and formats, no state.

Addresses, transactions (one module a type), blocks, networks. What does not live here: what a
transaction does (``soliton.ledger``), who may make a block (``soliton.consensus``).
"""
