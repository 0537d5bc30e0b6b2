"""Proof of stake, header checks and block rewards: pure functions on numbers and headers."""
