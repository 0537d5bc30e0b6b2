"""The peer protocol, without I/O: bytes in and events out, messages in and bytes out.

``Connection`` is one conversation; ``messages`` has everything that peers say, ``kinds`` the table
of codes and limits, ``handshake`` how they introduce themselves. What does not live here: sockets
and time-outs and what a message makes a node do (``soliton.p2p``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/network``.
"""
