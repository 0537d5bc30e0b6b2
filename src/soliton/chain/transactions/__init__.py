"""Transaction types: one module each describes fields, limits and forms; ``table`` lists them.

Start with ``model`` (what a transaction is) and ``codec`` (how it becomes bytes and JSON).
"""
