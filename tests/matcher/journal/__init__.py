"""Tests of the matcher's journal."""
