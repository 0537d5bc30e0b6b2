"""HTTP/2 for servers, with prior knowledge: bytes in, calls out, and limits for strangers.

What lives here: header blocks (``hpack``, ``huffman``), the machine of one connection (``machine``,
``streams``, ``sending``, ``floods``), and its transport (``connection``). What does not: what is
asked and answered (the applications), TLS, and anything that servers push.

Sources: RFC 9113 (HTTP/2), RFC 7541 (HPACK).
"""
