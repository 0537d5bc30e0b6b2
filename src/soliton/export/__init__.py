"""The export of the chain, block by block: into the ecosystem's database schema, files and topics.

Start with ``follower`` (the step after each change of the chain) and ``rows`` (the content of the
tables). ``sources`` reads the chain; ``database`` and the other sinks write.
"""
