"""What pages show of answers and files: made anew, on a chain in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import msgspec

from soliton.client.steps import JSON, Request, key_headers
from soliton.signer.policy_file import parse_policy
from soliton.testing import Dapp
from soliton.testing.kit import Kit
from tests.vectors import REPOSITORY


def blocks(page: str, language: str) -> list[str]:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_fault_of_a_script(soliton_kit: Kit, deploy: Callable[..., Dapp]) -> None:
    """As the API tells it on a chain that knows the source."""
    page = "how-to/write-scripts.md"
    (source,), (shown, _) = blocks(page, "ride"), blocks(page, "json")
    node = soliton_kit.node
    dapp = deploy(source, soliton_kit.rich)
    call = msgspec.json.encode(soliton_kit.accounts[0].invoke(dapp, "swap", 5).to_json())
    headers = (*JSON, *key_headers(node._core))
    answer = node._exchange(Request("POST", "/debug/validate", call, headers))
    assert json.loads(answer.body)["fault"] == json.loads(shown)


def test_the_policy_of_a_signer() -> None:
    (text,) = blocks("reference/signer-policy.md", "toml")
    policy = parse_policy(text.encode(), "policy.toml", ord("W"))
    assert [rule.name for rule in policy.rules] == ["payroll", "large"]
