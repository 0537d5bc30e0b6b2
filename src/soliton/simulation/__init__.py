"""Whole networks of nodes in one process, in virtual time, the same for the same seed."""
