"""Failures of the matcher service that are not refusals of orders.

What lives here: trouble with the node, the orders database, and a start that cannot succeed. What
does not: the table of codes that clients see (``soliton.matching.errors``).
"""

from __future__ import annotations

from soliton.chain.networks.sections import SettingRefused
from soliton.errors import EnvironmentProblem


class NodeUnavailable(EnvironmentProblem):
    """The node did not answer, or not as a node does; the question may be asked again later."""


class MatcherSettingsError(SettingRefused):
    """A setting of the matcher with a wrong value, or one that is missing."""


class DatabaseProblem(EnvironmentProblem):
    """The orders database cannot be opened, read or written."""


class WrongChain(EnvironmentProblem):
    """The node belongs to another chain than the settings say, or than the data does."""


class RecoveryFailed(EnvironmentProblem):
    """Snapshot, journal and orders database do not belong together."""


class ExecutionsUnsettled(EnvironmentProblem):
    """Some of what was executed is not on the chain, nor in the node's pool."""
