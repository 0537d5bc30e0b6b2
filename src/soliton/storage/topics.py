"""Topics of Kafka with one partition whose records are kept for ever, made where they are missing.

What lives here: making, and finding out that a topic is another's. What does not: records
(``export.kafka``, ``matcher.journal.topic``). What the client library raises passes through.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from soliton.storage.errors import StorageProblem

if TYPE_CHECKING:
    from aiokafka.admin import AIOKafkaAdminClient

_MAKING_PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""A broker says that it has made a topic before all of it knows the topic."""
_TOPIC_EXISTS: Final = 36

_log = logging.getLogger(__name__)


class SeveralPartitions(StorageProblem):
    """A topic that somebody else has made: order holds within a partition only."""


async def make_topics(options: dict[str, Any], names: list[str], replicas: int) -> None:
    """Make the topics unless they are there, with so many ``replicas``.

    ``options`` are those of the client library's connection. Raises ``SeveralPartitions``, and what
    the library raises: ``KafkaError`` and ``OSError``.
    """
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic
    from aiokafka.errors import for_code

    admin = AIOKafkaAdminClient(**options)
    try:
        await admin.start()
        known = await admin.list_topics()
        keep = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
        new = [NewTopic(each, 1, replicas, topic_configs=keep) for each in names]
        new = [each for each in new if each.name not in known]
        answer = await admin.create_topics(new) if new else None
        for name, code, *_ in answer.topic_errors if answer else ():
            if code not in (0, _TOPIC_EXISTS):
                raise for_code(code)(f"cannot make the topic {name}")
            _log.info("made the topic %s", name)
        for described in await _described(admin, names):
            if described["error_code"]:
                raise for_code(described["error_code"])(f"topic {described['topic']}")
            if len(described["partitions"]) != 1:
                raise SeveralPartitions(
                    f"the topic {described['topic']} must have exactly one partition"
                )
    finally:
        await admin.close()


async def _described(admin: AIOKafkaAdminClient, names: list[str]) -> list[Any]:
    """What the broker knows of the topics, once it knows those that it has just made."""
    from aiokafka.errors import LeaderNotAvailableError, UnknownTopicOrPartitionError

    not_yet = (UnknownTopicOrPartitionError.errno, LeaderNotAvailableError.errno)
    found: list[Any] = await admin.describe_topics(names)
    for pause in _MAKING_PAUSES:
        if not any(each["error_code"] in not_yet for each in found):
            break
        await asyncio.sleep(pause)
        found = await admin.describe_topics(names)
    return found
