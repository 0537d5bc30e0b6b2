"""Transaction types: one module each describes fields, limits and formats; ``table`` lists them.

Start with ``model`` (the records) and ``codec`` (bytes and JSON).
"""
