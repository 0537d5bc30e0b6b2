"""Work that leaves the process of an event loop, so that another core does it.

What lives here: a process beside the own one, how work gets there and back, and what happens when
it is lost. What does not: the work itself (``soliton.crypto``) and whole programs with processes of
their own (``soliton.cli``).
"""
