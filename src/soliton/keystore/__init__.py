"""A store of encrypted keys.

``keys`` has the key records, ``files`` the store, ``imports`` and ``exports`` read and write the
files of other programs. The signing service is ``soliton.signer``.
"""
