"""Soliton: a node, signer and matcher of the Waves protocol family."""

__version__ = "0.1.0"
