"""Functions on bytes: base58, hashes, Curve25519 signatures, VRF, Merkle trees, seeds and keys.

The innermost ring: nothing here knows what a transaction or a block is, and nothing here imports
another package of Soliton except the error tree. Import the module that you need; this package
re-exports nothing, so that a program pays only for what it uses.
"""
