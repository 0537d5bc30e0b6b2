"""The signer: signs with keys that it keeps, as its rules say, or with a seed from the request.

What lives here: one HTTP service, whose application is ``app``.

``POST /data``: ``request`` reads the body, ``signing`` makes the transaction. A seed phrase in a
request is suitable for proofs of concept only; the page at ``/`` says so too. Source of the
operation: 0bsnetwork/developer.0bsnetwork.com ``docs/signer.md``.

Stored keys: ``key_routes`` has the routes. ``pipeline`` takes a request from ``sign_request`` and
``signable`` through ``measures`` and ``policy`` to a signature by the ``keyring`` or ``stores``.
``journal`` writes the audit log, ``state`` is derived from it (``windows``, used ids,
``approvals``).

Both: ``node_client`` is the client of the node, ``errors`` the table of errors. What does not live
here: the node, and key files (``soliton.keystore``).
"""
