"""Failures of the matcher service that are not rejections of orders.

What lives here: problems with the node, with the orders database, and at the start. What does not:
the table of codes that clients see (``soliton.matching.errors``).
"""

from __future__ import annotations

from soliton.chain.networks.sections import InvalidSetting
from soliton.errors import EnvironmentProblem


class NodeUnavailable(EnvironmentProblem):
    """The node sent no response, or an invalid one; the request can be retried later."""


class MatcherSettingsError(InvalidSetting):
    """A setting of the matcher is invalid or missing."""


class DatabaseProblem(EnvironmentProblem):
    """The orders database cannot be opened, read or written."""


class WrongChain(EnvironmentProblem):
    """The node belongs to another chain than the settings or the data."""


class ChainMissing(NodeUnavailable):
    """The node does not have the blocks that were seen before: it is behind, or on another branch.
    It may come back.
    """


class RecoveryFailed(EnvironmentProblem):
    """Snapshot, journal and orders database do not match."""


class ExecutionsUnsettled(EnvironmentProblem):
    """Some executions are neither executed on the chain nor in the node's pool."""
