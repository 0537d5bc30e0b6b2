"""The ecosystem's data service, ``/v0``: assets, aliases, pairs, candles, rates and transactions,
read from the tables of the export.

Start with ``app`` (which path leads where).
"""
