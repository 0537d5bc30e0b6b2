"""The state and its rules: what blocks and transactions do to balances and everything else.

Start with ``apply.apply_block`` and follow the calls. What does not live here: where the state is
kept (``soliton.storage``), who may make a block (``soliton.consensus``).
"""
