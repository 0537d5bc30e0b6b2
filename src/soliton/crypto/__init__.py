"""Functions on bytes: base58, hashes, Curve25519 signatures, VRF, Merkle trees, seeds and keys.

The innermost ring: nothing here knows about transactions or blocks, or imports another package of
Soliton but the error tree. The package re-exports nothing: import the modules, so that a program
loads only what it uses.
"""
