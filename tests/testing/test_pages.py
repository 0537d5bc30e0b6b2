"""What pages show of answers and files: made anew, on a chain in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from soliton.client.steps import JSON, Request, key_headers
from soliton.signer.policy_file import parse_policy
from soliton.testing import Dapp
from soliton.testing.kit import Kit
from tests.blocks import blocks


def test_the_fault_of_a_script(soliton_kit: Kit, deploy: Callable[..., Dapp]) -> None:
    """As the API tells it on a chain that knows the source."""
    page = "docs/how-to/write-scripts.md"
    (source,), (shown, _) = blocks(page, "ride"), blocks(page, "json")
    node = soliton_kit.node
    dapp = deploy(source, soliton_kit.rich)
    call = msgspec.json.encode(soliton_kit.accounts[0].invoke(dapp, "swap", 5).to_json())
    headers = (*JSON, *key_headers(node._core))
    answer = node._exchange(Request("POST", "/debug/validate", call, headers))
    assert json.loads(answer.body)["fault"] == json.loads(shown)


def test_the_policy_of_a_signer() -> None:
    (text,) = blocks("docs/reference/signer-policy.md", "toml")
    policy = parse_policy(text.encode(), "policy.toml", ord("W"))
    assert [rule.name for rule in policy.rules] == ["payroll", "large"]


def test_what_the_page_of_the_signer_shows() -> None:
    """The check of its notices runs by itself; the rule of a node can be read."""
    page = "docs/reference/signer.md"
    (check,), (rule,) = blocks(page, "python"), blocks(page, "toml")
    names: dict[str, Any] = {}
    exec(check, names)
    assert not names["is_genuine"](b"0123456789abcdef", "2", b"{}", "sha256=00")
    (found,) = parse_policy(rule.encode(), "policy.toml", ord("W")).rules
    assert found.name == "blocks"
