"""The Python client library: accounts, transactions, and clients of nodes, matchers and signers.

Its public names are attributes of ``soliton`` itself (``from soliton import Account, Node``), which
imports a module of this package when one of its names is first used. Start with ``account`` (keys
and signing) and ``node`` (requests); ``steps`` explains how the blocking and the asyncio interface
share one description of each route.

What lives here: clients. What does not: the layouts of transactions
(``soliton.chain.transactions``), signatures (``soliton.crypto``), HTTP (``soliton.web``).
"""
