"""Hostile bytes for every decoder: a fixed corpus in the suite, a coverage-guided run by hand."""
