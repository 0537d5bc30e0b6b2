"""The vocabulary of ASGI, as types.

Source: the ASGI specification, ``asgi.readthedocs.io``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping

Message = MutableMapping[str, object]
Scope = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
