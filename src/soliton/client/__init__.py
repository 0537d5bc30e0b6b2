"""The library: accounts that sign, nodes and matchers that are asked, from Python.

Its public names are those of ``soliton`` itself (``from soliton import Account, Node``), which
loads a module of this package when a name of it is first used. Start with ``account`` (who signs
what) and ``node`` (who is asked); how both worlds, blocking and awaiting, share one description of
each route stands in ``steps``.

What lives here: nothing that serves. What does not: the forms of transactions
(``soliton.chain.transactions``), signatures (``soliton.crypto``), HTTP (``soliton.web``).
"""
