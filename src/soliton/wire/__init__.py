"""The peer protocol, without I/O: bytes in and events out, messages in and bytes out.

``Connection`` is the protocol machine of one connection; ``messages`` holds the messages, ``kinds``
the table of codes and limits, ``handshake`` the handshake. What does not live here: sockets,
timeouts, and a node's reaction to a message (``soliton.p2p``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/network``.
"""
