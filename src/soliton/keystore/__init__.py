"""Keys that stay put: where they are kept, how they are opened, and bringing others in.

``keys`` is what a key is, ``files`` the store of encrypted files, ``imports`` reads the files of
other programs. Nothing here signs on request: that is ``soliton.signer``.
"""
