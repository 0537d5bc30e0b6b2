"""A private chain in one process, for development."""
