"""The ecosystem's data service, ``/v0``: assets, aliases, pairs, candles, rates and transactions,
from the tables of the export.

Start with ``app`` (the routes).
"""
