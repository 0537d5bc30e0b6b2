"""The signer: signs data transactions with a seed phrase from the request and broadcasts them.

What lives here: one HTTP service. ``app`` is the application, ``server`` serves it, ``request``
reads what clients send, ``signing`` makes the transaction, ``node_client`` talks to the node,
``errors`` lists every refusal. What does not: the node, and keeping keys. A seed phrase in a
request is good for proofs of concept only, which the page at ``/`` says as well.

Source of the operation: 0bsnetwork/developer.0bsnetwork.com ``docs/signer.md``.
"""
