"""Who counts as one client."""

from __future__ import annotations

import pytest

from soliton.web.clients import LOCAL, client_key

CLIENTS = """
127.0.0.1            |
127.8.9.1            |
::1                  |
::ffff:127.0.0.1     |
                     |
/run/a.socket        | unknown
proxy.example        | unknown
1.2.3.4, ::1         | unknown
10.1.2.3             | 10.1.2.3
::ffff:10.1.2.3      | 10.1.2.3
2001:db8:1:2:3:4:5:6 | 2001:db8:1:2::
2001:db8:1:2::9      | 2001:db8:1:2::
2001:db8:1:3::9      | 2001:db8:1:3::
"""


@pytest.mark.parametrize(
    ("host", "key"), [line.split("|") for line in CLIENTS.strip("\n").splitlines()]
)
def test_clients(host: str, key: str) -> None:
    assert client_key(host.strip()) == (key.strip() or LOCAL)
