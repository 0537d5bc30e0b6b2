"""The chain in a database of the ecosystem's form, followed block by block.

Start with ``follower`` (what is done when the chain has moved) and ``rows`` (what stands in which
table). ``sources`` reads the chain, ``database`` writes.
"""
