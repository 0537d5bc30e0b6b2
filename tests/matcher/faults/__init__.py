"""Faults of whole programs: a matcher and its node as processes, load, something that breaks."""
