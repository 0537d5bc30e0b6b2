"""Work moved out of an event loop's process, to another core.

What lives here: worker processes, their requests and responses, and recovery when one is lost. What
does not: the work itself (``soliton.crypto``) and programs with processes of their own
(``soliton.cli``).
"""
