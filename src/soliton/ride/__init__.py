"""RIDE, the script language: parsing, evaluation, estimation, compiler and decompiler.

Scripts access the chain only through the protocol in ``environment``. Nothing here accesses state,
disk, network or clock.
"""
