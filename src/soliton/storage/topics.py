"""Kafka topics with one partition and unlimited retention, created if they do not exist.

What lives here: creating topics, and checking those that exist. What does not: records
(``export.kafka``, ``matcher.journal.topic``). Errors of the client library are not translated.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from soliton.storage.errors import StorageProblem

if TYPE_CHECKING:
    from aiokafka.admin import AIOKafkaAdminClient

_MAKING_PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Delays between retries: a broker reports a topic as created before it is visible everywhere."""
_TOPIC_EXISTS: Final = 36

_log = logging.getLogger(__name__)


class MultiplePartitions(StorageProblem):
    """An existing topic has several partitions; records are ordered only within one."""


async def create_topics(options: dict[str, Any], names: list[str], replicas: int) -> None:
    """Create the topics that do not exist, with a replication factor of ``replicas``.

    ``options`` are the connection options of the client library. Raises ``MultiplePartitions``, and
    the library's ``KafkaError`` and ``OSError``.
    """
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic
    from aiokafka.errors import for_code

    admin = AIOKafkaAdminClient(**options)
    try:
        await admin.start()
        known = await admin.list_topics()
        keep = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
        missing = [name for name in names if name not in known]
        new = [NewTopic(name, 1, replicas, topic_configs=keep) for name in missing]
        response = await admin.create_topics(new) if new else None
        for name, code, *_ in response.topic_errors if response else ():
            if code not in (0, _TOPIC_EXISTS):
                raise for_code(code)(f"cannot make the topic {name}")
            _log.info("made the topic %s", name)
        for described in await _described(admin, names):
            if described["error_code"]:
                raise for_code(described["error_code"])(f"topic {described['topic']}")
            if len(described["partitions"]) != 1:
                raise MultiplePartitions(
                    f"the topic {described['topic']} must have exactly one partition"
                )
    finally:
        await admin.close()


async def _described(admin: AIOKafkaAdminClient, names: list[str]) -> list[Any]:
    """Return the descriptions of the topics, once those just created are visible."""
    from aiokafka.errors import LeaderNotAvailableError, UnknownTopicOrPartitionError

    not_yet = (UnknownTopicOrPartitionError.errno, LeaderNotAvailableError.errno)
    topics: list[Any] = await admin.describe_topics(names)
    for pause in _MAKING_PAUSES:
        if not any(each["error_code"] in not_yet for each in topics):
            break
        await asyncio.sleep(pause)
        topics = await admin.describe_topics(names)
    return topics


def ignore_lost_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop not log errors of Kafka in futures that nobody asks: when a connection is cut,
    the library puts the error that its caller receives into others of its own as well.
    """
    from aiokafka.errors import KafkaError

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "future" not in context or not isinstance(context.get("exception"), KafkaError):
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
