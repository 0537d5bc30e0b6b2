"""Synchronization with peers, as state machines without I/O, clock or randomness of their own.

Each machine receives an event and the current time, and returns actions: ``handle(event, now) ->
actions``. Times are in milliseconds of a monotonic clock. ``wake_at`` is the time of the next
``Tick`` that a machine needs.

What lives here: scores, the extension loader, microblocks, the relay of transactions, the peer
book. What does not: bytes (``soliton.wire``), rules of the chain (``soliton.ledger``), sockets and
timers (``soliton.p2p``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/network``.
"""
