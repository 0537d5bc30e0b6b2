"""The library of the language: every function of versions 1 to 8.

``catalogue`` says what there is (``library(version)`` is the way in), ``structures`` which types of
objects have which fields, ``bodies`` how the named functions are made of others; all the other
modules implement functions, one module per area.
"""
