"""The signer: signs with keys that it keeps, as its rules say, or with a seed from the request.

What lives here: one HTTP service, whose application is ``app``.

Of ``POST /data``: ``request`` reads what clients send, ``signing`` makes the transaction. A seed
phrase in a request is good for proofs of concept only, which the page at ``/`` says as well. Source
of the operation: 0bsnetwork/developer.0bsnetwork.com ``docs/signer.md``.

Of keys that stay: ``key_routes`` are the routes, ``desk`` is the way of a request from ``wanted``
and ``asked`` over ``measures`` and ``policy`` to a signature of the ``keyring`` or of ``stores``;
``journal`` writes what happens, ``book`` remembers what follows from it (``windows``, used ids,
``approvals``).

Of both: ``node_client`` talks to the node, ``errors`` lists every refusal. What does not live here:
the node, and the files of keys (``soliton.keystore``).
"""
