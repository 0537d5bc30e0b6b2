"""HTTP/2 for servers, with prior knowledge: bytes in, calls out, and limits on clients.

What lives here: header blocks (``hpack``, ``huffman``), the sans-I/O machine of a connection
(``machine``, ``streams``, ``sending``, ``floods``), and its transport (``connection``). What does
not: requests and answers (the applications), TLS, and server push.

Sources: RFC 9113 (HTTP/2), RFC 7541 (HPACK).
"""
