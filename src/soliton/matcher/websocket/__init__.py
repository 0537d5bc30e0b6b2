"""The matcher's streams: order books, accounts, rates, and everything for the operator.

What lives here: messages, subscriptions, connections. What does not: frames (``soliton.web``) and
the books and balances themselves.

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/api/ws``.
"""
