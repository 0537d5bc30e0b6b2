"""Matching of orders: commands in, events out, deterministic.

What lives here: order books and the engine over all of them, arithmetic of executions, fees, the
rules that an order has to meet, reserved balances, candles, and the error table of a matcher. What
does not: journals, settlement on the chain, accounts of a node and HTTP (``soliton.matcher``); how
orders are written and signed (``soliton.chain.orders``).
"""
