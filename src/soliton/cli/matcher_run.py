"""``soliton matcher run``: a matcher with a remote node, until a signal ends it.

What lives here: starting and stopping. What does not: the matcher, and its settings
(``matcher_commands``).
"""

from __future__ import annotations

import asyncio
import logging

from soliton.cli.process import call_on_signals, end_start, end_start_of_service, run_program
from soliton.matcher import run
from soliton.matcher.http_client import HttpNodeClient
from soliton.matcher.run import Listen, RunningMatcher, start_matcher
from soliton.matcher.settings import MatcherSettings

_log = logging.getLogger(__name__)


def run_matcher(settings: MatcherSettings, heartbeat_ms: int = 0) -> None:
    """Serve until a signal; raises the error that ended the matcher before. Logs a heartbeat every
    ``heartbeat_ms``, unless that is 0.
    """
    run_program(lambda: _serve(settings, heartbeat_ms))


async def _serve(settings: MatcherSettings, heartbeat_ms: int) -> None:
    stopped = asyncio.Event()
    call_on_signals(stopped.set)
    node = HttpNodeClient(settings.node, settings.network.chain_id)
    running = await start_matcher(settings, node, listening(settings))
    _log.info("matcher on http://%s:%d, node %s", running.host, running.port, settings.node.url)
    # Its answer to an order is 503 until it has recovered, which waits for the node.
    end_start_of_service()
    ended = asyncio.create_task(running.matcher.ended())
    waiting = asyncio.create_task(stopped.wait())
    logging_state = asyncio.create_task(_log_state(running, heartbeat_ms))
    try:
        await asyncio.wait([ended, waiting], return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            ended.result()
    finally:
        waiting.cancel()
        logging_state.cancel()
        await running.stop()


def listening(settings: MatcherSettings) -> Listen:
    """Return how a matcher with these settings listens: in this process, or with workers."""
    if settings.rest_api.workers:
        from soliton.cli import matcher_workers

        return matcher_workers.listen
    return run.listen


async def _log_state(running: RunningMatcher, heartbeat_ms: int) -> None:
    """Log when the matcher accepts orders, then a heartbeat."""
    matcher = running.matcher
    await matcher.working()
    _log.info("the matcher takes orders; its journal ends at %d", matcher.offsets.last)
    end_start()
    while heartbeat_ms:
        await asyncio.sleep(heartbeat_ms / 1_000)
        _log.info("alive: the journal ends at %d", matcher.offsets.last)
