"""The root of the error tree: every error that Soliton raises on purpose derives from it.

What lives here: the root and its three branches, which say who has to act. What does not: the
errors of one package (its own ``errors`` module), and their rendering, which the shell does.
"""

from __future__ import annotations


class SolitonError(Exception):
    """Base class of all errors of Soliton; the message is for a person to read."""


class InputError(SolitonError):
    """Invalid input (of a client, a peer, a file, a setting): its author has to change it."""


class EnvironmentProblem(SolitonError):
    """The environment failed (disk, network, another service): the operator has to act."""


class InvariantBroken(SolitonError):
    """An invariant of the code does not hold: a bug in Soliton."""
