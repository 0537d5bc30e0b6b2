"""The script language of the protocol: reading, running, estimating, compiling and decompiling.

Scripts see the chain only through the protocol in ``environment``; nothing here touches state,
disk, network or clock.
"""
