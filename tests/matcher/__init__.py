"""Tests of the matcher service."""
