"""Networks of nodes in virtual time."""
