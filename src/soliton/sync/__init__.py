"""How nodes come to the same chain: machines without I/O, clock and chance of their own.

Each machine is handed what happened and the time, and gives back what is to be done:
``handle(event, now) -> actions``. Times are in milliseconds of a clock that never goes back.
``wake_at`` says when a machine wants a ``Tick`` though nothing happens.

What lives here: scores, the loader of extensions, microblocks, the relay of transactions, the book
of peers. What does not: bytes (``soliton.wire``), rules of the chain (``soliton.ledger``), sockets
and timers (``soliton.p2p``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/network``.
"""
