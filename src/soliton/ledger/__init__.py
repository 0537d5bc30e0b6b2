"""The state transition: the effects of blocks and transactions on balances and all other state.

Start with ``apply.apply_block`` and follow the calls. What does not live here: storing the state
(``soliton.storage``), deciding who may make a block (``soliton.consensus``).
"""
