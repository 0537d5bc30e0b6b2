"""The standard library of the language: every function of versions 1 to 9.

``catalogue`` has names, types and costs, ``library`` binds numbers to implementations, and
``bodies`` has the functions that are written in the language. Each other module implements the
functions of one area.
"""
