"""The node's peer-to-peer network: connections, synchronization with the best chain, relaying.

``Core`` connects the protocol (``soliton.wire``) with the machines (``soliton.sync``): bytes in and
effects out, without sockets or a clock. ``Receiver`` appends peers' blocks to the node's chain.
``P2pService`` adds sockets and timers.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/network``.
"""
