"""The metrics and the readiness of a signer.

What lives here: the list, and why a signer is not ready. What does not: the metrics that every
service has, and the answers (``soliton.web.monitoring``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from soliton.signer.boot_clock import boot_ms
from soliton.signer.errors import NodeTrouble
from soliton.signer.node_client import NodeClient
from soliton.signer.records import Event
from soliton.web.monitoring import Health, Metric, one
from soliton.web.prometheus import COUNTER, GAUGE, Sample

if TYPE_CHECKING:
    from soliton.signer.key_service import KeyService


def count_keys(keys: KeyService) -> tuple[int, int]:
    """The number of keys that can sign now, and of those that cannot."""
    now = boot_ms()
    locked = [each.is_locked(now) for each in keys.pipeline.keyring.accounts()]
    return locked.count(False), locked.count(True)


def _keys(keys: KeyService) -> Iterator[Sample]:
    unlocked, locked = count_keys(keys)
    yield Sample(unlocked, {"state": "unlocked"})
    yield Sample(locked, {"state": "locked"})


def _lines(keys: KeyService) -> Iterator[Sample]:
    for event in Event:
        yield Sample(keys.journal.appended[event], {"event": event.value})


METRICS: Final[tuple[Metric[KeyService], ...]] = (
    Metric("soliton_signer_keys", GAUGE, "Keys, by whether they can sign now", _keys, ("state",)),
    Metric("soliton_signer_pending_requests", GAUGE,
           "Requests that are kept for approvals, decided ones included until they expire",
           one(lambda keys: len(keys.pipeline.state.waiting))),
    Metric("soliton_signer_requests_in_progress", GAUGE, "Requests that are being answered",
           one(lambda keys: keys.routes.running)),
    Metric("soliton_signer_audit_lines_total", COUNTER,
           "Lines of the audit log since the start, by kind: sign, refuse, wrong-password, …",
           _lines, ("event",)),
    Metric("soliton_signer_audit_writable", GAUGE,
           "1, or 0 since the last line of the audit log could not be written",
           one(lambda keys: int(not keys.journal.is_broken))),
)  # fmt: skip
"""Those of a signer that keeps keys."""


async def health_of_keys(keys: KeyService) -> Health:
    """Not ready: no key is unlocked, or the audit log cannot be written."""
    reasons = []
    unlocked, locked = count_keys(keys)
    if not unlocked and not locked:
        reasons.append("there are no keys: add one with soliton keys create")
    elif not unlocked:
        reasons.append("all keys are locked: unlock them with soliton signer unlock")
    if keys.journal.is_broken:
        reasons.append("the audit log cannot be written: nothing is signed until it can")
    return Health(reasons, {"keys": unlocked + locked, "unlocked": unlocked})


async def health_of_node(node: NodeClient) -> Health:
    """Not ready: the node does not answer. For a signer without keys, which always broadcasts."""
    try:
        return Health([], {"height": await node.height()})
    except NodeTrouble as error:
        return Health([f"the node does not answer: {error}"])
