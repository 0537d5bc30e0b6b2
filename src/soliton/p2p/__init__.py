"""The node among its peers: it dials and is dialled, follows the best chain and passes things on.

``Core`` joins the protocol (``soliton.wire``) and the machines (``soliton.sync``): bytes in and
effects out, without sockets and clock. ``Receiver`` puts what peers send on the node's chain.
``P2pService`` gives both sockets and timers.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/network``.
"""
