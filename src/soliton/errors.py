"""The root of the error tree: every error that Soliton raises on purpose derives from it.

What lives here: the root and the three kinds of blame that decide who has to act. What does not:
the errors of one package (each package has its own ``errors`` module), and their rendering, which
is the business of the shell.
"""

from __future__ import annotations


class SolitonError(Exception):
    """Anything that Soliton refuses or cannot do, with a message for a person."""


class InputError(SolitonError):
    """The data that somebody handed in (a client, a peer, a file, a setting) is wrong: they have to
    change it.
    """


class EnvironmentProblem(SolitonError):
    """The surroundings failed (disk, network, another service): the operator has to look."""


class InvariantBroken(SolitonError):
    """A rule that the code itself guarantees does not hold: a bug of ours, nobody else's fault."""
