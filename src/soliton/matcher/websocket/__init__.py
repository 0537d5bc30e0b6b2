"""The matcher's WebSocket streams: order books, accounts, rates, and a stream for the operator.

What lives here: messages, subscriptions, connections. What does not: frames (``soliton.web``), and
the books and balances themselves.

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/api/ws``.
"""
