"""The matcher's HTTP interface: its routes, response bodies and errors, and its page.

What lives here: everything between a request and ``Matcher``. What does not: WebSocket streams
(``soliton.matcher.websocket``), sockets (``soliton.web``), and the service itself.

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/api/http``.
"""
